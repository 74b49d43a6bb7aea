# SPDX-License-Identifier: Apache-2.0
"""The gate of the CPU: tasks waited too long, and programs outside the guest ran meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import cable_spec

from longfat.guest.counters import TICK_US, others_us, pressure_us
from longfat.spec.gates import Evidence
from longfat.spec.gates.behaviour import cpu_sufficed


@pytest.mark.parametrize(
    ("waited", "others", "valid"),
    [
        (0.15, None, True),
        (0.3, None, False),
        (0.3, 0.03, True),
        (0.3, 0.6, False),
        (0.15, 3.0, True),
        (None, 1.0, True),
    ],
)
def test_waiting_starves_a_run_only_as_far_as_other_programs_ran(
    waited: float | None, others: float | None, valid: bool
) -> None:
    spec = cable_spec()  # parts of its time, of which a quarter is allowed
    achieved = {"cpu_pressure_us": waited and waited * spec.end_us, "others_cpu_us": others and others * spec.end_us}
    assert (not list(cpu_sufficed(Evidence(spec, achieved, [])))) == valid


def test_others_have_what_they_and_hypervisors_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # user, nice, system, idle, what interrupts took, which the guest's own packets cause, and what was stolen.
    (tmp_path / "stat").write_text("cpu 700 20 300 5000 10 40 90 800 0 0\ncpu0 1 1 1\n")
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure/cpu").write_text("some avg10=1.50 total=70000\nfull avg10=0.00 total=0\n")
    assert pressure_us(tmp_path) == 70_000 + 800 * TICK_US
    for number, name, ticks in ((1, "python3 (a)", "100 50 400 20"), (7, "iperf", "30 40 0 0")):
        (tmp_path / str(number)).mkdir()
        head = f"{number} ({name}) S 0 1 1 0 -1 4194560 1 2 3 4 {ticks}"
        (tmp_path / str(number) / "stat").write_text(f"{head} 20 0 1 0\n")
    assert others_us(tmp_path) is None, "this process sees programs other than its own"
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert others_us(tmp_path) == (1020 - 570 - 70 + 800) * TICK_US
