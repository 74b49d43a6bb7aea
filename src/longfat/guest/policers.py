# SPDX-License-Identifier: Apache-2.0
"""Policers by rtnetlink (linux/pkt_cls.h): a filter for all packets at egress whose action is a token bucket. Pure.

The kernel stores a burst as the time in which the rate fills the bucket, in ticks.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from longfat.guest.netlink import NLM_F_CREATE, NLM_F_EXCL, Request, attribute, attributes
from longfat.guest.queues import TCA_KIND, TCA_OPTIONS, TCA_STATS_QUEUE, TCMSG
from longfat.spec.runspec import Policer

RTM_NEWTFILTER, RTM_GETTFILTER = 44, 46
EGRESS = 0xFFFFFFF3  # hook of clsact (linux/pkt_sched.h)
PREFERENCE = 2  # deliberate drops have 1
ETH_P_IP = 0x0800
TCA_MATCHALL_ACT = 2
TCA_ACT_KIND, TCA_ACT_OPTIONS, TCA_ACT_STATS = 1, 2, 4
TCA_POLICE_TBF, TCA_POLICE_RATE, TCA_POLICE_RATE64 = 1, 2, 8
TC_ACT_SHOT = 2
TC_POLICE = struct.Struct("=IiIII BBHhHI BBHhHI iiI".replace(" ", ""))  # struct tc_police, with two rates
RATE_TABLE = bytes(1024)  # mandatory, but the kernel computes by itself
LARGEST_FRAME = 1 << 16  # larger frames are dropped; the default is 2040 bytes
MOST_IN_32_BITS = 2**32 - 1


@dataclass(frozen=True)
class UsedPolicer:
    """A policer as read back, with its dropped packets."""

    policer: Policer
    drops: int


def request(index: int, policer: Policer) -> Request:
    """Return the request for a policer of all IPv4 packets that leave the interface ``index``, which has clsact."""
    byte_rate, ticks = policer.byte_rate, policer.burst_ticks
    rate = 3, 1, 0, 0, 0, min(byte_rate, MOST_IN_32_BITS)  # logarithm of a cell, Ethernet, no overhead
    body = TC_POLICE.pack(0, TC_ACT_SHOT, 0, ticks, LARGEST_FRAME, *rate, *(0,) * 6, 0, 0, 0)
    bucket = attribute(TCA_POLICE_TBF, body) + attribute(TCA_POLICE_RATE, RATE_TABLE)
    if byte_rate > MOST_IN_32_BITS:
        bucket += attribute(TCA_POLICE_RATE64, struct.pack("=Q", byte_rate))
    action = attribute(TCA_ACT_KIND, b"police\0") + attribute(TCA_ACT_OPTIONS, bucket)
    options = attribute(TCA_OPTIONS, attribute(TCA_MATCHALL_ACT, attribute(1, action)))
    info = PREFERENCE << 16 | socket.htons(ETH_P_IP)
    message = TCMSG.pack(socket.AF_UNSPEC, index, 0, EGRESS, info) + attribute(TCA_KIND, b"matchall\0") + options
    return Request(f"police interface {index} at {policer}", RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, message)


def question(index: int) -> bytes:
    """Return the body of the request for all egress filters of the interface ``index``."""
    return TCMSG.pack(socket.AF_UNSPEC, index, 0, EGRESS, 0)


def read(messages: Iterable[bytes]) -> UsedPolicer | None:
    """Return the policer in a dump of filters."""
    for message in messages:
        options = dict(attributes(message, TCMSG.size)).get(TCA_OPTIONS, b"")
        actions = dict(attributes(dict(attributes(options, 0)).get(TCA_MATCHALL_ACT, b""), 0))
        for action in actions.values():
            parts = dict(attributes(action, 0))
            if parts.get(TCA_ACT_KIND) == b"police\0":
                return _used_policer(dict(attributes(parts[TCA_ACT_OPTIONS], 0)), parts.get(TCA_ACT_STATS, b""))
    return None


def _used_policer(bucket: dict[int, bytes], statistics: bytes) -> UsedPolicer:
    numbers = TC_POLICE.unpack_from(bucket[TCA_POLICE_TBF])
    byte_rate = int.from_bytes(bucket[TCA_POLICE_RATE64], "little") if TCA_POLICE_RATE64 in bucket else numbers[10]
    queue = dict(attributes(statistics, 0)).get(TCA_STATS_QUEUE, bytes(12))
    burst_bytes = -(-numbers[3] * Policer.TICK_NS * byte_rate // 10**9)
    return UsedPolicer(Policer(8 * byte_rate, burst_bytes), struct.unpack_from("=III", queue)[2])
