# SPDX-License-Identifier: Apache-2.0
"""Laws of packets that are held: aggregation on a path, interrupts of cards, and hosts that take time for a packet."""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path

import pytest
from packets import SYN, Packet, read_packets
from studies import done, specs_of

from longfat.spec.network import lay_out
from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

HOLD_US, RTT_US = 7_000, 20_000
PAYLOAD_BITS = 8 * 1448
SEGMENT_US, ACK_US = 8 * (1514 + 24) / 50, 8 * (66 + 24) / 50
STUDY = """\
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
  - id: fast
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 10 ms}
    flows: [{name: flow, algorithm: standard, window: 1 MiB, duration: 2 s}]
    probes: {capture: [flow]}
  - {id: moderated, like: fast, hosts: {interrupt_moderation: 200 us}}
  - {id: both, like: fast, hosts: {interrupt_moderation: 200 us, packet_time: 30 us, input_queue: 1000}}
  - {id: busy, like: fast, hosts: {packet_time: 100 us, input_queue: 50}}
"""
specs = specs_of(STUDY)


@pytest.fixture(scope="module")
def captured(specs: dict[str, RunSpec], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Packet]]:
    """The captures at the sender of a valid run of each experiment but ``busy``."""
    folder = tmp_path_factory.mktemp("runs")
    for name in specs.keys() - {"busy"}:
        done(specs[name], folder / name)
    return {path.name: read_packets(path / "captures/flow.pcap") for path in folder.iterdir()}


def handshake_us(packets: list[Packet]) -> int:
    """Return the time from the SYN to its answer."""
    asked, answered = packets[:2]
    assert asked.flags == SYN and answered.flags & SYN
    return answered.time_us - asked.time_us


def acknowledgments(packets: list[Packet]) -> list[Packet]:
    """Return the acknowledgments of the flow after its first second."""
    own, start_us = packets[0].source_port, packets[0].time_us
    return [one for one in packets if one.destination_port == own and one.time_us > start_us + 10**6]


def bursts_us(packets: list[Packet]) -> list[int]:
    """Return the times between the beginnings of bursts of acknowledgments after the first second.

    The receiver's port sends those of one burst after each other.
    """
    found = [one.time_us for one in acknowledgments(packets)]
    first = [later for earlier, later in pairwise(found) if later - earlier > 100]
    return [later - earlier for earlier, later in pairwise(first)]


@pytest.mark.parametrize(
    ("name", "plain", "held_us"),
    [
        ("data", "plain", HOLD_US),
        ("acks", "plain", HOLD_US),
        ("graph", "plain", HOLD_US),
        ("moderated", "fast", 2 * 200),
        ("both", "fast", 2 * (200 + 30)),
    ],
)
def test_a_lone_packet_waits_for_the_whole_time(
    captured: dict[str, list[Packet]], name: str, plain: str, held_us: int
) -> None:
    assert handshake_us(captured[name]) - handshake_us(captured[plain]) == held_us


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
    numbers = [one.acknowledgement for one in acknowledgments(captured["ordered"])]
    assert numbers == sorted(numbers)
    assert min(bursts_us(captured["ordered"])) >= HOLD_US


def test_interrupts_hand_over_packets_in_bunches(captured: dict[str, list[Packet]]) -> None:
    segments = {}
    for name in ("fast", "moderated"):
        found = acknowledgments(captured[name])
        times = sorted({one.time_us for one in found})
        assert (min(later - earlier for earlier, later in pairwise(times)) >= 200) is (name == "moderated")
        segments[name] = (found[-1].acknowledgement - found[0].acknowledgement) / 1448 / (len(times) - 1)
    assert segments["fast"] == pytest.approx(2, rel=0.01)
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
