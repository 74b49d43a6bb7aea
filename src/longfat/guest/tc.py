# SPDX-License-Identifier: Apache-2.0
"""What each run asks of ``tc``, without starting it: adding qdiscs and showing them, by rtnetlink. Pure.

Speaks ``tc``'s language, its command lines and its JSON, for the kinds below; for any other the answer is None, and the
program is to be asked. Each start of it costs the guest more than all other things that a node needs.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from longfat.guest.netlink import NLM_F_CREATE, NLM_F_EXCL, Request, attribute
from longfat.guest.queues import TCA_KIND, TCA_OPTIONS, TCMSG, QdiscState

RTM_NEWQDISC = 36
TC_H_ROOT = 0xFFFFFFFF  # linux/pkt_sched.h
TCA_STAB = 8  # linux/rtnetlink.h
TCA_STAB_BASE = 1
TC_LINKLAYER_ETHERNET = 1

LINE = re.compile(
    r"qdisc add dev (?P<interface>\S+) (root|parent (?P<parent>\S+)) handle (?P<handle>\S+) "
    r"(stab overhead (?P<overhead>\d+) linklayer ethernet )?(?P<kind>\w+)(?P<options>.*)"
)

SIZE_TABLE = struct.Struct("=BBhiIIII")  # tc_sizespec: logs, alignment, overhead, link layer, mpu, mtu, length


def request(line: str, indices: Mapping[str, int]) -> Request | None:
    """The request of a line for ``tc -batch`` that adds a qdisc to an interface of ``indices``; None of another one."""
    parts = LINE.fullmatch(line)
    if not parts or parts["kind"] not in KINDS:
        return None
    names, encode = KINDS[parts["kind"]]
    words = parts["options"].split()
    if tuple(words[::2]) != names:
        return None
    handle, parent = _handle(parts["handle"]), _handle(parts["parent"]) if parts["parent"] else TC_H_ROOT
    body = TCMSG.pack(socket.AF_UNSPEC, indices[parts["interface"]], handle, parent, 0)
    body += attribute(TCA_KIND, parts["kind"].encode() + b"\0")
    if parts["overhead"]:
        table = SIZE_TABLE.pack(0, 0, 0, int(parts["overhead"]), TC_LINKLAYER_ETHERNET, 0, 0, 0)
        body += attribute(TCA_STAB, attribute(TCA_STAB_BASE, table))
    body += attribute(TCA_OPTIONS, encode(*words[1::2]))
    return Request(line, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, body)


def shown(states: Sequence[QdiscState], names: Mapping[int, str]) -> list[dict[str, Any]] | None:
    """Qdiscs as ``tc -s -d -j qdisc show`` tells of them; ``names`` has the interfaces' names by index."""
    told = []
    for state in states:
        if state.kind not in TOLD:
            return None
        at = {"root": True} if state.parent == TC_H_ROOT else {"parent": _text(state.parent)}
        told.append(
            {
                "kind": state.kind,
                "handle": _text(state.handle),
                "dev": names[state.interface_index],
                **at,
                "options": TOLD[state.kind](state.options),
                "drops": state.drops,
            }
        )
    return told


def _handle(text: str) -> int:
    major, _, minor = text.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


def _text(handle: int) -> str:
    return f"{handle >> 16:x}:" + (f"{handle & 0xFFFF:x}" if handle & 0xFFFF else "")


def _fifo(limit: str) -> bytes:
    return struct.pack("=I", int(limit))


KINDS: dict[str, tuple[tuple[str, ...], Callable[..., bytes]]] = {
    "pfifo": (("limit",), _fifo),
    "bfifo": (("limit",), _fifo),
}


def _told_fifo(options: bytes) -> dict[str, Any]:
    return {"limit": int.from_bytes(options, "little")}


def _told_nothing(_options: bytes) -> dict[str, Any]:
    return {}


TOLD: dict[str, Callable[[bytes], dict[str, Any]]] = {
    "noqueue": _told_nothing,
    "pfifo": _told_fifo,
    "bfifo": _told_fifo,
}
