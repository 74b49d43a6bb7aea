# SPDX-License-Identifier: Apache-2.0
"""Captures of one flow at its sender, behind the queue of its bottleneck and at its receiver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guests import run, virtual
from packets import SYN, Packet, read_packets

from longfat.spec.runspec import DeliberateDrop, Egress, Flow, Interface, Link, Node, Probes, Queue, RunSpec

pytestmark = pytest.mark.virtual

PLACES = ("", "@bottleneck", "@receiver")
DELAY_US = 5_000


def spec_of(duration_us: int, *drops: DeliberateDrop) -> RunSpec:
    """A flow that overflows a queue of 15 packets at 20 Mbit/s."""
    fast, slow = Egress(100_000_000), Egress(20_000_000, queue=Queue(limit_packets=15))
    delayed = Egress(delay_us=DELAY_US, drops=drops)
    return RunSpec(
        nodes=(
            Node("client1", "sender"),
            Node("switch", "router", {"net.ipv4.ip_forward": "1"}),
            Node("delay", "router", {"net.ipv4.ip_forward": "1"}),
            Node("server", "receiver"),
        ),
        links=(
            Link(Interface("client1", fast), Interface("switch", fast)),
            Link(Interface("switch", slow), Interface("delay", fast)),
            Link(Interface("delay", delayed), Interface("server", fast)),
        ),
        flows=(Flow("bulk", "client1", "server", "reno", duration_us),),
        probes=Probes(capture=("bulk",), capture_at=("sender", "bottleneck", "receiver")),
        seed=1,
        pins=virtual().pins(),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run of two seconds."""
    return run(spec_of(2_000_000), tmp_path_factory.mktemp("captures") / "run")


@pytest.fixture(scope="module")
def packets(folder: Path) -> dict[str, list[Packet]]:
    """The packets of each capture."""
    return {place: read_packets(folder / f"captures/bulk{place}.pcap") for place in PLACES}


def test_what_the_queue_drops_is_in_the_capture_at_the_sender_alone(
    folder: Path, packets: dict[str, list[Packet]]
) -> None:
    interfaces = json.loads((folder / "achieved.json").read_text())["interfaces"]
    drops = sum(interface["drops"] for interface in interfaces)
    sent, left, received = (len(to_server(packets[place])) for place in PLACES)
    assert sent - left == drops > 0
    assert received == left


def to_server(every: list[Packet]) -> list[Packet]:
    """The packets of the sending direction."""
    return [packet for packet in every if packet.destination_port == 5001]


def test_each_capture_begins_with_the_connection_s_first_packet_at_that_place(
    packets: dict[str, list[Packet]],
) -> None:
    first = [packets[place][0] for place in PLACES]
    assert all(packet.flags & SYN for packet in first)
    assert first[0].time_us <= first[1].time_us < first[1].time_us + DELAY_US <= first[2].time_us


def test_the_series_of_tcptrace_come_from_the_capture_at_the_sender(folder: Path) -> None:
    assert [path.name for path in (folder / "outstanding").iterdir()] == ["bulk.csv"]


def test_a_deliberate_drop_takes_the_packet_of_its_number_even_a_syn(tmp_path: Path) -> None:
    run(spec_of(1_500_000, DeliberateDrop(0, 1)), tmp_path / "run")
    left, received = (
        [
            (packet.sequence, packet.flags)
            for packet in to_server(read_packets(tmp_path / f"run/captures/bulk{place}.pcap"))
        ]
        for place in ("@bottleneck", "@receiver")
    )
    assert received[:9] == left[1:10]
    assert len(left) - len(received) == 1
    assert left[0][1] & SYN
