# SPDX-License-Identifier: Apache-2.0
"""A run as the model of ns-3 reads it, what that one cannot do, and the raw files made of what it prints."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from conftest import cable_spec, delay_spec

from longfat.backends.ns3 import Ns3Backend, description, write_raw
from longfat.errors import RigError
from longfat.runspec import Flow, Probes, RunSpec

BACKEND = Ns3Backend(None, "3.37", ("ns-3 is not installed",))


def plain(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, probes=Probes())


def test_a_full_packet_takes_as_long_as_on_ethernet() -> None:
    link = next(line for line in description(plain(cable_spec())).splitlines() if line.startswith("link"))
    rate = int(link.split()[4])
    assert 1502 * 8 / rate == pytest.approx(1538 * 8 / 1e8, rel=1e-6)


def test_links_and_flows_name_their_nodes_by_number() -> None:
    lines = description(plain(delay_spec())).splitlines()
    assert lines[:2] == ["mtu 9000", "node 3"]
    assert [line.split()[:4] for line in lines if line.startswith("link")] == [
        ["link", "0", "1", "7500000"],
        ["link", "1", "2", "7500000"],
    ]
    assert next(line for line in lines if line.startswith("flow")).split()[:4] == ["flow", "0", "2", "TcpLinuxReno"]


def test_buffers_are_doubled_as_linux_does() -> None:
    flow = next(line for line in description(plain(delay_spec())).splitlines() if line.startswith("flow"))
    assert flow.split()[-2:] == [str(2 << 20), str(2 << 20)]


def test_what_the_model_does_not_have_is_refused() -> None:
    reasons = BACKEND.refuses(delay_spec(cca="bbr"))
    assert any("no congestion control 'bbr'" in reason for reason in reasons)
    assert any("backend ns3 has no captures" in reason for reason in reasons)
    assert any("backend ns3 has no deliberate drops" in reason for reason in reasons)


def test_one_sender_has_one_algorithm() -> None:
    spec = plain(cable_spec())
    both = dataclasses.replace(spec, flows=(*spec.flows, Flow("stream2", "client1", "server", "cubic", 1_000_000)))
    assert BACKEND.refuses(both) == ("client1 has flows of several algorithms",)


def test_a_machine_without_ns3_says_so() -> None:
    assert BACKEND.capabilities().reasons == ("ns-3 is not installed",)
    with pytest.raises(RigError, match="not installed"):
        BACKEND.run(plain(cable_spec()), Path("/nowhere"))


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


def test_an_unknown_line_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="unknown line: 'oops 1'"):
        write_raw(plain(cable_spec()), ["oops 1"], tmp_path, "3.37")
