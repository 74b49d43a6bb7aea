# SPDX-License-Identifier: Apache-2.0
"""State of interfaces in the current network namespace: carrier, MTU and offloads (linux/ethtool.h)."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
import time
from collections.abc import Collection, Iterable

from longfat.guest import netlink
from longfat.guest.rtnetlink import IFINFOMSG, IFLA_LINKINFO, RTM_GETLINK
from longfat.guest.sysctls import GuestError

IFLA_OPERSTATE, IFLA_CARRIER = 16, 33  # linux/if_link.h
IF_OPER_UNKNOWN, IF_OPER_UP = 0, 6  # RFC 2863, linux/if.h
LONGEST_WAIT_S = 60  # the kernel takes 5 s for 500 interfaces, a card takes some seconds
LOOK_S = 0.01
SIOCGIFMTU, SIOCETHTOOL = 0x8921, 0x8946
OFFLOADS = {"tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}  # commands to get and set


def wait_until_up(names: Iterable[str]) -> None:
    """Wait until interfaces pass packets. Raises GuestError with the interfaces that stay down."""
    indices = {socket.if_nametoindex(name): name for name in names}
    with netlink.open_socket(socket.NETLINK_ROUTE) as channel:
        for _ in range(round(LONGEST_WAIT_S / LOOK_S)):
            messages = netlink.dump(channel, RTM_GETLINK, IFINFOMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0))
            down = indices.keys() - up_indices(messages)
            if not down:
                return
            time.sleep(LOOK_S)
    raise GuestError(f"{', '.join(sorted(indices[index] for index in down))} still down after {LONGEST_WAIT_S} s")


def up_indices(messages: Iterable[bytes]) -> frozenset[int]:
    """Return the indices of the interfaces that pass packets, from the answers to RTM_GETLINK.

    A new interface passes no packets until the kernel has noticed its carrier, at a rate of at most 100 interfaces a
    second (MAX_DO_DEV_PER_LOOP in net/core/link_watch.c). A card that never reports a state is up if it has a carrier.
    """
    found = set()
    for message in messages:
        index = IFINFOMSG.unpack_from(message)[2]
        parts = dict(netlink.attributes(message, IFINFOMSG.size))
        state, carrier = parts.get(IFLA_OPERSTATE, b"\0")[0], parts.get(IFLA_CARRIER, b"\0")[0]
        virtual = IFLA_LINKINFO in parts  # a software interface, such as veth
        if state == IF_OPER_UP or (state == IF_OPER_UNKNOWN and carrier and not virtual):
            found.add(index)
    return frozenset(found)


def read_mtu(interface: str) -> int:
    """Return the MTU of an interface in bytes."""
    with _channel() as channel:
        answer = fcntl.ioctl(channel, SIOCGIFMTU, struct.pack("16si", interface.encode(), 0).ljust(40, b"\0"))
    (mtu,) = struct.unpack_from("i", answer, 16)
    return int(mtu)


def set_offloads(interface: str, wanted: Collection[str]) -> None:
    """Turn the offloads in ``wanted`` on and the others off. Raises OSError if the driver refuses.

    An offload that a card lacks counts as off.
    """
    with _channel() as channel:
        for name, (get, put) in OFFLOADS.items():
            if bool(_ethtool(channel, interface, get, 0)) != (name in wanted):
                _ethtool(channel, interface, put, int(name in wanted))


def offloads_on(interface: str) -> list[str]:
    """Return the names of the offloads that are on."""
    with _channel() as channel:
        return [name for name, (get, _put) in OFFLOADS.items() if _ethtool(channel, interface, get, 0)]


def _channel() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def _ethtool(channel: socket.socket, interface: str, command: int, value: int) -> int:
    data = array.array("I", [command, value])
    request = struct.pack("16sP", interface.encode(), data.buffer_info()[0])
    fcntl.ioctl(channel, SIOCETHTOOL, request.ljust(40, b"\0"))
    return data[1]
