# SPDX-License-Identifier: Apache-2.0
"""Wires keep their rate and delay to the nanosecond, at any rate and any length of frames."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from guests import ask

pytestmark = pytest.mark.virtual

FRAMING_BYTES = 24
ETHERNET_HEADER_BYTES = 14
RATES_BPS = (10_000, 1_000_000, 100_000_000, 622_000_000, 1_000_000_000, 2_400_000_000, 10_000_000_000, 40_000_000_000)
MTUS = (576, 1500, 9000)

# Sends raw frames of the given lengths at once and tells when the first was sent and when each arrived (ns).
PROGRAM = """
import os, socket, struct, subprocess, time
from longfat.guest import netlink
from longfat.guest.wire import Wire, read_wires
os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
time.sleep(0.1)  # timers are those of the jiffies until the first of them has passed
answer = []
subprocess.run(["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"], check=True)
SO_TIMESTAMPNS, SO_SNDBUFFORCE, SO_RCVBUFFORCE = 35, 32, 33
for rate, delay, lengths in {cases!r}:
    for name in ("v0", "v1"):
        subprocess.run(["ip", "link", "set", name, "mtu", "9000", "up"], check=True)
    subprocess.run("tc qdisc replace dev v0 root handle 10: pfifo limit 1000".split(), check=True)
    wire = Wire(rate, delay, {framing})
    netlink.change(netlink.open_socket(socket.NETLINK_ROUTE), [wire.request(socket.if_nametoindex("v0"))])
    before = read_wires()["v0"]  # its counters go on over a change of its settings
    assert before.wire == wire
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 24)
    sender.bind(("v0", 0x88B5))
    receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.bind(("v1", 0x88B5))

    sent = time.time_ns()
    for length in lengths:
        sender.send((b"\\xff" * 12 + b"\\x88\\xb5").ljust(length, b"\\0"))
    times = []
    for length in lengths:
        data, control, _flags, _address = receiver.recvmsg(10000, 64)
        assert len(data) == length
        seconds, nanoseconds = struct.unpack("qq", control[0][2])
        times.append(seconds * 10**9 + nanoseconds - sent)
    used = read_wires()["v0"]
    sent_bytes, busy_ns = used.sent_bytes - before.sent_bytes, used.busy_ns - before.busy_ns
    assert not rate or sent_bytes == sum(lengths) + len(lengths) * {framing}
    assert not rate or abs(busy_ns - sent_bytes * 8e9 / rate) <= 1, (rate, before, used)
    sender.close()
    receiver.close()
    answer.append(times)
"""


def arrivals(cases: list[tuple[int, int, list[int]]]) -> Any:
    """For each case of rate (bit/s), delay (ns) and frame lengths (bytes): when each frame arrived, in ns."""
    return ask(PROGRAM.format(cases=cases, framing=FRAMING_BYTES))


def ideal(rate_bps: int, delay_ns: int, lengths: list[int]) -> list[Fraction]:
    """When the last bit of each frame is at the other end, where all are ready at 0 ns."""
    bits, times = 0, []
    for length in lengths:
        bits += 8 * (length + FRAMING_BYTES)
        times.append(Fraction(bits * 10**9, rate_bps) + delay_ns)
    return times


def test_each_frame_arrives_when_its_last_bit_does_whatever_rate_and_length() -> None:
    full = [mtu + ETHERNET_HEADER_BYTES for mtu in MTUS]
    cases = [(rate, 0, [length] * 200) for rate in RATES_BPS for length in full]
    for (rate, delay, lengths), found in zip(cases, arrivals(cases), strict=True):
        late = [Fraction(time) - time_ for time, time_ in zip(found, ideal(rate, delay, lengths), strict=True)]
        assert -1 <= min(late) <= max(late) <= 1, f"{rate} bit/s, {lengths[0]} bytes"


def test_frames_of_all_lengths_share_a_wire_and_a_delay_keeps_their_order() -> None:
    lengths = [60, 9014, 66, 1514, 1514, 60, 590] * 20
    cases = [(1_000_000_000, 15_000_000, lengths), (0, 250_000, lengths), (2_400_000_000, 60_000_000_000, lengths)]
    found = arrivals(cases)
    for (rate, delay, _), times in zip(cases, found, strict=True):
        wanted = ideal(rate, delay, lengths) if rate else [Fraction(delay)] * len(lengths)
        assert max(abs(time - time_) for time, time_ in zip(times, wanted, strict=True)) <= 1
