# SPDX-License-Identifier: Apache-2.0
"""A run as the model of ns-3 reads it, what that one cannot do, and the raw files made of what it prints."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from conftest import cable_spec, delay_spec

from longfat.backends.ns3 import description, write_raw
from longfat.spec.runspec import Probes, RunSpec


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
    assert row == "100000,stream1,0,1,0,10,45,9,1200,1200,0,0,144800,100,"
    assert (tmp_path / "queues.csv").read_text().splitlines()[1:] == [
        "100000,client1,client1-eth0,pfifo,7,10514,1,100,150200,0"
    ]
    (flow,) = json.loads((tmp_path / "flows.json").read_text())
    assert flow["goodput_bps"] == round(8 * 36_200_000 / 3)
