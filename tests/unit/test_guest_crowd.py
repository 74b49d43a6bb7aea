# SPDX-License-Identifier: Apache-2.0
"""Many flows by few processes: from how many on, and what both ends report."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import pytest
from needs import free_ports

from longfat.guest import traffic
from longfat.spec.runspec import Flow, Probes, RunSpec

FLOWS = [Flow(f"f{n}", "client1", "server", "reno", 300_000, None, streams=1 + n, start_us=50_000 * n) for n in (1, 2)]


def started(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *command[1:]], stdout=subprocess.PIPE, text=True)


def test_both_ends_report_every_connection_with_its_bytes_and_its_start() -> None:
    ports = free_ports(len(FLOWS))
    receiver = started(traffic.crowd_receiver(zip(FLOWS, ports, strict=True)))
    orders = [(flow, "127.0.0.1", port) for flow, port in zip(FLOWS, ports, strict=True)]
    while not listening(ports):
        assert receiver.poll() is None
    sender = started(traffic.crowd_sender(orders, time.monotonic_ns()))
    sent, received = sender.communicate(timeout=30)[0], receiver.communicate(timeout=30)[0]
    assert (sender.returncode, receiver.returncode) == (0, 0)
    for flow, port in zip(FLOWS, ports, strict=True):
        ends = [
            "".join(line + "\n" for line in text.splitlines() if line.split(",")[column] == str(port))
            for text, column in ((sent, 4), (received, 2))
        ]
        (sent_bytes, _), (received_bytes, rate) = (traffic.parse_report(text, flow.streams) for text in ends)
        assert sent_bytes == received_bytes > 0
        assert 8 * received_bytes / rate == pytest.approx(flow.duration_us / 1e6, abs=0.25)


def listening(ports: list[int]) -> bool:
    with open("/proc/self/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A"} >= set(ports)


def test_flows_share_processes_from_200_connections_on() -> None:
    flow = FLOWS[0]
    one = RunSpec((), (), (), Probes(), 1)
    flows = tuple(replace(flow, name=f"f{n}", streams=1) for n in range(200))
    few, many = replace(one, flows=flows[1:]), replace(one, flows=flows)
    assert traffic.crowd(few) == {}
    assert len(traffic.crowd(many)) == 200
    limited = replace(one, flows=(*flows, replace(flow, name="app", rate_bps=1_000_000)))
    assert "app" not in traffic.crowd(limited)
