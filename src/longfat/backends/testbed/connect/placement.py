# SPDX-License-Identifier: Apache-2.0
"""The placement of a run's nodes on hosts, and of its links on cables. Pure.

Each sender and each receiver has its own host. Routers share the hosts of their role, or, in a lab without such hosts,
the end hosts. Each link between two hosts has its own cable; a link within a host needs none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from longfat.backends.testbed.inventory import Inventory
from longfat.spec.gates.behaviour import RTT_ALLOWANCE_US, RTT_TOLERANCE
from longfat.spec.network import Port, ports, route
from longfat.spec.runspec import Link, Node, RunSpec
from longfat.system.errors import RigError


@dataclass(frozen=True)
class Placement:
    """The host of each node, and the lab's link for each link between two hosts, by its number."""

    hosts: dict[str, str]
    cables: dict[int, str]

    def taking_part(self) -> tuple[str, ...]:
        """Return the hosts with a node, sorted."""
        return tuple(sorted(set(self.hosts.values())))

    def nodes_of(self, host: str) -> tuple[str, ...]:
        """Return the nodes on a host."""
        return tuple(node for node, there in self.hosts.items() if there == host)


def place(spec: RunSpec, inventory: Inventory) -> Placement:
    """Return the first placement in the order of the hosts' names. Raises RigError if the lab lacks hosts or cables."""
    for role in ("sender", "receiver"):
        needed = sum(node.role == role for node in spec.nodes)
        there = [host.name for host in inventory.hosts if host.role == role]
        if len(there) < needed:
            raise RigError(f"the run needs {needed} {role} host(s), the lab has {', '.join(there) or 'none'}")
    lacking: set[str] = set()
    nodes = sorted(spec.nodes, key=lambda node: node.role != "router")  # then each end's cables are known at once
    found = _place_rest(spec, inventory, nodes, Placement({}, {}), lacking, set())
    if found is None:
        raise RigError(f"the lab lacks a cable for the run: {', '.join(sorted(lacking))}")
    hosts = {node.name: found.hosts[node.name] for node in spec.nodes}
    return Placement(hosts, dict(sorted(found.cables.items())))


def _place_rest(
    spec: RunSpec, inventory: Inventory, nodes: Sequence[Node], placed: Placement, lacking: set[str], dead: set[object]
) -> Placement | None:
    """Return the first placement of all nodes that continues ``placed``, or None.

    ``dead`` has what the rest of a fruitless attempt depended on; missing cables are added to ``lacking``.
    """
    hosts, rest = placed.hosts, nodes[len(placed.hosts) :]
    if not rest:
        return placed
    left = {node.name for node in rest}
    near = {name for link in spec.links for name in (link.a.node, link.b.node) if left & {link.a.node, link.b.node}}
    state = (
        len(rest),
        frozenset(hosts.values()),
        frozenset((name, hosts[name]) for name in near & hosts.keys()),
        frozenset(placed.cables.values()),
    )
    if state in dead:
        return None
    for host in _candidates(rest[0], inventory, hosts):
        with_host = hosts | {rest[0].name: host}
        cables = _lay_cables(spec, inventory, with_host, placed.cables, lacking)
        if cables is not None:
            found = _place_rest(spec, inventory, nodes, Placement(with_host, cables), lacking, dead)
            if found is not None:
                return found
    dead.add(state)
    return None


def _candidates(node: Node, inventory: Inventory, hosts: Mapping[str, str]) -> list[str]:
    """Return the hosts that may have the node."""
    if node.role == "router":
        return [host.name for host in inventory.hosts if host.role == "router"] or [
            host.name for host in inventory.hosts
        ]
    return [host.name for host in inventory.hosts if host.role == node.role and host.name not in hosts.values()]


def _lay_cables(
    spec: RunSpec, inventory: Inventory, hosts: Mapping[str, str], laid: Mapping[int, str], lacking: set[str]
) -> dict[int, str] | None:
    """Return ``laid`` and a cable for each other link between two placed hosts; None if one is missing."""
    cables = dict(laid)
    for number, link in enumerate(spec.links):
        one, other = hosts.get(link.a.node), hosts.get(link.b.node)
        if number not in cables and one and other and one != other:
            free = [cable for cable in inventory.cables(one, other) if cable not in cables.values()]
            if not free:
                lacking.add(f"{one} to {other}")
                return None
            cables[number] = free[0]
    return cables


