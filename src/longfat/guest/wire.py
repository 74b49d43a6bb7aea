# SPDX-License-Identifier: Apache-2.0
"""The wire that a veth interface sends into: rate, framing and delay, by rtnetlink (kernels/: veth with a wire).

The guest's kernel keeps them to the nanosecond: a frame takes its bits' time to leave and reaches the other end, whole,
a delay later. Kernels without that patch shape with qdiscs instead (longfat.guest.qdisc).
"""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass, replace

from longfat.guest import netlink
from longfat.guest.rtnetlink import IFINFOMSG, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, RTM_GETLINK, RTM_NEWLINK
from longfat.network import Step
from longfat.runspec import Egress

VETH_INFO_RATE = 2
VETH_INFO_DELAY = 3
VETH_INFO_OVERHEAD = 4
VETH_INFO_SENT = 5
VETH_INFO_BUSY = 6
VETH_INFO_HELD = 8
VETH_INFO_OFFERED = 9
VETH_INFO_JITTER = 10
VETH_INFO_SEED = 11


@dataclass(frozen=True)
class Wire:
    """Rate in bit/s (0: takes no time), delay in nanoseconds, bytes of a frame beside its Ethernet header.

    While it is ``held`` no bit leaves. Each frame has a further delay, uniform from 0 to ``jitter_ns`` and drawn from
    ``seed``; without a seed the wire keeps the one that it has.
    """

    rate_bps: int = 0
    delay_ns: int = 0
    framing_bytes: int = 0
    held: bool = False
    jitter_ns: int = 0
    seed: int | None = None

    @classmethod
    def of(cls, egress: Egress, seed: int = 0) -> Wire | None:
        """The wire of an egress; None when frames cross it in no time, and where netem delays and loses them."""
        if egress.impairment or (egress.rate_bps is None and not egress.wire_delay_ns and not egress.processing_ns):
            return None
        wire = cls(egress.wire_bps or 0, egress.wire_delay_ns, egress.framing_bytes)
        return replace(wire, jitter_ns=egress.processing_ns, seed=seed) if egress.processing_ns else wire

    @classmethod
    def at(cls, step: Step, framing_bytes: int) -> Wire:
        """The wire that a step makes of one."""
        return cls(step.rate_bps, step.delay_ns, framing_bytes, step.held)

    def request(self, index: int) -> netlink.Request:
        """What gives the interface ``index`` this wire."""
        data = (
            netlink.attribute(VETH_INFO_RATE, struct.pack("=Q", self.rate_bps))
            + netlink.attribute(VETH_INFO_DELAY, struct.pack("=Q", self.delay_ns))
            + netlink.attribute(VETH_INFO_OVERHEAD, struct.pack("=I", self.framing_bytes))
            + netlink.attribute(VETH_INFO_HELD, struct.pack("=B", self.held))
        )
        if self.seed is not None:
            data += netlink.attribute(VETH_INFO_JITTER, struct.pack("=Q", self.jitter_ns))
            data += netlink.attribute(VETH_INFO_SEED, struct.pack("=Q", self.seed))
        info = netlink.attribute(IFLA_INFO_KIND, b"veth\0") + netlink.attribute(IFLA_INFO_DATA, data)
        body = IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, 0, 0) + netlink.attribute(IFLA_LINKINFO, info)
        return netlink.Request(f"set {self} of interface {index}", RTM_NEWLINK, 0, body)


@dataclass(frozen=True)
class UsedWire:
    """A wire as it was found, with the bytes that it has taken, framing included, the time in which it had a frame to
    take, in nanoseconds, and the bits that could leave in this time.
    """

    wire: Wire
    sent_bytes: int
    busy_ns: int
    offered_bits: int


def read_wires() -> dict[str, UsedWire]:
    """The wires of the current network namespace by interface; those without rate and delay are left out."""
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
                used = (numbers[kind] for kind in (VETH_INFO_SENT, VETH_INFO_BUSY, VETH_INFO_OFFERED))
                found[names[index]] = UsedWire(wire, *used)
    return found
