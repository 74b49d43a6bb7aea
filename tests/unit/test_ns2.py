# SPDX-License-Identifier: Apache-2.0
"""Runs in ns-2: the script, the parts that it lacks, and the raw files from its output and traces."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import pytest
from conftest import cable_spec, delay_spec
from test_red import red_spec

from longfat.backends.ns2 import Ns2Backend, script, write_raw
from longfat.dataset.parse import parse_run
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Node, RunSpec
from longfat.study.traffic import misses

BACKEND = Ns2Backend(None, "2.35", ("ns-2 is not installed",))
HIGHSPEED = {
    "net.ipv4.tcp_ecn": "1",
    "net.ipv4.tcp_highspeed.high_window_milli": "833333",
    "net.ipv4.tcp_highspeed.high_p_ppb": "100",
    "net.ipv4.tcp_highspeed.current_window": "0",
}


def highspeed(spec: RunSpec, recovery: str | None = None, **sysctls: str) -> RunSpec:
    """The run with a sender of HighSpeed TCP."""
    sender = Node("client1", "sender", {**HIGHSPEED, **sysctls}, recovery=recovery)
    flow = dataclasses.replace(spec.flows[0], cca="highspeed", streams=2)
    return dataclasses.replace(spec, nodes=(sender, *spec.nodes[1:]), flows=(flow,))


def lines(spec: RunSpec, word: str) -> list[str]:
    return [line for line in script(spec).splitlines() if line.startswith(f"{word} ")]


def test_a_full_packet_takes_as_long_as_on_ethernet() -> None:
    mbps = float(lines(cable_spec(), "port")[0].split()[4])
    assert 1500 * 8 / mbps == pytest.approx(1538 * 8 / 100, rel=1e-6)


def test_red_is_set_in_packets_and_with_the_weight_of_the_kernel(tmp_path: Path) -> None:
    (port,) = (line for line in lines(red_spec(tmp_path), "port") if " RED " in line)
    for words in ("RED 900", "thresh_ 50 maxthresh_ 150 linterm_ 10", "q_weight_ 0.015625", "setbit_ 1 gentle_ 0"):
        assert words in port


@pytest.mark.parametrize(
    ("recovery", "sack", "agents"),
    [
        (None, "1", "TCP/Sack1 TCPSink/Sack1"),
        (None, "0", "TCP/Newreno TCPSink"),
        ("newreno", "0", "TCP/Newreno TCPSink"),
        ("reno", "0", "TCP/Reno TCPSink"),
    ],
)
def test_agents_recover_as_declared(recovery: str | None, sack: str, agents: str) -> None:
    found = lines(highspeed(cable_spec(), recovery, **{"net.ipv4.tcp_sack": sack}), "connection")
    assert [line.split()[1:3] for line in found] == [["0", "0"], ["0", "1"]]
    assert all(f" {agents} " in line for line in found)


def test_parts_without_a_model_are_refused(tmp_path: Path) -> None:
    reasons = BACKEND.refuses(delay_spec(cca="bbr"))
    assert any("no congestion control 'bbr'" in reason for reason in reasons)
    assert any("backend ns2 has no captures" in reason for reason in reasons)
    assert any("backend ns2 has no deliberate drops" in reason for reason in reasons)
    bent = highspeed(red_spec(tmp_path), **{"net.ipv4.tcp_highspeed.current_window": "1"})
    assert BACKEND.refuses(bent) == ("ns-2 has current_window = 0 only, and f1 has 1",)


def test_printed_lines_become_raw_files(tmp_path: Path) -> None:
    spec, folder = red_spec(tmp_path), tmp_path / "run"
    folder.mkdir()
    # The dumbbell's shaped ports are those of the client, the switch and the server.
    said = [
        "socket 500000 0 0 40.5 20 240 199 101 3 0",
        "socket 600000 0 0 20.0 20 250 229 101 3 1",
        "queue 500000 1 7 2 300",
        "queue 600000 1 5 2 360",
        "arrived 500000 server 280",
        "arrived 600000 server 340",
        "received 0 401 1000000",
    ]
    marks = ["r 0.55 1 2 tcp 1500 ----E-N 0 0.0 3.0 25 90", "r 0.7 1 2 tcp 1500 ----E-N 0 0.0 3.0 30 99"]
    write_raw(spec, said, marks, folder, "2.35")
    with (folder / "sockets.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["cwnd_segments"], first["inflight_segments"], first["delivered_segments"]) == ("40", "40", "200")
    assert (first["ca_state"], second["ca_state"]) == ("0", "2")
    assert (first["ssthresh_segments"], second["ssthresh_segments"]) == ("2147483647", "20")
    rows = (folder / "queues.csv").read_text().splitlines()[1:]
    assert rows[1] == f"600000,switch,switch-eth1,red,5,{5 * 1538},2,360,{360 * 1538},1"
    assert (folder / "arrivals.csv").read_text().splitlines()[1:] == ["500000,server,280,0", "600000,server,340,1"]
    (flow,) = json.loads((folder / "flows.json").read_text())
    assert (flow["bytes_received"], flow["goodput_bps"]) == (401 * 1448, 8 * 401 * 1448)
    parsed = parse_run(folder, "id", spec)
    assert misses(Evidence(spec, parsed.achieved, parsed.reports)) == ()
