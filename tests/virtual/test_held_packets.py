# SPDX-License-Identifier: Apache-2.0
"""Laws of aggregation: packets are held from the first arrival on, and leave together."""

from __future__ import annotations

from itertools import pairwise

import pytest
from packets import Packet, read_packets
from studies import done, planned

pytestmark = pytest.mark.virtual

HOLD_US, RTT_US = 7_000, 20_000
SEGMENT_US, ACK_US = 8 * (1514 + 24) / 50, 8 * (66 + 24) / 50
STUDY = """\
format: 2
study: example
title: One flow whose window is smaller than its path, where packets are held
algorithms: {standard: {cca: reno}}
defaults: {flow: {from: client1, to: server, duration: 3 s}}
experiments:
  - id: plain
    topology: {kind: delay, rate: 50 Mbit/s, rtt: 20 ms}
    flows: [{name: flow, algorithm: standard, window: 40 kB}]
    probes: {capture: [flow]}
  - {id: data, like: plain, topology: {aggregation: 7 ms}}
  - {id: acks, like: plain, topology: {reverse_aggregation: 7 ms}}
  - {id: full, like: acks, flows: [{name: flow, algorithm: standard, window: 1 MB}]}
  - {id: ordered, like: acks, topology: {jitter: 2 ms, jitter_order: kept}}
  - id: graph
    topology:
      kind: graph
      senders: [near]
      receivers: [far]
      links: [{between: [near, far], rate: 50 Mbit/s, rtt: 20 ms, loss: 0 %, reverse_aggregation: 7 ms}]
    flows: [{name: flow, from: near, to: far, algorithm: standard, window: 40 kB}]
    probes: {capture: [flow]}
"""
NAMES = ("plain", "data", "acks", "full", "ordered", "graph")


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Packet]]:
    """The captures at the sender of a valid run of each experiment."""
    specs, folder = planned(tmp_path_factory.mktemp("study") / "study.yaml", STUDY), tmp_path_factory.mktemp("runs")
    for name in NAMES:
        done(specs[name], folder / name)
    return {name: read_packets(folder / name / "captures/flow.pcap") for name in NAMES}


def bursts_us(packets: list[Packet]) -> list[int]:
    """The times between the beginnings of bursts of acknowledgments after the first second.

    The receiver's port sends those of one burst after each other.
    """
    own, start_us = packets[0].source_port, packets[0].time_us
    found = [one.time_us for one in packets if one.destination_port == own and one.time_us > start_us + 10**6]
    first = [later for earlier, later in pairwise(found) if later - earlier > 100]
    return [later - earlier for earlier, later in pairwise(first)]


@pytest.mark.parametrize("name", ["data", "acks", "graph"])
def test_a_lone_packet_waits_for_the_whole_time(captured: dict[str, list[Packet]], name: str) -> None:
    handshakes_us = {one: captured[one][1].time_us - captured[one][0].time_us for one in ("plain", name)}
    assert handshakes_us[name] - handshakes_us["plain"] == HOLD_US


def test_a_window_leaves_once_in_a_round_trip_and_the_time_held(captured: dict[str, list[Packet]]) -> None:
    # The time begins with the first packet: a segment, or an ACK of two.
    for name, segments in (("data", 1), ("acks", 2)):
        found = bursts_us(captured[name])[:-1]  # the last ends with the connection
        assert len(found) > 50
        assert max(abs(gap - (RTT_US + HOLD_US + segments * SEGMENT_US + ACK_US)) for gap in found) <= 1


def test_acknowledgments_of_a_full_link_come_in_bursts(captured: dict[str, list[Packet]]) -> None:
    found = bursts_us(captured["full"])
    assert min(found) >= HOLD_US and max(found) <= HOLD_US + 2 * SEGMENT_US + 1


def test_packets_whose_delay_varies_are_held_in_order(captured: dict[str, list[Packet]]) -> None:
    own = captured["ordered"][0].source_port
    numbers = [one.acknowledgement for one in captured["ordered"] if one.destination_port == own]
    assert numbers == sorted(numbers)
    assert min(bursts_us(captured["ordered"])) >= HOLD_US
