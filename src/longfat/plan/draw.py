# SPDX-License-Identifier: Apache-2.0
"""Clock errors and distances of a run, drawn by seeded random choices.

They are the same on every machine and under every version of Python. Each choice is a digest of its purpose and does
not depend on earlier draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from longfat.backends.protocol import Feature, Traits
from longfat.spec.network import Port, ports, route
from longfat.spec.plain import canonical_json
from longfat.spec.runspec import Interface, RunSpec


def digest(*parts: str | int) -> str:
    """Return the SHA-256 (hex) of the parts."""
    return hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()


def seed_of(*parts: str | int) -> int:
    """Return a seed of 48 bits, which every JSON reader and Parquet's int64 keep exactly."""
    return int(digest(*parts)[:12], 16)


def uniform(largest: int, *parts: str | int) -> int:
    """Return a whole number from 0 to ``largest``, both included; with 256 bits the bias is negligible.

    With the same parts the number is proportional to the width of the range.
    """
    return int(digest(*parts), 16) * (largest + 1) >> 256


_PPB = 1000  # parts per billion in a part per million


def draws(traits: Traits) -> bool:
    """Return whether runs of a backend have drawn clocks and distances; machines in real time have their own."""
    return Feature.CLOCKS in traits.can


def with_draws(spec: RunSpec, *, tolerance_ppm: int, phases_drawn: bool) -> RunSpec:
    """Return the run with a clock error for each interface that has a rate, and a distance for each host with traffic.

    A clock error is at most ``tolerance_ppm``. A distance delays all packets of a host by less than the time of a full
    packet on the slowest link of the host's routes.
    """
    every = ports(spec)
    names = {(port.link, port.node): port for port in every}
    spans = packet_times_ns(spec) if phases_drawn else {}

    def drawn(end: Interface, port: Port) -> Interface:
        clock = end.egress.rate_bps is not None and not end.egress.trace
        limit = _PPB * tolerance_ppm if clock else 0
        clock_ppb = uniform(2 * limit, spec.seed, "clock", port.name) - limit
        span_ns = spans.get(port.node, 0)
        distance_ns = uniform(span_ns - 1, spec.seed, "distance", port.node) if span_ns else 0
        return replace(end, egress=replace(end.egress, clock_ppb=clock_ppb, distance_ns=distance_ns))

    links = tuple(
        replace(link, a=drawn(link.a, names[number, link.a.node]), b=drawn(link.b, names[number, link.b.node]))
        for number, link in enumerate(spec.links)
    )
    return replace(spec, links=links)


def packet_times_ns(spec: RunSpec) -> dict[str, int]:
    """Return, by host, the longest transmission time of a full packet on the links of its routes."""
    found: dict[str, int] = {}
    for sender, receiver in {(one.sender, one.receiver): None for one in spec.sent}:
        rates = ((port.frame_bytes, port.egress.rate_bps) for port in route(spec, sender, receiver))
        longest = max((8_000_000_000 * size // rate for size, rate in rates if rate), default=0)
        for host in (sender, receiver):
            found[host] = max(found.get(host, 0), longest)
    return found


def with_processing(spec: RunSpec, longest_ns: Mapping[str, int]) -> RunSpec:
    """Return the run in which the named hosts need a time for each packet that they send, up to ``longest_ns``.

    Times are uniform and keep the order of packets, as in Floyd and Jacobson ("On Traffic Phase Effects in
    Packet-Switched Gateways", 1992) and in ``overhead_`` of ns-2.
    """

    def slower(end: Interface) -> Interface:
        return replace(end, egress=replace(end.egress, processing_ns=longest_ns.get(end.node, 0)))

    return replace(spec, links=tuple(replace(link, a=slower(link.a), b=slower(link.b)) for link in spec.links))
