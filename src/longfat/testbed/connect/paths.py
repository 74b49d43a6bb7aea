# SPDX-License-Identifier: Apache-2.0
"""Cables that have a delay of their own: by how much the run's delay elements add less. Pure.

A cable's own round trip counts as part of the delay that the run declares. It is taken off delay elements that exactly
the same traffic passes, so that each flow's RTT is the declared one. How a cable's delay is divided between its two
directions cannot be measured without synchronous clocks: it counts as half each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from longfat.gates.behaviour import RTT_ALLOWANCE_US, RTT_TOLERANCE
from longfat.network import Port, ports, route
from longfat.runspec import Link, RunSpec
from longfat.testbed.connect.placement import Placement


@dataclass(frozen=True)
class Laid:
    """The run as its hosts are to build it, and what its cables do of the declared delays.

    ``shares_us`` has, by interface, how much of its declared delay a cable has already; ``round_trips_us`` the round
    trip, by link, of each cable with a delay of its own: its own, and what the delay elements at its ends add.
    """

    spec: RunSpec
    shares_us: dict[str, int]
    round_trips_us: dict[int, int]


def lay(spec: RunSpec, placement: Placement, own_us: Mapping[str, int]) -> Laid | str:
    """The run less its cables' own delays (``own_us``: round trips by cable), or why there are no such delays in it."""
    every = ports(spec)
    users = {port.name: _users(spec, port) for port in every}
    left_us = {port.name: port.egress.delay_us for port in every}
    own = {number: own_us[cable] for number, cable in placement.cables.items() if own_us.get(cable)}
    for number, round_trip_us in own.items():
        here, there = (port for port in every if port.link == number)
        if users[here.name] != users[there.name]:
            return f"traffic passes {placement.cables[number]}, which has a delay of its own, in one direction only"
        if not users[here.name]:
            continue
        alike = [here, there, *(port for port in every if port.link != number and users[port.name] == users[here.name])]
        along = route(spec, *min(users[here.name]))
        with_here = [port for port in alike if (port in along) == (here in along)]
        due_us = _take(left_us, with_here, round_trip_us // 2)
        due_us += _take(left_us, [port for port in alike if port not in with_here], round_trip_us - round_trip_us // 2)
        if due_us := _take(left_us, alike, due_us):
            return (
                f"the path of {placement.cables[number]} has a round trip of {round_trip_us} us of its own,"
                f" the run declares {round_trip_us - due_us} us for what passes it"
            )
    shares = {port.name: port.egress.delay_us - left_us[port.name] for port in every}
    added = {number: sum(left_us[port.name] for port in every if port.link == number) for number in own}
    return Laid(
        replace(spec, links=tuple(_with_delays(link, k, every, left_us) for k, link in enumerate(spec.links))),
        {name: share for name, share in shares.items() if share},
        {number: own[number] + added[number] for number in own},
    )


def _take(left_us: dict[str, int], given: list[Port], due_us: int) -> int:
    """Take a delay off interfaces, the first ones first; what they do not have."""
    for port in given:
        taken_us = min(left_us[port.name], due_us)
        left_us[port.name] -= taken_us
        due_us -= taken_us
    return due_us


def _users(spec: RunSpec, port: Port) -> frozenset[tuple[str, str]]:
    """The ends, each pair in alphabetical order, between which traffic or its acknowledgments leave an interface."""
    ends = {(min(one.sender, one.receiver), max(one.sender, one.receiver)) for one in spec.sent}
    return frozenset((a, b) for a, b in ends if port in (*route(spec, a, b), *route(spec, b, a)))


def _with_delays(link: Link, number: int, every: tuple[Port, ...], delays_us: Mapping[str, int]) -> Link:
    names = {port.node: port.name for port in every if port.link == number}
    a, b = (replace(end, egress=replace(end.egress, delay_us=delays_us[names[end.node]])) for end in (link.a, link.b))
    return replace(link, a=a, b=b)


def missed_round_trips(
    declared_us: Mapping[int, int], measured_us: Mapping[int, int | None], cables: Mapping[int, str]
) -> Iterator[str]:
    """A reason for each cable whose round trip is not the declared one, with the tolerance of the gate of base RTTs."""
    for number, wanted_us in sorted(declared_us.items()):
        found_us, most_us = measured_us.get(number), wanted_us * (1 + RTT_TOLERANCE) + RTT_ALLOWANCE_US
        if found_us is None or not wanted_us <= found_us <= most_us:
            found = "unanswered" if found_us is None else f"{found_us} us"
            yield (
                f"the round trip over {cables[number]} is {found}, declared {wanted_us} us with what is added at its"
                f" ends (at most {most_us:.0f} us)"
            )
