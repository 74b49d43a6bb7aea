# SPDX-License-Identifier: Apache-2.0
"""Settings of qdiscs in the kernel's form (linux/pkt_sched.h), as names and whole numbers. Pure.

Times are microseconds, sizes bytes; netem has delays in nanoseconds and probabilities in parts of 2^32.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from longfat.guest.netlink import attribute, attributes

Settings = Mapping[str, int]

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "codel": ("target", "limit", "interval", "ecn", "ce_threshold"),
    "fq_codel": (
        *("target", "limit", "interval", "ecn", "flows", "quantum", "ce_threshold", "drop_batch", "memory_limit"),
    ),
    "fq": ("limit", "flow_limit", "quantum", "initial_quantum", "pacing"),
    "pie": ("target", "limit", "tupdate", "alpha", "beta", "ecn", "bytemode"),
    "fq_pie": (
        *("limit", "flows", "target", "tupdate", "alpha", "beta", "quantum", "memory_limit", "ecn_prob", "ecn"),
        "bytemode",
    ),
    "cake": (
        *("", "", "diffserv", "", "flowmode", "", "rtt", "target", "", "memory_limit", "", "", "", "", ""),
        "ack_filter",
    ),
    "dualpi2": (
        *("limit", "memory_limit", "target", "tupdate", "alpha", "beta", "", "step_thresh", "min_qlen_step"),
        *("coupling", "drop_overload", "drop_early", "c_protection", "ecn_mask"),
    ),
}
"""Settings of each kind, 32 bits each, in the order of its attributes from 1 on; an unused attribute has no name."""
ONE_BYTE = frozenset({"coupling", "drop_overload", "drop_early", "c_protection", "ecn_mask"})
STRICT = frozenset({"dualpi2", "fq_pie"})
"""Kinds that need the flag of a nested attribute."""

SFQ = struct.Struct("=IiIIIII44x")  # tc_sfq_qopt_v1 without its RED
SFQ_SETTINGS = ("quantum", "perturb", "limit", "divisor", "flows", "depth", "headdrop")

NETEM = struct.Struct("=6I")  # tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter
NETEM_REORDER, NETEM_LOSS, NETEM_RATE, NETEM_RATE64 = 3, 5, 6, 8
NETEM_LATENCY, NETEM_JITTER, NETEM_SEED, NETEM_SLOT = 10, 11, 14, 12
NETEM_CELL_BYTES = 1 << 16  # longer than any packet: each takes the time of one cell
NETEM_LOSS_GE = 2
NETEM_CHAIN = ("enter", "leave", "pass_in_burst", "lose_between")  # tc_netem_gemodel: p, r, h, k1

MARKED = {"red": (12,), "codel": (24, 32), "fq_codel": (12, 28), "pie": (36,), "fq_pie": (16,), "dualpi2": (24,)}
"""Offsets of the counters of marked packets in the statistics of a kind, 32 bits each."""
CAKE_TINS, CAKE_TIN_MARKED = 10, 8


@dataclass(frozen=True)
class Form:
    """The options of a kind: their names, and functions to write and read them."""

    names: frozenset[str]
    write: Callable[[Settings], bytes]
    read: Callable[[bytes], dict[str, int]]


def marked(kind: str, statistics: bytes) -> int:
    """Return the marked packets in the statistics of a qdisc; 0 for a kind that marks none."""
    if kind == "cake":
        tins = dict(attributes(statistics, 0)).get(CAKE_TINS, b"")
        return sum(_number(dict(attributes(tin, 0)).get(CAKE_TIN_MARKED, b"")) for _, tin in attributes(tins, 0))
    return sum(_number(statistics[offset : offset + 4]) for offset in MARKED.get(kind, ()))


def _number(payload: bytes) -> int:
    return int.from_bytes(payload, "little")


def _fifo() -> Form:
    return Form(
        frozenset({"limit"}),
        lambda given: struct.pack("=I", given["limit"]),
        lambda options: {"limit": _number(options)},
    )


def _of_attributes(names: tuple[str, ...]) -> Form:
    numbers = {name: number for number, name in enumerate(names, 1) if name}

    def write(given: Settings) -> bytes:
        forms = {name: "=B" if name in ONE_BYTE else "=I" for name in given}
        return b"".join(attribute(numbers[name], struct.pack(forms[name], value)) for name, value in given.items())

    def read(options: bytes) -> dict[str, int]:
        parts = dict(attributes(options, 0))
        return {name: _number(parts[number]) for name, number in numbers.items() if number in parts}

    return Form(frozenset(numbers), write, read)


def _sfq() -> Form:
    def write(given: Settings) -> bytes:
        return SFQ.pack(*(given.get(name, 0) for name in SFQ_SETTINGS))

    def read(options: bytes) -> dict[str, int]:
        return dict(zip(SFQ_SETTINGS, SFQ.unpack_from(options), strict=True))

    return Form(frozenset(SFQ_SETTINGS), write, read)


def _netem() -> Form:
    whole = {"latency": NETEM_LATENCY, "jitter": NETEM_JITTER, "seed": NETEM_SEED}

    def rate(bytes_per_s: int, cell_bytes: int = 0) -> bytes:
        narrow = struct.pack("=IiIi", min(bytes_per_s, 2**32 - 1), 0, cell_bytes, 0)
        return attribute(NETEM_RATE, narrow) + attribute(NETEM_RATE64, struct.pack("=Q", bytes_per_s))

    def write(given: Settings) -> bytes:
        body = NETEM.pack(0, given["limit"], given.get("loss", 0), int("reorder" in given), 0, 0)
        if NETEM_CHAIN[0] in given:
            chain = struct.pack("=4I", *(given[name] for name in NETEM_CHAIN))
            body += attribute(NETEM_LOSS, attribute(NETEM_LOSS_GE, chain))
        if "reorder" in given:
            body += attribute(NETEM_REORDER, struct.pack("=II", given["reorder"], 0))
        if "rate" in given:
            body += rate(given["rate"])
        if "packet" in given:
            body += rate(NETEM_CELL_BYTES * 10**9 // given["packet"], NETEM_CELL_BYTES)
        if "slot" in given:
            body += attribute(NETEM_SLOT, struct.pack("=qqiiqq", given["slot"], given["slot"], 0, 0, 0, 0))
        return body + b"".join(
            attribute(whole[name], struct.pack("=Q", given[name])) for name in whole if name in given
        )

    def read(options: bytes) -> dict[str, int]:
        _, limit, loss, gap, _, _ = NETEM.unpack_from(options)
        parts = dict(attributes(options, NETEM.size))
        chain = dict(attributes(parts.get(NETEM_LOSS, b""), 0)).get(NETEM_LOSS_GE)
        found = {"limit": limit, "loss": loss} | {name: _number(parts[at]) for name, at in whole.items() if at in parts}
        if gap:
            found |= {"reorder": _number(parts[NETEM_REORDER][:4])}
        cell = struct.unpack_from("=8xI", parts[NETEM_RATE])[0] if NETEM_RATE in parts else 0
        if bytes_per_s := _number(parts.get(NETEM_RATE64, parts.get(NETEM_RATE, b"")[:4])):
            found |= {"packet": round(cell * 10**9 / bytes_per_s)} if cell else {"rate": bytes_per_s}
        if NETEM_SLOT in parts:
            found |= {"slot": _number(parts[NETEM_SLOT][:8])}
        return found | (dict(zip(NETEM_CHAIN, struct.unpack_from("=4I", chain), strict=True)) if chain else {})

    return Form(frozenset({"limit", "loss", "reorder", "rate", "packet", "slot", *whole, *NETEM_CHAIN}), write, read)


FORMS: dict[str, Form] = {
    "pfifo": _fifo(),
    "bfifo": _fifo(),
    **{kind: _of_attributes(names) for kind, names in ATTRIBUTES.items()},
    "sfq": _sfq(),
    "netem": _netem(),
}
"""Kinds whose options are written and read here; other kinds need the tables of ``tc``."""
