# SPDX-License-Identifier: Apache-2.0
"""Rates, delays and outages that change: each bit leaves when the steps say so, and traces give what they list."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from guests import ask
from studies import done, planned, samples

from longfat.spec.network import capacity_bits, lay_out, steps
from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

# Sends raw frames at once, sets the wire anew at some times, and tells when each frame arrived (ns since the sending).
PROGRAM = """
import ctypes, os, socket, struct, subprocess, time
from longfat.guest import netlink
from longfat.guest.wire import Wire, read_wires
os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
ctypes.CDLL(None).prctl(29, 1)  # PR_SET_TIMERSLACK
time.sleep(0.1)
subprocess.run(["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"], check=True)
for name in ("v0", "v1"):
    subprocess.run(["ip", "link", "set", name, "up"], check=True)
subprocess.run("tc qdisc replace dev v0 root handle 10: pfifo limit 1000".split(), check=True)
channel, index = netlink.open_socket(socket.NETLINK_ROUTE), socket.if_nametoindex("v0")
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
sender.setsockopt(socket.SOL_SOCKET, 32, 1 << 24)  # SO_SNDBUFFORCE
sender.bind(("v0", 0x88B5))
receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
receiver.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
receiver.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
receiver.bind(("v1", 0x88B5))
answer = []
for lengths, changes in {cases!r}:
    netlink.change(channel, [Wire(*changes[0][1]).request(index)])
    before, sent, wall = read_wires()["v0"], time.monotonic_ns(), time.time_ns()
    for length in lengths:
        sender.send((b"\\xff" * 12 + b"\\x88\\xb5").ljust(length, b"\\0"))
    done = [0]
    for at_ns, wire in changes[1:]:
        time.sleep(max(0, sent + at_ns - time.monotonic_ns()) / 1e9)
        done.append(time.monotonic_ns() - sent)
        netlink.change(channel, [Wire(*wire).request(index)])
    times = []
    for length in lengths:
        data, control, _flags, _address = receiver.recvmsg(10000, 64)
        seconds, nanoseconds = struct.unpack("qq", control[0][2])
        times.append(seconds * 10**9 + nanoseconds - wall)
    used = read_wires()["v0"]
    answer.append([times, done, used.sent_bytes - before.sent_bytes, used.offered_bits - before.offered_bits])
"""
FRAMING = 24
WireNumbers = tuple[int, int, int, bool]  # rate (bit/s), delay (ns), framing, held
Case = tuple[list[int], list[tuple[int, WireNumbers]]]


def ideal(lengths: list[int], changes: list[tuple[int, WireNumbers]]) -> Iterator[Fraction]:
    """When each frame's last bit is at the other end, in ns: bits leave at the rate of the time, in order."""
    now, place, last = Fraction(0), 0, Fraction(0)
    for length in lengths:
        bits = Fraction(8 * (length + FRAMING))
        while True:
            rate, delay, _, held = changes[place][1]
            end = changes[place + 1][0] if place + 1 < len(changes) else None
            needed = None if held else bits * 10**9 / rate
            if needed is not None and (end is None or now + needed <= end):
                now += needed
                break
            assert end is not None
            bits -= 0 if held else (end - now) * rate / 10**9
            now, place = Fraction(end), place + 1
        last = max(last, now + delay)
        yield last


def test_each_bit_leaves_at_the_rate_of_its_time_and_none_overtakes() -> None:
    fast, slow, held = (10**7, 0, FRAMING, False), (10**5, 0, FRAMING, False), (10**7, 0, FRAMING, True)
    far, near = (10**7, 50_000_000, FRAMING, False), (10**7, 1_000_000, FRAMING, False)
    ms = 10**6
    cases: list[Case] = [
        ([1514] * 20, [(0, fast), (5 * ms, slow), (333 * ms, fast)]),
        ([60, 1514, 590] * 8, [(0, slow), (7 * ms, held), (1000 * ms, fast)]),
        ([1514] * 30, [(0, far), (10 * ms, near), (15 * ms, held), (40 * ms, far), (47 * ms, near)]),
        ([1514] * 10, [(0, held), (3 * ms, far), (3 * ms + 1000, held), (9 * ms, slow), (11 * ms, fast)]),
        ([590] * 200, [(k * ms, (1_230_400 * (1 + k * 7 % 5), 5 * ms, FRAMING, k * 3 % 7 == 1)) for k in range(400)]),
    ]
    for (lengths, changes), (times, at, sent, offered) in zip(cases, ask(PROGRAM.format(cases=cases)), strict=True):
        assert max(found - wanted for found, (wanted, _) in zip(at, changes, strict=True)) <= 2
        wanted = ideal(lengths, [(when, wire) for when, (_, wire) in zip(at, changes, strict=True)])
        assert max(abs(found - time) for found, time in zip(times, wanted, strict=True)) <= 2
        assert sent == sum(lengths) + FRAMING * len(lengths)
        assert abs(8 * sent - offered) <= len(changes) + 1  # a part of a bit is cut at each change


