# SPDX-License-Identifier: Apache-2.0
"""Runs in ns-2: the script, the parts that it lacks, and the raw files from its output and traces."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from bottleneck import planned
from conftest import cable_spec
from test_queues import RED

from longfat.backends.ns2 import Ns2Backend, script
from longfat.spec.runspec import Node, RunSpec

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
    (port,) = (line for line in lines(planned(tmp_path, RED), "port") if " RED " in line)
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


def test_a_parameter_without_a_model_is_refused(tmp_path: Path) -> None:
    bent = highspeed(planned(tmp_path, RED), **{"net.ipv4.tcp_highspeed.current_window": "1"})
    assert BACKEND.refuses(bent) == ("ns-2 has current_window = 0 only, and f1 has 1",)
