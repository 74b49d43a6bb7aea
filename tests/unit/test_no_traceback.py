# SPDX-License-Identifier: Apache-2.0
"""Bad files and refusals of the machine: the command answers with a message and an exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest
from fabricated_results import make_results, write_study
from stress import damage, fuzz, hosts, studies
from tiny_study import call

from longfat.dataset import load

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[2] / "src"


def test_a_name_that_the_locale_cannot_read_is_written_as_it_is(tmp_path: Path) -> None:
    study = write_study(tmp_path).rename(tmp_path / "größe")
    command = [sys.executable, "-m", "longfat", "reproduce", str(study), "--backend", "fake"]
    command += ["--results", str(tmp_path / "results")]
    own = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}/tests/fake",
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results/report.html").read_text(encoding="utf-8")


def test_a_fault_of_the_program_is_a_message_and_its_traceback_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def faulty(row: object) -> None:
        raise ZeroDivisionError("as a test")

    study, results = write_study(tmp_path), tmp_path / "results"
    make_results(study, results)
    monkeypatch.setattr(load, "_factors", faulty)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = call("report", study, "--results", results)
    assert result.exit_code == 1
    assert "error: a defect of Longfat itself: ZeroDivisionError: as a test\n" in result.stderr
    (told,) = tmp_path.glob("longfat-fault-*.txt")
    assert str(told) in result.stderr
    assert "in faulty" in told.read_text(encoding="utf-8")


Prepare = Callable[[Path, pytest.MonkeyPatch], Callable[[Random], object]]
GOOD: dict[str, tuple[Prepare, int]] = {  # how a round is prepared, and how many are played
    "a damaged file is named or harmless": (partial(damage.prepare, repetitions=2), 6),
    "a changed study is refused or used": (fuzz.prepare, 12),
    "a hostile folder is refused or without effect": (studies.prepare, 4),
    "any answer of a host is used whole or refused": (hosts.prepare, 25),
}


@pytest.mark.parametrize("rule", GOOD)
def test_every_round_of_a_stress_test_is_good(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, rounds = GOOD[rule]
    play = prepare(tmp_path, monkeypatch)
    for number in range(rounds):
        assert play(Random(number))
