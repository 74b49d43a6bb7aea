# SPDX-License-Identifier: Apache-2.0
"""Requests of rtnetlink (linux/rtnetlink.h) for interfaces, addresses, routes and neighbours. Pure.

``ip`` sends the same, but each start of a program costs a guest more than all requests of a node.
"""

from __future__ import annotations

import socket
import struct

from longfat.guest.netlink import NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, Request, attribute

RTM_NEWLINK, RTM_GETLINK, RTM_NEWADDR, RTM_NEWROUTE, RTM_NEWNEIGH = 16, 18, 20, 24, 28

IFINFOMSG = struct.Struct("=BxHiII")  # family, type, index, flags, changed flags
IFF_UP = 1
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_TXQLEN, IFLA_LINKINFO, IFLA_NET_NS_FD, IFLA_GSO_MAX_SEGS = (
    *(1, 3, 4, 13, 18, 28, 40),
)  # linux/if_link.h
IFLA_INFO_KIND, IFLA_INFO_DATA = 1, 2
VETH_INFO_PEER = 1  # linux/veth.h

IFADDRMSG = struct.Struct("=BBBBI")  # family, prefix length, flags, scope, interface index
IFA_ADDRESS, IFA_LOCAL = 1, 2

RTMSG = struct.Struct(
    "=BBBBBBBBI"
)  # family, lengths of destination and source, tos, table, protocol, scope, type, flags
RT_TABLE_MAIN, RTPROT_BOOT, RTN_UNICAST = 254, 3, 1
RT_SCOPE_UNIVERSE, RT_SCOPE_LINK = 0, 253
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_PREFSRC, RTA_METRICS = 1, 4, 5, 7, 8
RTAX_INITCWND, RTAX_CC_ALGO = 11, 16

NDMSG = struct.Struct("=BxxxiHBB")  # family, interface index, state, flags, type
NUD_PERMANENT = 0x80
NDA_DST, NDA_LLADDR = 1, 2

_NEW = NLM_F_CREATE | NLM_F_EXCL


def veth(a: tuple[str, str, int], b: tuple[str, str, int]) -> Request:
    """Return the request for a pair of interfaces: name, hardware address and namespace (a file descriptor) of each."""
    peer = IFINFOMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + _end(*b)
    kind = attribute(IFLA_INFO_KIND, b"veth") + attribute(IFLA_INFO_DATA, attribute(VETH_INFO_PEER, peer))
    body = IFINFOMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + _end(*a) + attribute(IFLA_LINKINFO, kind)
    return Request(f"add veth {a[0]} {b[0]}", RTM_NEWLINK, _NEW, body)


def _end(name: str, hardware: str, namespace: int) -> bytes:
    return attribute(IFLA_ADDRESS, _hardware(hardware)) + _text(IFLA_IFNAME, name) + _u32(IFLA_NET_NS_FD, namespace)


def move(index: int, name: str, namespace: int) -> Request:
    """Return the request that moves an interface to another namespace (a file descriptor) under the name ``name``."""
    body = IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, 0, 0) + _u32(IFLA_NET_NS_FD, namespace) + _text(IFLA_IFNAME, name)
    return Request(f"move an interface, to be {name}", RTM_NEWLINK, 0, body)


def up(
    index: int, mtu_bytes: int | None = None, queue_packets: int | None = None, gso_segments: int | None = None
) -> Request:
    """Return the request that brings an interface up, with MTU, txqueuelen and GSO segments unless they are None."""
    body = IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, IFF_UP, IFF_UP)
    for kind, value in ((IFLA_MTU, mtu_bytes), (IFLA_TXQLEN, queue_packets), (IFLA_GSO_MAX_SEGS, gso_segments)):
        body += b"" if value is None else _u32(kind, value)
    return Request(f"set interface {index} up, MTU {mtu_bytes}, txqueuelen {queue_packets}", RTM_NEWLINK, 0, body)


def address(index: int, own: str, prefix_bits: int) -> Request:
    """Return the request that adds an address to an interface."""
    packed = socket.inet_aton(own)
    body = IFADDRMSG.pack(socket.AF_INET, prefix_bits, 0, RT_SCOPE_UNIVERSE, index)
    body += attribute(IFA_LOCAL, packed) + attribute(IFA_ADDRESS, packed)
    return Request(f"add address {own}/{prefix_bits} of interface {index}", RTM_NEWADDR, _NEW, body)


def neighbour(index: int, peer: str, hardware: str) -> Request:
    """Return the request that adds a permanent neighbour."""
    body = NDMSG.pack(socket.AF_INET, index, NUD_PERMANENT, 0, 0)
    body += attribute(NDA_DST, socket.inet_aton(peer)) + attribute(NDA_LLADDR, _hardware(hardware))
    return Request(f"add neighbour {peer} {hardware}", RTM_NEWNEIGH, _NEW, body)


def metrics(initial_cwnd_segments: int | None, cca: str | None) -> bytes:
    """Return initial window and CCA of connections over a route, for ``route_via`` and ``route_to``."""
    cwnd = _u32(RTAX_INITCWND, initial_cwnd_segments) if initial_cwnd_segments else b""
    return cwnd + (attribute(RTAX_CC_ALGO, cca.encode()) if cca else b"")


def route_via(subnet: str, gateway: str, begin: bytes) -> Request:
    """Return the request that adds a route to ``subnet`` (``10.0.1.0/30``) through a neighbour."""
    more = attribute(RTA_GATEWAY, socket.inet_aton(gateway))
    return Request(
        f"add route {subnet} via {gateway}", RTM_NEWROUTE, _NEW, _route(subnet, RT_SCOPE_UNIVERSE, more, begin)
    )


def route_to(subnet: str, index: int, own: str, begin: bytes) -> Request:
    """Return the request that replaces the route to the subnet of an interface."""
    more = attribute(RTA_PREFSRC, socket.inet_aton(own)) + _u32(RTA_OIF, index)
    flags, body = NLM_F_CREATE | NLM_F_REPLACE, _route(subnet, RT_SCOPE_LINK, more, begin)
    return Request(f"replace route {subnet} src {own}", RTM_NEWROUTE, flags, body)


def _route(subnet: str, scope: int, more: bytes, begin: bytes) -> bytes:
    destination, _, bits = subnet.partition("/")
    body = RTMSG.pack(socket.AF_INET, int(bits), 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, scope, RTN_UNICAST, 0)
    body += attribute(RTA_DST, socket.inet_aton(destination)) + more
    return body + (attribute(RTA_METRICS, begin) if begin else b"")


def _text(kind: int, text: str) -> bytes:
    return attribute(kind, text.encode() + b"\0")


def _u32(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def _hardware(address: str) -> bytes:
    return bytes.fromhex(address.replace(":", ""))
