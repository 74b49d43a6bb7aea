# SPDX-License-Identifier: Apache-2.0
"""TCP on the wire: the effect of each switch, complete captures, goodput without late bytes, numbered streams."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from guests import one_flow, run
from packets import read_packets

from longfat.spec.runspec import Probes, RunSpec

pytestmark = pytest.mark.virtual

READ_SLACK_US = 3000  # a tenth of the RTT


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def drops(folder: Path, interface: str) -> int:
    interfaces = read(folder, "achieved.json")["interfaces"]
    return int(next(entry["drops"] for entry in interfaces if entry["interface"] == interface))


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


def test_the_throughput_of_a_full_path_is_its_rate_without_headers(plain: Path) -> None:
    with (plain / "throughput/flow1.csv").open(newline="") as file:
        values = [int(row["bytes_per_s"]) for row in csv.DictReader(file)]
    assert max(values) == pytest.approx(1e9 / 8 * 8948 / 9038, rel=0.001)


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
    captures = [
        run(
            one_flow(mtu_bytes=1500, duration_us=400_000, receiver={"net.ipv4.tcp_recv_fill": value}),
            tmp_path / value,
        )
        / "captures/flow1.pcap"
        for value in ("1", "0")
    ]
    filling, plain = (read_packets(path) for path in captures)
    assert len(filling) > 2000
    # Each direction for itself: some system calls of the reader cost a microsecond of virtual time, and what crosses
    # within that microsecond may pass the capture in either order. Times then drift by some tens of microseconds, and
    # a sender that waits for buffer space may be woken a burst later.
    for port in {packet.destination_port for packet in filling}:
        one, other = ([p for p in packets if p.destination_port == port] for packets in (filling, plain))
        assert [dataclasses.replace(p, time_us=0) for p in one] == [dataclasses.replace(p, time_us=0) for p in other]
        assert max(abs(p.time_us - q.time_us) for p, q in zip(one, other, strict=True)) <= READ_SLACK_US


def test_small_queues_keep_a_local_queue_from_overflowing(plain: Path) -> None:
    assert read(plain, "flows.json")[0]["bytes_received"] > 10_000_000
    assert drops(plain, "client1-eth0") == 0


def test_without_small_queues_a_local_queue_of_100_packets_overflows(tmp_path: Path) -> None:
    folder = run(one_flow(sender={"net.ipv4.tcp_small_queues": "0"}), tmp_path / "run")
    lost = drops(folder, "client1-eth0")
    assert lost > 0
    with (folder / "queues.csv").open(newline="") as table:
        rows = [row for row in csv.DictReader(table) if row["interface"] == "client1-eth0"]
    assert int(rows[-1]["drops_total"]) == lost
    assert max(int(row["backlog_packets"]) for row in rows) <= 100
    # What the own host drops was never sent: TCP slows down without a retransmission.
    assert "Tcp.RetransSegs" not in read(folder, "counters.json")["client1"]


def test_no_flow_of_transfers_exceeds_its_path(tmp_path: Path) -> None:
    spec = one_flow(duration_us=500_000, mtu_bytes=1500)
    ends = [
        dataclasses.replace(end, egress=dataclasses.replace(end.egress, rate_bps=end.egress.rate_bps and 10_000_000))
        for link in spec.links
        for end in (link.a, link.b)
    ]
    links = tuple(
        dataclasses.replace(link, a=ends[2 * number], b=ends[2 * number + 1]) for number, link in enumerate(spec.links)
    )
    flow = dataclasses.replace(spec.flows[0], transfer_bytes=400_000, window_bytes=None)
    folder = run(dataclasses.replace(spec, links=links, flows=(flow,)), tmp_path / "run")
    (report,) = json.loads((folder / "flows.json").read_text())
    under_way = json.loads((folder / "iperf" / "flow1.end.json").read_text())
    assert len(under_way) == 1
    assert 6_000_000 < report["goodput_bps"] <= 10_000_000 * 1448 / 1538
    assert report["bytes_sent"] > report["bytes_received"]


def eight_streams(seed: int) -> RunSpec:
    spec = one_flow(seed=seed, duration_us=300_000)
    flow = dataclasses.replace(spec.flows[0], streams=8, window_bytes=64 << 10)
    return dataclasses.replace(spec, flows=(flow,), probes=Probes(socket_interval_us=50_000))


def test_runs_that_differ_in_ports_alone_have_the_same_samples_of_each_stream(tmp_path: Path) -> None:
    first, second = (run(eight_streams(seed), tmp_path / str(seed)) for seed in (1, 2))
    samples = (first / "sockets.csv").read_text()
    assert samples == (second / "sockets.csv").read_text()
    rows = [line.split(",") for line in samples.splitlines()[1:]]
    assert {row[2] for row in rows} == {str(number) for number in range(8)}