SERIES = """\
time (s),rate (Mbit/s),rtt (ms)
0.1,17,30
0.5,0,30
0.62,6.5,61
1.3,9,24
"""
STUDY = """\
format: 2
study: example
title: Paths that change
algorithms: {standard: {cca: cubic}}
defaults: {flow: {from: client1, to: server, duration: 6 s}}
paths:
  line:
    kind: dumbbell
    rate: 20 Mbit/s
    host_rate: 1 Gbit/s
    rtt: 20 ms
    senders: 1
    bottleneck_queue: {limit: 200}
experiments:
  - id: trace
    path: line
    topology: {trace: radio.trace}
    flows: [{name: flow, algorithm: standard, duration: 3 s}]
    probes: {queues: 20 ms}
  - id: handover
    path: line
    topology:
      changes:
        - {at: 2 s, rate: 5 Mbit/s}
        - {at: 3 s, outage: 500 ms}
        - {at: 4 s, rate: 20 Mbit/s, rtt: 80 ms}
    flows: [{name: flow, algorithm: standard}]
    probes: {queues: 20 ms}
  - id: series
    path: line
    topology: {trace: satellite.csv}
    flows: [{name: flow, algorithm: standard, duration: 4 s}]
    probes: {queues: 20 ms}
  - id: seldom
    path: line
    topology: {trace: seldom.trace}
    flows: [{name: flow, algorithm: standard, duration: 2 s}]
"""


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunSpec]:
    folder = tmp_path_factory.mktemp("study")
    # None to three packets in a millisecond, 1.4 of them on average, and a tenth of each second none at all.
    lines = [ms for ms in range(1, 1001) for _ in range((ms * 7919 + ms // 13) % 4) if not 500 <= ms < 600]
    (folder / "radio.trace").write_text("\n".join(map(str, lines)) + "\n")
    (folder / "satellite.csv").write_text(SERIES)
    (folder / "seldom.trace").write_text("4\n9\n")
    return {name.split()[0]: spec for name, spec in planned(folder / "study.yaml", STUDY).items()}


def carried(rows: list[dict[str, Any]]) -> Iterator[tuple[int, int, int]]:
    """Between samples of a queue that was not empty at either: since when, until when, and how many bytes left."""
    for row, then in pairwise(rows):
        if row["backlog_packets"] and then["backlog_packets"]:
            yield row["t_us"], then["t_us"], then["sent_bytes"] - row["sent_bytes"]


@pytest.mark.parametrize("name", ["trace", "series"])
def test_a_trace_carries_what_it_lists(specs: dict[str, RunSpec], tmp_path: Path, name: str) -> None:
    spec = specs[name]
    parsed = done(spec, tmp_path / "run")
    (port,) = (port for port in lay_out(spec).ports["switch"] if port.egress.trace or port.egress.changes)
    ways = steps(port.egress, spec.end_us)
    found = list(carried(samples(parsed, spec, "switch")))
    assert len(found) > 50
    for since_us, until_us, size in found:
        assert abs(size - capacity_bits(ways, until_us, since_us) / 8) <= port.frame_bytes, since_us
    received = sum(report["goodput_bps"] for report in parsed.reports) * spec.end_us / 8e6
    assert 0 < received < capacity_bits(ways, parsed.end_us or spec.end_us) / 8


def test_after_the_measurement_nothing_leaves_faster_than_the_trace_lets_it(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    parsed = done(specs["seldom"], tmp_path / "run")
    assert parsed.end_us and parsed.end_us > 2_200_000  # the queue's packets take 0.9 s
    most_bps = 2 * 1448 * 8 / 0.009
    assert 0.9 * most_bps < parsed.reports[0]["goodput_bps"] < 1.005 * most_bps


def test_steps_and_an_outage_are_what_the_path_carries(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["handover"]
    parsed = done(spec, tmp_path / "run")
    rows = samples(parsed, spec, "switch")
    phases = {(2_000_000, 3_000_000): 5e6, (3_000_000, 3_500_000): 0.0, (3_600_000, 4_000_000): 5e6}
    for (since_us, until_us), rate_bps in phases.items():
        within = [row for row in rows if since_us <= row["t_us"] <= until_us]
        sizes = [size for _, _, size in carried(within)]
        assert len(sizes) >= 15
        assert abs(sum(sizes) - len(sizes) * 0.02 * rate_bps / 8) <= 2 * 1538
    rtts = [row["srtt_us"] for row in parsed.tables["sockets"].to_pylist() if row["t_us"] > 5_000_000]
    assert min(rtts) >= 80_000