@dataclass(frozen=True)
class BuiltRun:
    """A run as built on its hosts.

    ``shares_us`` has, by interface, the part of the declared delay that a cable provides. ``round_trips_us`` has, by
    link, the round trip over each cable with its own delay, including the delay elements at its ends.
    """

    spec: RunSpec
    shares_us: dict[str, int]
    round_trips_us: dict[int, int]


def subtract_cables(spec: RunSpec, placement: Placement, own_us: Mapping[str, int]) -> BuiltRun:
    """Return the run without its cables' own round trips ``own_us``. Raises RigError if it declares less delay."""
    every = ports(spec)
    users = {port.name: _users(spec, port) for port in every}
    left_us = {port.name: port.egress.delay_us for port in every}
    own = {number: own_us[cable] for number, cable in placement.cables.items() if own_us.get(cable)}
    for number, round_trip_us in own.items():
        here, there = (port for port in every if port.link == number)
        if users[here.name] != users[there.name]:
            cable = placement.cables[number]
            raise RigError(f"traffic passes {cable}, which has its own delay, in one direction only")
        if not users[here.name]:
            continue
        same_users = [
            here,
            there,
            *(port for port in every if port.link != number and users[port.name] == users[here.name]),
        ]
        along = route(spec, *min(users[here.name]))
        with_here = [port for port in same_users if (port in along) == (here in along)]
        due_us = _take(left_us, with_here, round_trip_us // 2)
        due_us += _take(
            left_us, [port for port in same_users if port not in with_here], round_trip_us - round_trip_us // 2
        )
        if due_us := _take(left_us, same_users, due_us):
            raise RigError(
                f"the path of {placement.cables[number]} has its own round trip of {round_trip_us} us,"
                f" the run declares {round_trip_us - due_us} us for its traffic"
            )
    shares = {port.name: port.egress.delay_us - left_us[port.name] for port in every}
    added = {number: sum(left_us[port.name] for port in every if port.link == number) for number in own}
    return BuiltRun(
        replace(spec, links=tuple(_with_delays(link, k, every, left_us) for k, link in enumerate(spec.links))),
        {name: share for name, share in shares.items() if share},
        {number: own[number] + added[number] for number in own},
    )


def _take(left_us: dict[str, int], ports_in_order: list[Port], due_us: int) -> int:
    """Subtract a delay from interfaces, in their order; return the rest."""
    for port in ports_in_order:
        taken_us = min(left_us[port.name], due_us)
        left_us[port.name] -= taken_us
        due_us -= taken_us
    return due_us


def _users(spec: RunSpec, port: Port) -> frozenset[tuple[str, str]]:
    """Return the pairs of hosts, sorted, whose traffic or acknowledgments leave through an interface."""
    ends = {(min(one.sender, one.receiver), max(one.sender, one.receiver)) for one in spec.sent}
    return frozenset((a, b) for a, b in ends if port in (*route(spec, a, b), *route(spec, b, a)))


def _with_delays(link: Link, number: int, every: tuple[Port, ...], delays_us: Mapping[str, int]) -> Link:
    names = {port.node: port.name for port in every if port.link == number}
    a, b = (replace(end, egress=replace(end.egress, delay_us=delays_us[names[end.node]])) for end in (link.a, link.b))
    return replace(link, a=a, b=b)


def missed_round_trips(
    declared_us: Mapping[int, int], measured_us: Mapping[int, int | None], cables: Mapping[int, str]
) -> Iterator[str]:
    """Yield a reason for each cable whose round trip is outside the tolerance of the base-RTT gate."""
    for number, wanted_us in sorted(declared_us.items()):
        found_us, most_us = measured_us.get(number), wanted_us * (1 + RTT_TOLERANCE) + RTT_ALLOWANCE_US
        if found_us is None or not wanted_us <= found_us <= most_us:
            found = "unanswered" if found_us is None else f"{found_us} us"
            yield (
                f"the round trip over {cables[number]} is {found}, declared {wanted_us} us with the delay elements at"
                f" its ends (at most {most_us:.0f} us)"
            )
