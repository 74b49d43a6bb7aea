# SPDX-License-Identifier: Apache-2.0
"""Laws of cards and busy hosts: interrupts hand over in bunches, and a host takes packets one after the other."""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path

import pytest
from packets import SYN, Packet, read_packets
from studies import done, planned

from longfat.spec.network import lay_out
from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: example
title: One flow between hosts whose cards and time for packets are stated
algorithms: {standard: {cca: reno}}
defaults: {flow: {from: client1, to: server, duration: 2 s}}
experiments:
  - id: plain
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 10 ms}
    flows: [{name: flow, algorithm: standard, window: 1 MiB}]
    probes: {capture: [flow]}
  - {id: moderated, like: plain, hosts: {interrupt_moderation: 200 us}}
  - {id: busy, like: plain, hosts: {packet_time: 100 us, input_queue: 50}}
  - {id: both, like: plain, hosts: {interrupt_moderation: 200 us, packet_time: 30 us, input_queue: 1000}}
"""
PAYLOAD_BITS = 8 * 1448


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunSpec]:
    return planned(tmp_path_factory.mktemp("study") / "study.yaml", STUDY)


@pytest.fixture(scope="module")
def captured(specs: dict[str, RunSpec], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Packet]]:
    """The captures at the sender of a valid run of each experiment but ``busy``."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("plain", "moderated", "both"):
        done(specs[name], folder / name)
    return {name: read_packets(folder / name / "captures/flow.pcap") for name in ("plain", "moderated", "both")}


def acknowledgments(packets: list[Packet]) -> list[Packet]:
    """Those of the flow after its first second."""
    own, start_us = packets[0].source_port, packets[0].time_us
    return [one for one in packets if one.destination_port == own and one.time_us > start_us + 10**6]


def test_an_interrupt_comes_so_long_after_a_packet_at_both_ends(captured: dict[str, list[Packet]]) -> None:
    handshakes_us = {}
    for name in ("plain", "moderated", "both"):
        asked, answered = captured[name][:2]
        assert asked.flags == SYN and answered.flags & SYN
        handshakes_us[name] = answered.time_us - asked.time_us
    assert handshakes_us["moderated"] - handshakes_us["plain"] == 2 * 200
    assert handshakes_us["both"] - handshakes_us["plain"] == 2 * (200 + 30)


def test_interrupts_hand_over_packets_in_bunches(captured: dict[str, list[Packet]]) -> None:
    segments = {}
    for name in ("plain", "moderated"):
        found = acknowledgments(captured[name])
        times = sorted({one.time_us for one in found})
        assert (min(later - earlier for earlier, later in pairwise(times)) >= 200) is (name == "moderated")
        segments[name] = (found[-1].acknowledgement - found[0].acknowledgement) / 1448 / (len(times) - 1)
    assert segments["plain"] == pytest.approx(2, rel=0.01)
    # In 200 us 16 full packets cross the wire. A window is not always a multiple of them.
    assert 8 < segments["moderated"] <= 17


def test_a_busy_host_takes_one_packet_after_the_other(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    parsed = done(specs["busy"], tmp_path / "busy")
    (flow,) = parsed.tables["flows"].to_pylist()
    assert 0.9 < flow["goodput_bps"] / (PAYLOAD_BITS / 100e-6) <= 1
    (card,) = (port for port in lay_out(specs["busy"]).all_ports() if port.egress.card and port.peer == "server")
    dropped = {row["interface"]: row["drops"] for row in parsed.tables["achieved"].to_pylist()}
    assert dropped.pop(card.name) > 0
    assert not any(dropped.values())


def test_a_bunch_is_spread_by_the_time_for_each_packet(captured: dict[str, list[Packet]]) -> None:
    times = [one.time_us for one in acknowledgments(captured["both"])]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) >= 30
    assert statistics.median(gaps) == 30  # acknowledgments come in bunches to their card too
