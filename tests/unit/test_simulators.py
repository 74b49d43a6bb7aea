# SPDX-License-Identifier: Apache-2.0
"""Runs as ns-2 and ns-3 read them, what these cannot do, and the raw files made of what ns-3 prints."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from bottleneck import planned
from conftest import cable_spec, delay_spec
from test_queues import RED

from longfat.backends.ns2 import Ns2Backend, script
from longfat.backends.ns3 import description, write_raw
from longfat.spec.runspec import Node, Probes, RunSpec


def lines(spec: RunSpec, word: str) -> list[str]:
    return [line for line in script(spec).splitlines() if line.startswith(f"{word} ")]


def test_red_is_set_in_packets_and_with_the_weight_of_the_kernel(tmp_path: Path) -> None:
    (port,) = (line for line in lines(planned(tmp_path, RED), "port") if " RED " in line)
    for words in ("RED 900", "thresh_ 50 maxthresh_ 150 linterm_ 10", "q_weight_ 0.015625", "setbit_ 1 gentle_ 0"):
        assert words in port


def test_a_parameter_without_a_model_is_refused(tmp_path: Path) -> None:
    spec = planned(tmp_path, RED)
    sender = Node("client1", "sender", {"net.ipv4.tcp_highspeed.current_window": "1"})
    flow = dataclasses.replace(spec.flows[0], cca="highspeed")
    bent = dataclasses.replace(spec, nodes=(sender, *spec.nodes[1:]), flows=(flow,))
    assert Ns2Backend(None, "2.35", ()).refuses(bent) == ("ns-2 has current_window = 0 only, and f1 has 1",)


def plain(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, probes=Probes())


def test_a_run_is_described_by_links_and_flows_between_numbered_nodes() -> None:
    lines = description(plain(delay_spec())).splitlines()
    assert lines[:2] == ["mtu 9000", "node 3"]
    assert [line.split()[:4] for line in lines if line.startswith("link")] == [
        ["link", "0", "1", "7500000"],
        ["link", "1", "2", "7500000"],
    ]
    flow = next(line for line in lines if line.startswith("flow")).split()
    assert flow[:4] == ["flow", "0", "2", "TcpLinuxReno"]
    assert flow[-2:] == [str(2 << 20), str(2 << 20)]  # Linux doubles the requested size


def test_a_full_packet_takes_as_long_as_on_ethernet() -> None:
    link = next(line for line in description(plain(cable_spec())).splitlines() if line.startswith("link"))
    assert 1502 * 8 / int(link.split()[4]) == pytest.approx(1538 * 8 / 1e8, rel=1e-6)


def test_printed_lines_become_raw_files(tmp_path: Path) -> None:
    lines = [
        "socket 100000 0 0 14480 65535 13032 1200 144800",
        "queue 100000 0 0 7 10514 1 100 150200",
        "queue 100000 0 1 0 0 0 50 2600",
        "received 0 36200000 3000000",
    ]
    write_raw(plain(cable_spec()), lines, tmp_path, "3.37")
    row = (tmp_path / "sockets.csv").read_text().splitlines()[1]
    assert row == "100000,stream1,0,1,0,10,45,9,1200,1200,,,144800,100,"
    assert (tmp_path / "queues.csv").read_text().splitlines()[1:] == [
        "100000,client1,client1-eth0,pfifo,7,10514,,100,150200,0"
    ]
    (flow,) = json.loads((tmp_path / "flows.json").read_text())
    assert flow["goodput_bps"] == round(8 * 36_200_000 / 3)
