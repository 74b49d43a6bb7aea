# SPDX-License-Identifier: Apache-2.0
"""TCP on the wire: complete captures, numbered streams; what observes a run or speeds it up moves no packet."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from guests import one_flow, run
from packets import Packet, read_packets

from longfat.guest.traffic import FIRST_PORT
from longfat.spec.runspec import Probes, RunSpec

pytestmark = pytest.mark.virtual

READ_SLACK_US = 3000  # a tenth of the RTT
PAYLOAD_LIMIT = {"net.ipv4.tcp_payload_limit": "65536"}


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def packets(spec: RunSpec, folder: Path) -> list[Packet]:
    return read_packets(run(spec, folder) / "captures/flow1.pcap")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with small queues as the kernel has them and a receiver whose reads fill their buffer."""
    return run(one_flow(), tmp_path_factory.mktemp("plain") / "run")


def test_a_capture_holds_every_packet_that_the_sender_sent_or_received(plain: Path) -> None:
    counters = read(plain, "counters.json")["client1"]
    count = read(plain, "achieved.json")["capture"]["flow1"]
    assert count["dropped"] == 0
    assert count["captured"] == counters["Tcp.OutSegs"] + counters["Tcp.InSegs"]
    assert len(read_packets(plain / "captures/flow1.pcap")) == count["captured"]


def test_small_queues_keep_a_local_queue_from_overflowing(plain: Path) -> None:
    assert read(plain, "flows.json")[0]["bytes_received"] > 10_000_000
    drops = {one["interface"]: one["drops"] for one in read(plain, "achieved.json")["interfaces"]}
    assert drops["client1-eth0"] == 0  # without them it overflows: test_era


def test_a_capture_that_is_to_lose_packets_loses_them_and_changes_nothing_else(plain: Path, tmp_path: Path) -> None:
    spec = one_flow()
    probes = dataclasses.replace(spec.probes, capture_loss_percent=20.0)
    lossy = run(dataclasses.replace(spec, probes=probes), tmp_path / "lossy")
    whole, left = (read_packets(folder / "captures/flow1.pcap") for folder in (plain, lossy))
    count = read(lossy, "achieved.json")["capture"]["flow1"]
    assert len(left) + count["removed"] == count["captured"] == len(whole)
    assert 0.18 < count["removed"] / count["captured"] < 0.22
    assert set(left) < set(whole)
    assert (lossy / "sockets.csv").read_bytes() == (plain / "sockets.csv").read_bytes()
    assert (lossy / "throughput/flow1.csv").read_bytes() != (plain / "throughput/flow1.csv").read_bytes()


def test_a_receiver_that_fills_its_buffer_changes_no_packet(tmp_path: Path) -> None:
    # Short: without the switch the receiver makes a system call for each packet.
    filling, plain = (
        packets(
            one_flow(mtu_bytes=1500, duration_us=400_000, receiver={"net.ipv4.tcp_recv_fill": value}), tmp_path / value
        )
        for value in ("1", "0")
    )
    assert len(filling) > 2000
    # Each direction for itself: some system calls of the reader cost a microsecond of virtual time, and what crosses
    # within that microsecond may pass the capture in either order. Times then drift by some tens of microseconds, and
    # a sender that waits for buffer space may be woken a burst later.
    for port in {packet.destination_port for packet in filling}:
        one, other = ([p for p in found if p.destination_port == port] for found in (filling, plain))
        assert [dataclasses.replace(p, time_us=0) for p in one] == [dataclasses.replace(p, time_us=0) for p in other]
        assert max(abs(p.time_us - q.time_us) for p, q in zip(one, other, strict=True)) <= READ_SLACK_US


def test_payload_that_is_not_copied_changes_no_packet(tmp_path: Path) -> None:
    limits = {"plain": {}, "sender": {"sender": PAYLOAD_LIMIT}, "receiver": {"receiver": PAYLOAD_LIMIT}}
    copied, *counted = (
        packets(one_flow(mtu_bytes=1500, duration_us=300_000, **own), tmp_path / name) for name, own in limits.items()
    )
    assert len(copied) > 3000
    assert counted == [copied, copied]


def moved(found: list[Packet]) -> list[tuple[int, bool, int, int, int]]:
    """When each packet went which way, its flags, window and length; its ports are drawn by the kernel."""
    return [(one.time_us, one.destination_port == FIRST_PORT, one.flags, one.window, one.length) for one in found]


def test_observing_moves_no_packet(tmp_path: Path) -> None:
    alone, watched = (
        moved(
            packets(
                dataclasses.replace(one_flow(duration_us=300_000), probes=Probes(every_us, every_us, ("flow1",))),
                tmp_path / str(every_us),
            )
        )
        for every_us in (None, 1000)
    )
    assert (tmp_path / "1000/sockets.csv").read_text().count("\n") > 290
    assert len(alone) > 2000
    assert alone == watched


def test_runs_that_differ_in_ports_alone_have_the_same_samples_of_each_stream(tmp_path: Path) -> None:
    spec = one_flow(duration_us=300_000)
    flow = dataclasses.replace(spec.flows[0], streams=8, window_bytes=64 << 10)
    eight = dataclasses.replace(spec, flows=(flow,), probes=Probes(socket_interval_us=50_000))
    first, second = (run(dataclasses.replace(eight, seed=seed), tmp_path / str(seed)) for seed in (1, 2))
    samples = (first / "sockets.csv").read_text()
    assert samples == (second / "sockets.csv").read_text()
    rows = [line.split(",") for line in samples.splitlines()[1:]]
    assert {row[2] for row in rows} == {str(number) for number in range(8)}
