# SPDX-License-Identifier: Apache-2.0
"""Wires keep their rate and delay to the nanosecond, for frames of any length, also where they change."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from guests import ask

pytestmark = pytest.mark.virtual

# Sends raw frames at once, changes the wire at given times, and prints when each frame arrived (ns after the sending).
PROGRAM = """
import ctypes, os, socket, struct, subprocess, time
from longfat.guest import netlink
from longfat.guest.wire import Wire, read_wires
os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
ctypes.CDLL(None).prctl(29, 1)  # PR_SET_TIMERSLACK
time.sleep(0.1)  # timers are those of the jiffies until the first of them has passed
subprocess.run(["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"], check=True)
for name in ("v0", "v1"):
    subprocess.run(["ip", "link", "set", name, "mtu", "9000", "up"], check=True)
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
    before = read_wires()["v0"]  # its counters go on over a change of its settings
    assert before.wire == Wire(*changes[0][1])
    sent, wall = time.monotonic_ns(), time.time_ns()
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
        assert len(data) == length
        seconds, nanoseconds = struct.unpack("qq", control[0][2])
        times.append(seconds * 10**9 + nanoseconds - wall)
    used = read_wires()["v0"]
    answer.append([times, done, used.sent_bytes - before.sent_bytes, used.offered_bits - before.offered_bits])
"""
FRAMING = 24
WireNumbers = tuple[int, int, int, bool]  # rate (bit/s; 0: takes no time), delay (ns), framing, held
Case = tuple[list[int], list[tuple[int, WireNumbers]]]  # lengths of frames, and wires from a time (ns) on
MS = 10**6
FAST, SLOW, HELD = (10**7, 0, FRAMING, False), (10**5, 0, FRAMING, False), (10**7, 0, FRAMING, True)
FAR, NEAR = (10**7, 50_000_000, FRAMING, False), (10**7, 1_000_000, FRAMING, False)
RATES_BPS = (10_000, 1_000_000, 100_000_000, 622_000_000, 1_000_000_000, 2_400_000_000, 10_000_000_000, 40_000_000_000)
MIXED = [60, 9014, 66, 1514, 1514, 60, 590] * 20
CASES: dict[str, list[Case]] = {
    "rates": [([length] * 200, [(0, (rate, 0, FRAMING, False))]) for rate in RATES_BPS for length in (590, 1514, 9014)],
    "delays": [
        (MIXED, [(0, (rate, delay, FRAMING, False))])
        for rate, delay in ((1_000_000_000, 15_000_000), (0, 250_000), (2_400_000_000, 60_000_000_000))
    ],
    "changes": [
        ([1514] * 20, [(0, FAST), (5 * MS, SLOW), (333 * MS, FAST)]),
        ([60, 1514, 590] * 8, [(0, SLOW), (7 * MS, HELD), (1000 * MS, FAST)]),
        ([1514] * 30, [(0, FAR), (10 * MS, NEAR), (15 * MS, HELD), (40 * MS, FAR), (47 * MS, NEAR)]),
        ([1514] * 10, [(0, HELD), (3 * MS, FAR), (3 * MS + 1000, HELD), (9 * MS, SLOW), (11 * MS, FAST)]),
        ([590] * 200, [(k * MS, (1_230_400 * (1 + k * 7 % 5), 5 * MS, FRAMING, k * 3 % 7 == 1)) for k in range(400)]),
    ],
}


def ideal(lengths: list[int], changes: list[tuple[int, WireNumbers]]) -> Iterator[Fraction]:
    """When each frame's last bit is at the other end, in ns: bits leave at the rate of the time, in order."""
    now, place, last = Fraction(0), 0, Fraction(0)
    for length in lengths:
        bits = Fraction(8 * (length + FRAMING))
        while True:
            rate, delay, _, held = changes[place][1]
            end = changes[place + 1][0] if place + 1 < len(changes) else None
            needed = None if held else bits * 10**9 / rate if rate else Fraction(0)
            if needed is not None and (end is None or now + needed <= end):
                now += needed
                break
            assert end is not None
            bits -= 0 if held else (end - now) * rate / 10**9
            now, place = Fraction(end), place + 1
        last = max(last, now + delay)
        yield last


@pytest.mark.parametrize("name", CASES)
def test_each_bit_leaves_at_the_rate_of_its_time_and_none_overtakes(name: str) -> None:
    for case, (times, at, sent, offered) in zip(CASES[name], ask(PROGRAM.format(cases=CASES[name])), strict=True):
        lengths, changes = case
        slack_ns = min(len(changes), 2)
        assert max(found - wanted for found, (wanted, _) in zip(at, changes, strict=True)) <= 2
        wanted = ideal(lengths, [(when, wire) for when, (_, wire) in zip(at, changes, strict=True)])
        assert max(abs(found - time) for found, time in zip(times, wanted, strict=True)) <= slack_ns, case
        if fastest_bps := max(wire[0] for _, wire in changes):
            assert sent == sum(lengths) + FRAMING * len(lengths)
            # A part of a bit is cut at each change, and of the busy time a part of a nanosecond.
            assert abs(8 * sent - offered) <= len(changes) + 1 + fastest_bps / 1e9, case
