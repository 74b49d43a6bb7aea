# SPDX-License-Identifier: Apache-2.0
"""``tc`` without the program: command lines that add qdiscs, and their JSON, by rtnetlink. Pure.

For the kinds in ``longfat.guest.options``, with settings as whole numbers in the kernel's units; other kinds need the
program. Starting it costs a guest more than the rest of a node's set-up.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from longfat.guest.netlink import NLA_F_NESTED, NLM_F_CREATE, NLM_F_EXCL, Request, attribute
from longfat.guest.options import FORMS, STRICT
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
    """Return the request for a line of ``tc -batch`` that adds a qdisc; None for any other line."""
    parts = LINE.fullmatch(line)
    form = FORMS.get(parts["kind"]) if parts else None
    if not parts or not form:
        return None
    words = parts["options"].split()
    if len(words) % 2 or not form.names.issuperset(words[::2]):
        return None
    settings = {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
    handle, parent = _handle(parts["handle"]), _handle(parts["parent"]) if parts["parent"] else TC_H_ROOT
    body = TCMSG.pack(socket.AF_UNSPEC, indices[parts["interface"]], handle, parent, 0)
    body += attribute(TCA_KIND, parts["kind"].encode() + b"\0")
    if parts["overhead"]:
        table = SIZE_TABLE.pack(0, 0, 0, int(parts["overhead"]), TC_LINKLAYER_ETHERNET, 0, 0, 0)
        body += attribute(TCA_STAB, attribute(TCA_STAB_BASE, table))
    body += attribute(TCA_OPTIONS | (NLA_F_NESTED if parts["kind"] in STRICT else 0), form.write(settings))
    return Request(line, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, body)


def to_dicts(states: Sequence[QdiscState], names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return qdiscs in the form of ``tc -s -d -j qdisc show``, without kinds that need the program.

    ``names`` has the names of interfaces by index. Settings have the names and units of ``longfat.guest.options``.
    """
    found = []
    for state in states:
        if state.kind != "noqueue" and state.kind not in FORMS:
            continue
        at = {"root": True} if state.parent == TC_H_ROOT else {"parent": _text(state.parent)}
        found.append(
            {
                "kind": state.kind,
                "handle": _text(state.handle),
                "dev": names[state.interface_index],
                **at,
                "options": _settings(state),
                "packets": state.sent_packets,
                "drops": state.drops,
            }
        )
    return found


def _settings(state: QdiscState) -> dict[str, Any]:
    settings: dict[str, Any] = dict(FORMS[state.kind].read(state.options)) if state.kind in FORMS else {}
    if state.kind == "netem":
        settings["delay"] = {"delay": settings.pop("latency") / 1e9}
    return settings


def _handle(text: str) -> int:
    major, _, minor = text.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


def _text(handle: int) -> str:
    return f"{handle >> 16:x}:" + (f"{handle & 0xFFFF:x}" if handle & 0xFFFF else "")
