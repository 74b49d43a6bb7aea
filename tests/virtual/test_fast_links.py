# SPDX-License-Identifier: Apache-2.0
"""TCP fills links above 1 Gbit/s to their last bit, and the run is valid."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from guests import run, virtual

from longfat.dataset.parse import parse_run
from longfat.guest.sockets import TCP_CLOSE
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Egress, Flow, Interface, Link, Node, Probes, Queue, RunSpec
from longfat.study.traffic import misses

pytestmark = pytest.mark.virtual

HEADERS_BYTES = 20 + 20 + 12  # IPv4, TCP, time stamps
FRAME_BYTES = 14 + 24  # Ethernet's header; preamble, check sequence and gap


def cable(rate_bps: int, mtu_bytes: int) -> RunSpec:
    """One flow of 60 ms over a cable of 100 us, with windows and a queue that keep it busy."""
    limits = {"net.core.rmem_max": str(64 << 20), "net.core.wmem_max": str(64 << 20)}
    end = Egress(rate_bps, queue=Queue(limit_packets=20_000), delay_us=50)
    return RunSpec(
        nodes=(Node("client1", "sender", limits), Node("server", "receiver", limits | {"net.ipv4.tcp_recv_fill": "1"})),
        links=(Link(Interface("client1", end), Interface("server", end), mtu_bytes),),
        flows=(Flow("flow1", "client1", "server", "reno", 60_000, 8 << 20),),
        probes=Probes(socket_interval_us=1000, queue_interval_us=1000),
        seed=1,
        pins=virtual().pins(),
    )


@pytest.mark.parametrize(
    ("rate_bps", "mtu_bytes"),
    [(2_400_000_000, 1500), (40_000_000_000, 9000)],
)
def test_a_flow_has_all_that_its_link_can_carry(tmp_path: Path, rate_bps: int, mtu_bytes: int) -> None:
    spec = cable(rate_bps, mtu_bytes)
    folder = run(spec, tmp_path / "run")
    parsed = parse_run(folder, "id", spec)
    assert misses(Evidence(spec, parsed.achieved, parsed.reports, end_us=parsed.end_us)) == ()
    with (folder / "sockets.csv").open(newline="") as file:
        sampled = [row for row in csv.DictReader(file) if int(row["state"]) != TCP_CLOSE]  # that one is to a tick
    rows = [(int(row["t_us"]), int(row["bytes_acked"])) for row in sampled]
    (begin_us, begin), (end_us, end) = rows[20], rows[-1]
    payload = (mtu_bytes - HEADERS_BYTES) / (mtu_bytes + FRAME_BYTES)
    # Acknowledgements tell of two segments at a time, and samples fall between them.
    few_segments = 4 * mtu_bytes / (end - begin)
    assert 8e6 * (end - begin) / (end_us - begin_us) == pytest.approx(rate_bps * payload, rel=0.001 + few_segments)
