# SPDX-License-Identifier: Apache-2.0
"""What makes a run cheap or looks at it changes no packet."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from guests import one_flow, run
from packets import Packet, read_packets

from longfat.guest.traffic import FIRST_PORT
from longfat.spec.runspec import Probes, RunSpec

pytestmark = pytest.mark.virtual

PAYLOAD_LIMIT = {"net.ipv4.tcp_payload_limit": "65536"}


def packets(spec: RunSpec, folder: Path) -> list[Packet]:
    return read_packets(run(spec, folder) / "captures/flow1.pcap")


def moved(found: list[Packet]) -> list[tuple[int, bool, int, int, int]]:
    """When each packet went which way, its flags, window and length; its ports are drawn by the kernel."""
    return [(one.time_us, one.destination_port == FIRST_PORT, one.flags, one.window, one.length) for one in found]


def test_observing_moves_no_packet(tmp_path: Path) -> None:
    spec = one_flow(mtu_bytes=9000, duration_us=300_000)
    nothing = dataclasses.replace(
        spec, probes=Probes(socket_interval_us=None, queue_interval_us=None, capture=("flow1",))
    )
    everything = Probes(socket_interval_us=1000, queue_interval_us=1000, capture=("flow1",))
    observed = dataclasses.replace(spec, probes=everything)
    alone, watched = (moved(packets(*one)) for one in ((nothing, tmp_path / "alone"), (observed, tmp_path / "watched")))
    assert (tmp_path / "watched/sockets.csv").read_text().count("\n") > 290
    assert len(alone) > 2000
    assert alone == watched


def test_payload_that_is_not_copied_changes_no_packet(tmp_path: Path) -> None:
    limits = {"plain": {}, "sender": {"sender": PAYLOAD_LIMIT}, "receiver": {"receiver": PAYLOAD_LIMIT}}
    copied, *counted = (
        packets(one_flow(mtu_bytes=1500, duration_us=300_000, **own), tmp_path / name) for name, own in limits.items()
    )
    assert len(copied) > 3000
    assert counted == [copied, copied]
