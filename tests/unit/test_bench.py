# SPDX-License-Identifier: Apache-2.0
"""The bench: choice of cases, the specs of cases, timing, and the printed result."""

from __future__ import annotations

import io
import json

import pytest
from fake_backend import FakeBackend
from rich.console import Console
from typer.testing import CliRunner

from longfat.cli import app, bench
from longfat.cli.bench import CASES, PEER_CASES, case_on, measure, spec_of
from longfat.cli.console import Output
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError


def spec(where: str, case: str) -> RunSpec:
    return spec_of(case_on(where, CASES[case]), {"backend": "mininet" if where == "host" else "virtual"})


@pytest.mark.parametrize("arguments", [["--cases", "2g"], ["--peers", "ns4"], ["--repeats", "0"]])
def test_the_command_refuses_unknown_values(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["bench", *arguments]).exit_code == 2


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


def test_a_failed_run_is_an_error_with_its_case() -> None:
    case = CASES["fixed"]
    run_id = spec_of(case, FakeBackend().pins()).run_id
    backend = FakeBackend(faults={run_id: "report_failure"})
    with pytest.raises(RigError) as raised:
        list(measure(backend, "virtual", ["fixed"], 1, Console(file=io.StringIO())))
    assert raised.value.where == case.flow


def test_the_result_has_every_timing_and_a_note_for_a_missing_peer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(name: str, settings: object, say: object) -> FakeBackend:
        if name in ("ns2", "mininet"):
            raise RigError("not installed")
        return FakeBackend(wall_seconds=0.05)

    monkeypatch.setattr(bench, "open_backend", opened)
    text = io.StringIO()
    bench.bench(Output(as_json=True, file=text, width=200), cases="1g-1500", repeats=2)
    assert "ns2: not installed" in text.getvalue()
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["where"], row["seconds"]) for row in rows] == [("virtual", 10), ("ns3", 1.0)]
    assert all(row["wall_s"] >= 0.05 for row in rows)
