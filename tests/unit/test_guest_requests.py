# SPDX-License-Identifier: Apache-2.0
"""Requests for links and qdiscs, byte-identical to those of iproute2 6.1.0, and the kernel's answers."""

from __future__ import annotations

import errno
import socket
import struct
from typing import Any, cast

import pytest
from test_guest_probes import Kernel

from longfat.guest import interfaces, netlink, rtnetlink, tc
from longfat.guest.queues import QdiscState

INDICES = {"a-eth0": 3, "b-eth0": 2}
BEGIN = rtnetlink.metrics(3, "reno")

# Messages of `ip -batch` and `tc -batch`, without their sequence number, for the command in the key.
LINES = {
    "link set a-eth0 mtu 9000 txqueuelen 100 gso_max_segs 1 up": (
        rtnetlink.up(3, 9000, 100, 1),
        "380000001000050000000000000000000000000003000000010000000100000008000400282300000800"
        "0d00640000000800280001000000",
    ),
    "addr add 10.0.1.1/30 dev a-eth0": (
        rtnetlink.address(3, "10.0.1.1", 30),
        "28000000140005060000000000000000021e000003000000080002000a000101080001000a000101",
    ),
    "route add 10.0.2.0/30 via 10.0.1.2 initcwnd 3 congctl reno": (
        rtnetlink.route_via("10.0.2.0/30", "10.0.1.2", BEGIN),
        "40000000180005060000000000000000021e0000fe03000100000000080001000a000200080005000a00"
        "01021400080008000b00030000000800100072656e6f",
    ),
    "neigh add 10.0.1.2 dev a-eth0 lladdr 02:00:00:00:01:02": (
        rtnetlink.neighbour(3, "10.0.1.2", "02:00:00:00:01:02"),
        "300000001c0005060000000000000000020000000300000080000000080001000a0001020a0002000200000001020000",
    ),
    "route replace 10.0.1.0/30 dev a-eth0 src 10.0.1.1 initcwnd 3 congctl reno": (
        rtnetlink.route_to("10.0.1.0/30", 3, "10.0.1.1", BEGIN),
        "48000000180005050000000000000000021e0000fe03fd0100000000080001000a000100080007000a00"
        "010108000400030000001400080008000b00030000000800100072656e6f",
    ),
    "qdisc add dev a-eth0 parent 1:1 handle 10: pfifo limit 100": (
        tc.request("qdisc add dev a-eth0 parent 1:1 handle 10: pfifo limit 100", INDICES),
        "380000002400050600000000000000000000000003000000000010000100010000000000"
        "0a000100706669666f0000000800020064000000",
    ),
}


def answer(number: int, error: int) -> bytes:
    """The kernel's message about request ``number``: an error or, with 0, that it is done."""
    asked = netlink.HEADER.pack(netlink.HEADER.size, 0, 0, number, 0)
    return netlink.HEADER.pack(36, netlink.NLMSG_ERROR, 0, number, 0) + struct.pack("=i", -error) + asked


@pytest.mark.parametrize("line", LINES)
def test_a_request_is_the_one_that_ip_or_tc_sends(line: str) -> None:
    request, recorded = LINES[line]
    kernel = Kernel(answer(0, 0))
    assert request
    netlink.change(cast(socket.socket, kernel), [request])
    assert b"".join(kernel.requests) == bytes.fromhex(recorded)


def link_state(index: int, state: int, carrier: int, kind: bytes = b"veth") -> bytes:
    """Return what the kernel says of an interface; a card has no kind."""
    body = rtnetlink.IFINFOMSG.pack(0, 0, index, 0, 0)
    body += netlink.attribute(interfaces.IFLA_OPERSTATE, bytes([state]))
    body += netlink.attribute(interfaces.IFLA_CARRIER, bytes([carrier]))
    return body + (netlink.attribute(rtnetlink.IFLA_LINKINFO, kind) if kind else b"")


def test_an_interface_is_up_when_the_kernel_has_seen_its_carrier() -> None:
    unknown, down, up = interfaces.IF_OPER_UNKNOWN, 2, interfaces.IF_OPER_UP
    messages = [link_state(1, unknown, 1), link_state(2, down, 1), link_state(3, up, 1)]
    messages += [link_state(4, unknown, 1, b""), link_state(5, unknown, 0, b""), link_state(6, up, 1, b"")]
    assert interfaces.up_indices(messages) == {3, 4, 6}


def test_the_first_refused_request_is_named() -> None:
    kernel = Kernel(answer(1, errno.EEXIST), answer(2, 0))
    requests = [rtnetlink.up(1), rtnetlink.address(3, "10.0.1.1", 30), rtnetlink.up(3)]
    with pytest.raises(OSError, match=r"add address 10\.0\.1\.1/30 of interface 3: File exists"):
        netlink.change(cast(socket.socket, kernel), requests)


def shown(line: str, drops: int = 0) -> dict[str, Any]:
    """Return the description of a qdisc whose kernel returns the requested options."""
    request = tc.request(line, INDICES)
    assert request
    _family, index, handle, parent, _info = tc.TCMSG.unpack_from(request.body)
    found = dict(netlink.attributes(request.body, tc.TCMSG.size))
    kind, options = found[tc.TCA_KIND][:-1].decode(), found[tc.TCA_OPTIONS]
    state = QdiscState(index, handle, kind, 0, 0, drops, 0, 0, 0, parent, options)
    (found,) = tc.to_dicts([state], {index: name for name, index in INDICES.items()})
    return found
