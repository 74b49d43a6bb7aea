# SPDX-License-Identifier: Apache-2.0
"""Probe of the qdiscs of a namespace through rtnetlink: lengths and counters (linux/gen_stats.h)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from longfat.guest import netlink, options

RTM_GETQDISC = 38
TCMSG = struct.Struct("=BxxxiIII")  # family, interface index, handle, parent, info
TCA_KIND, TCA_OPTIONS = 1, 2
TCA_STATS2 = 7
TCA_STATS_BASIC = 1
TCA_STATS_QUEUE = 3
TCA_STATS_APP = 4

COLUMNS = "t_us,node,interface,qdisc,backlog_packets,backlog_bytes,drops_total,sent_packets,sent_bytes,marked_total"


@dataclass(frozen=True)
class QdiscState:
    """Present length of a queue, and its counters since its creation; ``options`` has the kernel's bytes."""

    interface_index: int
    handle: int
    kind: str
    backlog_packets: int
    backlog_bytes: int
    drops: int
    sent_packets: int
    sent_bytes: int
    marked: int
    parent: int
    options: bytes


def open_probe() -> socket.socket:
    """Open an rtnetlink channel in the current network namespace."""
    return netlink.open_socket(socket.NETLINK_ROUTE)


def request() -> bytes:
    """Return the body of the request for every qdisc of a namespace."""
    return TCMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0)


def read_qdiscs(channel: socket.socket) -> Iterator[QdiscState]:
    """Yield the state of every qdisc of the channel's namespace."""
    return parse(netlink.dump(channel, RTM_GETQDISC, request()))


def parse(messages: Iterable[bytes]) -> Iterator[QdiscState]:
    """Yield the qdiscs in a netlink dump."""
    for message in messages:
        _family, index, handle, parent, _info = TCMSG.unpack_from(message, 0)
        kind, settings, basic, queue, own = "", b"", (0, 0), (0, 0, 0), b""
        for attribute, payload in netlink.attributes(message, TCMSG.size):
            if attribute == TCA_KIND:
                kind = payload.split(b"\0")[0].decode()
            elif attribute == TCA_OPTIONS:
                settings = payload
            elif attribute == TCA_STATS2:
                for inner, data in netlink.attributes(payload, 0):
                    if inner == TCA_STATS_BASIC:
                        basic = struct.unpack_from("=QI", data)
                    elif inner == TCA_STATS_QUEUE:
                        queue = struct.unpack_from("=III", data)
                    elif inner == TCA_STATS_APP:
                        own = data
        counted = queue[0], queue[1], queue[2], basic[1], basic[0], options.marked(kind, own)
        yield QdiscState(index, handle, kind, *counted, parent, settings)


def row(t_us: int, node: str, interface: str, state: QdiscState) -> str:
    """Return a line of queues.csv."""
    return (
        f"{t_us},{node},{interface},{state.kind},{state.backlog_packets},{state.backlog_bytes},"
        f"{state.drops},{state.sent_packets},{state.sent_bytes},{state.marked}"
    )
