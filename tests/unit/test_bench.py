# SPDX-License-Identifier: Apache-2.0
"""The bench: choice of cases, the specs of cases, timing, and the printed result."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_backend import FakeBackend
from rich.console import Console
from typer.testing import CliRunner

from longfat.cli import app
from longfat.cli.benchmark import run
from longfat.cli.benchmark.case import CASES, Timing, spec_of
from longfat.cli.benchmark.run import PEER_CASES, Wanted, best, case_on, measure, run_bench
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError

SOURCE = Path(run.__file__).parents[2]
# A child starts a program that computes for 0.2 s, and ends at once.
ORPHAN = """
import ctypes, subprocess, sys
from longfat.cli.benchmark.case import PR_SET_CHILD_SUBREAPER, children_seconds
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
before = children_seconds()
busy = "import time\\nwhile time.process_time() < 0.2: pass"
subprocess.run(["sh", "-c", '"$0" -c "$1" &', sys.executable, busy], check=True)
print(children_seconds() - before)
"""


def spec(where: str, case: str) -> RunSpec:
    return spec_of(case_on(where, CASES[case]), {"backend": "mininet" if where == "host" else "virtual"})


@pytest.mark.parametrize("arguments", [["--cases", "2g"], ["--peers", "ns4"], ["--repeats", "0"]])
def test_the_command_refuses_unknown_values(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["bench", *arguments]).exit_code == 2


def test_the_best_of_several_takes_wall_and_cpu_time_each_by_itself() -> None:
    timings = [Timing(2.0, 1.0, 7, 5), Timing(1.5, 1.2, 7, 5), Timing(1.9, 0.9, 7, 5)]
    assert best(timings) == Timing(1.5, 0.9, 7, 5)


def test_the_machines_own_kernel_gets_no_setting_of_the_projects_kernel() -> None:
    own = spec("host", "1g-1500")
    assert {key for node in own.nodes for key in node.sysctls} == {"net.ipv4.ip_forward"}
    assert {end.egress.delay_us for link in own.links for end in (link.a, link.b)} == {0}
    assert own.flows[0].window_bytes is None
    assert own.end_us == 10_000_000


def test_a_guest_delays_by_30_ms_and_its_window_holds_three_bdps() -> None:
    for name in PEER_CASES:
        found = spec("virtual", name)
        assert sum(end.egress.delay_us for link in found.links for end in (link.a, link.b)) == 30_000
        assert 2 * int(found.flows[0].window_bytes or 0) == 3 * 1_000_000_000 // 8 * 3 // 100
    assert spec("ns3", "1g-1500").end_us == 1_000_000


def test_cpu_time_includes_children_and_orphans() -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", ORPHAN], env=environment, capture_output=True, text=True, check=True)
    assert float(done.stdout) >= 0.2


def test_a_failed_run_is_an_error_with_its_case() -> None:
    case = CASES["fixed"]
    run_id = spec_of(case, FakeBackend().pins()).run_id
    with pytest.raises(RigError) as raised:
        list(measure(FakeBackend(faults={run_id: "report_failure"}), "virtual", ["fixed"], 1, print))
    assert raised.value.where == case.flow


@pytest.mark.parametrize("as_text", [True, False])
def test_the_result_has_every_timing_and_a_note_for_a_missing_peer(
    monkeypatch: pytest.MonkeyPatch, as_text: bool
) -> None:
    def opened(name: str, settings: object, say: object) -> FakeBackend:
        if name in ("ns2", "mininet"):
            raise RigError("not installed")
        return FakeBackend(wall_seconds=0.05)

    monkeypatch.setattr(run, "open_backend", opened)
    text = io.StringIO()
    run_bench(Wanted(("1g-1500",), repeats=2), Console(file=text, width=200), as_text=as_text)
    assert "ns2: not installed" in text.getvalue()
    if not as_text:
        rows = json.loads(text.getvalue())["rows"]
        assert [(row["where"], row["seconds"]) for row in rows] == [("virtual", 10), ("ns3", 1.0)]
        assert all(row["timing"]["wall_s"] >= 0.05 for row in rows)
