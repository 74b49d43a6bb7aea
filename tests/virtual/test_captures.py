# SPDX-License-Identifier: Apache-2.0
"""Captures of one flow at its sender, behind the queue of its bottleneck and at its receiver."""

from __future__ import annotations

from pathlib import Path

import pytest
from packets import SYN, Packet, read_packets
from studies import done, specs_of

from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

PLACES = ("", "@bottleneck", "@receiver")
DELAY_US = 5_000
STUDY = """\
algorithms: {standard: {cca: reno}}
defaults: {flow: {from: client1, to: server, algorithm: standard, start: 100 ms, duration: 1500 ms}}
experiments:
  - id: queue
    topology:
      kind: dumbbell
      rate: 20 Mbit/s
      host_rate: 100 Mbit/s
      rtt: 10 ms
      senders: 1
      bottleneck_queue: {limit: 15}
    flows: [{name: bulk}]
    probes: {capture: [bulk], capture_at: [sender, bottleneck, receiver]}
  - {id: drop, like: queue, flows: [{name: bulk, window: 16 kB}], drops: [{at: 99 ms, packet: 1}]}
"""
specs = specs_of(STUDY)


def captured(folder: Path) -> dict[str, list[Packet]]:
    """Return the packets of the sending direction of each capture."""
    every = {place: read_packets(folder / f"captures/bulk{place}.pcap") for place in PLACES}
    return {place: [one for one in packets if one.destination_port == 5001] for place, packets in every.items()}


def test_what_the_queue_drops_is_in_the_capture_at_the_sender_alone(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    achieved = done(specs["queue"], tmp_path / "run").achieved
    packets = captured(tmp_path / "run")
    sent, left, received = (len(packets[place]) for place in PLACES)
    assert sent - left == sum(interface["drops"] for interface in achieved["interfaces"]) > 0
    assert received == left
    first = [packets[place][0] for place in PLACES]
    assert all(packet.flags & SYN for packet in first)
    assert first[0].time_us <= first[1].time_us < first[1].time_us + DELAY_US <= first[2].time_us
    assert [path.name for path in (tmp_path / "run/outstanding").iterdir()] == ["bulk.csv"]  # by the sender's capture


def test_a_deliberate_drop_takes_the_packet_of_its_number_even_a_syn(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    done(specs["drop"], tmp_path / "run")
    packets = captured(tmp_path / "run")
    sent, received = ([(packet.sequence, packet.flags) for packet in packets[place]] for place in ("", "@receiver"))
    assert received[:9] == sent[1:10]
    assert len(sent) - len(received) == 1
    assert sent[0][1] & SYN
