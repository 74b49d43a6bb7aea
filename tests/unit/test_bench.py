# SPDX-License-Identifier: Apache-2.0
"""The bench: choice of cases, counting, printed tables, and timing of runs in worker processes."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_backend import FakeBackend
from rich.console import Console
from typer.testing import CliRunner

from longfat.bench import run
from longfat.bench.cases import CASES, PEER_CASES, Case, Timing, best, chosen
from longfat.bench.report import PeerRow, Results, Row, show
from longfat.bench.run import Wanted, measure, peer_case, run_bench
from longfat.bench.timing import spec_of
from longfat.cli import app
from longfat.errors import RigError, StudyError
from longfat.runspec import RunSpec

SLOW = Timing(4.0, 3.0, 1000, 900_000_000)
SOURCE = Path(run.__file__).parents[2]
# A child starts a program that computes for 0.2 s, and ends at once.
ORPHAN = """
import ctypes, subprocess, sys
from longfat.bench.timing import PR_SET_CHILD_SUBREAPER, children_seconds
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
before = children_seconds()
busy = "import time\\nwhile time.process_time() < 0.2: pass"
subprocess.run(["sh", "-c", '"$0" -c "$1" &', sys.executable, busy], check=True)
print(children_seconds() - before)
"""


def spec(case: Case) -> RunSpec:
    return spec_of(case, {"backend": "mininet" if case.own_kernel else "virtual"})


def shown(results: Results) -> str:
    text = io.StringIO()
    show(results, Console(file=text, width=200))
    return text.getvalue()


def results(rows: Sequence[Row] = (), peers: Sequence[PeerRow] = ()) -> Results:
    return Results(3, rows, peers, None, ["ns2: not installed"])


@pytest.mark.parametrize(
    ("given", "found"),
    [((), ("a", "b", "c")), (("c", "a"), ("a", "c")), (("none",), ())],
)
def test_an_option_names_some_or_none_and_else_means_all(given: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert chosen("--cases", given, ("a", "b", "c")) == found


def test_every_unknown_case_is_named_with_the_nearest_known() -> None:
    with pytest.raises(StudyError) as raised:
        chosen("--cases", ("1g-900", "fixed", "none"), tuple(CASES))
    assert [(problem.key, problem.hint) for problem in raised.value.problems] == [
        ("1g-900", "did you mean '1g-9000'?"),
        ("none", None),
    ]


def test_the_command_refuses_unknown_cases_and_peers_before_anything_starts() -> None:
    for arguments in (["--cases", "2g"], ["--peers", "ns4"], ["--repeats", "0"]):
        result = CliRunner().invoke(app, ["bench", *arguments])
        assert result.exit_code == 2
        assert arguments[0] in result.output


def test_the_best_of_several_takes_wall_and_cpu_time_each_by_itself() -> None:
    timings = [Timing(2.0, 1.0, 7, 5), Timing(1.5, 1.2, 7, 5), Timing(1.9, 0.9, 7, 5)]
    assert best(timings) == Timing(1.5, 0.9, 7, 5)


def test_the_cost_of_a_segment_is_without_the_fixed_cost_of_a_run() -> None:
    fixed = Row(CASES["fixed"].name, Timing(1.0, 0.9, 10, 0), 0.001)
    text = shown(results([fixed, Row("work", Timing(3.0, 2.5, 1_000_000, 0), 12)]))
    (line,) = (line for line in text.splitlines() if "work" in line and "3.00" in line)
    assert [cell.strip() for cell in line.split("│")[1:-1]] == ["work", "3.00", "2.50", "4.0", "2.00"]
    assert "ns2: not installed" in text


def test_a_peers_cost_is_shown_for_each_second_that_it_simulates() -> None:
    text = shown(results(peers=[PeerRow("ns3", "1 Gb/s", 2, SLOW)]))
    (line,) = (line for line in text.splitlines() if "ns3" in line)
    assert [cell.strip() for cell in line.split("│")[1:-1]] == ["ns3", "1 Gb/s", "2", "4.00", "3.00", "1.50", "900"]
    assert "no delay" not in text


def test_it_is_said_what_the_machines_own_kernel_does_not_do() -> None:
    text = shown(results(peers=[PeerRow("host", "1 Gb/s", 10, SLOW)]))
    assert "no delay" in text
    assert "CPU time is that of the whole machine" in text


def test_the_machines_own_kernel_is_asked_for_nothing_that_only_the_projects_has() -> None:
    own = spec(peer_case("host", CASES["1g-1500"]))
    assert {key for node in own.nodes for key in node.sysctls} == {"net.ipv4.ip_forward"}
    assert {end.egress.delay_us for link in own.links for end in (link.a, link.b)} == {0}
    assert own.flows[0].window_bytes is None
    assert own.end_us == 10_000_000


def test_a_guest_delays_by_30_ms_and_its_window_holds_three_bdps() -> None:
    for name in PEER_CASES:
        found = spec(CASES[name])
        assert sum(end.egress.delay_us for link in found.links for end in (link.a, link.b)) == 30_000
        assert 2 * int(found.flows[0].window_bytes or 0) == 3 * 1_000_000_000 // 8 * 3 // 100
    assert spec(CASES["100m-1500"]).probes.queue_interval_us == 10_000
    assert spec(peer_case("ns3", CASES["1g-1500"])).end_us == 1_000_000


def test_cpu_time_is_that_of_children_and_of_what_they_left_behind() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) >= 0.2


def test_a_case_is_timed_in_a_worker_and_two_at_a_time() -> None:
    said: list[str] = []
    rows, rate = measure(FakeBackend(wall_seconds=0.05), ["fixed", "1g-9000"], 2, said.append)
    assert [(row.name, row.seconds) for row in rows] == [(CASES[name].name, CASES[name].seconds) for name in CASES][:2]
    assert all(row.best.wall_s >= 0.05 for row in rows)
    assert rate is not None
    assert said == [row.name for row in rows]


class DyingBackend(FakeBackend):
    """A backend that takes its process with it."""

    def run(self, spec: RunSpec, folder: Path) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_run_that_is_refused_or_fails_is_an_error_with_the_name_of_the_case() -> None:
    case = CASES["fixed"]
    backend = FakeBackend()
    run_id = spec_of(case, backend.pins()).run_id
    for wrong in (FakeBackend(faults={run_id: "report_failure"}), DyingBackend()):
        with pytest.raises(RigError) as raised:
            measure(wrong, ["fixed"], 1, print)
        assert raised.value.where == case.name


def test_the_json_has_every_timing_and_a_note_for_each_peer_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(name: str, settings: object, say: object) -> FakeBackend:
        if name in ("ns2", "mininet"):
            raise RigError("not installed")
        return FakeBackend()

    monkeypatch.setattr(run, "open_backend", opened)
    text = io.StringIO()
    run_bench(Wanted(("1g-1500",), repeats=1), Console(file=text, width=200), as_text=False)
    found = json.loads(text.getvalue())
    assert [row["name"] for row in found["rows"]] == [CASES["1g-1500"].name]
    assert found["rows"][0]["best"]["cpu_s"] >= 0
    assert [(peer["peer"], peer["seconds"]) for peer in found["peers"]] == [("ns3", 1.0)]
    assert found["notes"] == ["host: not installed", "ns2: not installed"]
