# SPDX-License-Identifier: Apache-2.0
"""The wire of a veth interface by rtnetlink: rate, framing and delay (kernels/: veth with a wire).

The guest's kernel keeps them to the nanosecond: a frame takes the time of its bits to leave, and arrives whole a delay
later. Kernels without that patch use qdiscs instead (longfat.guest.qdisc).
"""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass, replace

from longfat.guest import netlink
from longfat.guest.rtnetlink import IFINFOMSG, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, RTM_GETLINK, RTM_NEWLINK
from longfat.spec.network import Step
from longfat.spec.runspec import Egress, Pause

VETH_INFO_RATE = 2
VETH_INFO_DELAY = 3
VETH_INFO_OVERHEAD = 4
VETH_INFO_SENT = 5
VETH_INFO_BUSY = 6
VETH_INFO_HELD = 8
VETH_INFO_OFFERED = 9
VETH_INFO_JITTER = 10
VETH_INFO_SEED = 11
VETH_INFO_PAUSE_ABOVE = 12
VETH_INFO_PAUSE_BELOW = 13
VETH_INFO_PAUSES = 14


@dataclass(frozen=True)
class Wire:
    """Rate in bit/s (0: takes no time), delay in nanoseconds, framing of a frame apart from its Ethernet header.

    No bit leaves a ``held`` wire. Each frame has a further delay, uniform from 0 to ``jitter_ns`` and drawn from
    ``seed``; without a seed the wire keeps its current seed. The queue in front of it may ``pause`` other wires.
    """

    rate_bps: int = 0
    delay_ns: int = 0
    framing_bytes: int = 0
    held: bool = False
    jitter_ns: int = 0
    seed: int | None = None
    pause: Pause | None = None

    @classmethod
    def of(cls, egress: Egress, seed: int = 0) -> Wire | None:
        """Return the wire of an egress; None if it takes no time, or if netem delays the packets."""
        if egress.impairment or (egress.rate_bps is None and not egress.wire_delay_ns and not egress.processing_ns):
            return None
        wire = cls(egress.wire_bps or 0, egress.wire_delay_ns, egress.framing_bytes, pause=egress.pause)
        return replace(wire, jitter_ns=egress.processing_ns, seed=seed) if egress.processing_ns else wire

    @classmethod
    def at(cls, step: Step, framing_bytes: int) -> Wire:
        """Return the wire of a step."""
        return cls(step.rate_bps, step.delay_ns, framing_bytes, step.held)

    def request(self, index: int) -> netlink.Request:
        """Return the request that sets this wire at the interface ``index``."""
        data = (
            netlink.attribute(VETH_INFO_RATE, struct.pack("=Q", self.rate_bps))
            + netlink.attribute(VETH_INFO_DELAY, struct.pack("=Q", self.delay_ns))
            + netlink.attribute(VETH_INFO_OVERHEAD, struct.pack("=I", self.framing_bytes))
            + netlink.attribute(VETH_INFO_HELD, struct.pack("=B", self.held))
        )
        if self.seed is not None:
            data += netlink.attribute(VETH_INFO_JITTER, struct.pack("=Q", self.jitter_ns))
            data += netlink.attribute(VETH_INFO_SEED, struct.pack("=Q", self.seed))
        if self.pause:
            data += netlink.attribute(VETH_INFO_PAUSE_ABOVE, struct.pack("=I", self.pause.above))
            data += netlink.attribute(VETH_INFO_PAUSE_BELOW, struct.pack("=I", self.pause.below))
        info = netlink.attribute(IFLA_INFO_KIND, b"veth\0") + netlink.attribute(IFLA_INFO_DATA, data)
        body = IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, 0, 0) + netlink.attribute(IFLA_LINKINFO, info)
        return netlink.Request(f"set {self} of interface {index}", RTM_NEWLINK, 0, body)


@dataclass(frozen=True)
class UsedWire:
    """A wire as read back: its bytes so far, including framing, its busy time, the bits that could leave in it, and
    how often its queue has paused other wires.
    """

    wire: Wire
    sent_bytes: int
    busy_ns: int
    offered_bits: int
    pauses: int


def read_wires() -> dict[str, UsedWire]:
    """Return the wires of the current network namespace by interface, except those without rate and delay."""
    names = dict(socket.if_nameindex())
    found = {}
    with netlink.open_socket(socket.NETLINK_ROUTE) as channel:
        for message in netlink.dump(channel, RTM_GETLINK, IFINFOMSG.pack(0, 0, 0, 0, 0)):
            index = IFINFOMSG.unpack_from(message)[2]
            info = dict(netlink.attributes(message, IFINFOMSG.size)).get(IFLA_LINKINFO, b"")
            data = dict(netlink.attributes(dict(netlink.attributes(info, 0)).get(IFLA_INFO_DATA, b""), 0))
            if VETH_INFO_RATE in data:
                numbers = {kind: int.from_bytes(payload, sys.byteorder) for kind, payload in data.items()}
                wire = Wire(
                    numbers[VETH_INFO_RATE],
                    numbers[VETH_INFO_DELAY],
                    numbers[VETH_INFO_OVERHEAD],
                    bool(numbers[VETH_INFO_HELD]),
                    numbers[VETH_INFO_JITTER],
                )
                if above := numbers[VETH_INFO_PAUSE_ABOVE]:
                    wire = replace(wire, pause=Pause(above, numbers[VETH_INFO_PAUSE_BELOW]))
                used = (VETH_INFO_SENT, VETH_INFO_BUSY, VETH_INFO_OFFERED, VETH_INFO_PAUSES)
                found[names[index]] = UsedWire(wire, *(numbers[kind] for kind in used))
    return found
