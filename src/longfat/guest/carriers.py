# SPDX-License-Identifier: Apache-2.0
"""Whether interfaces pass packets: their state by rtnetlink, and the wait for it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable

from longfat.guest import netlink
from longfat.guest.rtnetlink import IFINFOMSG, IFLA_LINKINFO, RTM_GETLINK
from longfat.guest.sysctls import LaboratoryError

IFLA_OPERSTATE, IFLA_CARRIER = 16, 33  # linux/if_link.h
IF_OPER_UNKNOWN, IF_OPER_UP = 0, 6  # RFC 2863, linux/if.h
LONGEST_WAIT_S = 60  # the kernel takes 5 s for 500 interfaces, a card some seconds
LOOK_S = 0.01


def wait_until_up(names: Iterable[str]) -> None:
    """Wait until interfaces of the current network namespace pass packets. Raises LaboratoryError when one does not."""
    indices = {socket.if_nametoindex(name): name for name in names}
    with netlink.open_socket(socket.NETLINK_ROUTE) as channel:
        for _ in range(round(LONGEST_WAIT_S / LOOK_S)):
            messages = netlink.dump(channel, RTM_GETLINK, IFINFOMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0))
            down = indices.keys() - up_indices(messages)
            if not down:
                return
            time.sleep(LOOK_S)
    raise LaboratoryError(f"{', '.join(sorted(indices[index] for index in down))} still down after {LONGEST_WAIT_S} s")


def up_indices(messages: Iterable[bytes]) -> frozenset[int]:
    """Return the indices of the interfaces that pass packets, of the answers to RTM_GETLINK.

    An interface that is set up passes none until the kernel has seen its carrier: 100 interfaces a second at most
    (MAX_DO_DEV_PER_LOOP in net/core/link_watch.c). A card that never reports a state is up when it has a carrier.
    """
    found = set()
    for message in messages:
        index = IFINFOMSG.unpack_from(message)[2]
        told = dict(netlink.attributes(message, IFINFOMSG.size))
        state, carrier = told.get(IFLA_OPERSTATE, b"\0")[0], told.get(IFLA_CARRIER, b"\0")[0]
        watched = IFLA_LINKINFO in told  # of a kind that software makes, such as veth
        if state == IF_OPER_UP or (state == IF_OPER_UNKNOWN and carrier and not watched):
            found.add(index)
    return frozenset(found)
