# SPDX-License-Identifier: Apache-2.0
"""Ports, addresses, routes and lengths that follow from a RunSpec, and its JSON text."""

from __future__ import annotations

import dataclasses
import ipaddress
import json

from conftest import delay_spec
from hypothesis import given
from hypothesis import strategies as st

from longfat.spec.network import (
    Topology,
    capacity_bits,
    course,
    lay_out,
)
from longfat.spec.runspec import Change, Egress, Flow, Interface, Link, Node, Probes, RunSpec


def spec_of(links: list[tuple[str, str]]) -> RunSpec:
    """Nodes in order of appearance, joined by ``links``, with one flow from the first node to the last."""
    names = list(dict.fromkeys(name for link in links for name in link))
    return RunSpec(
        nodes=tuple(Node(name, "router") for name in names),
        links=tuple(Link(Interface(a), Interface(b)) for a, b in links),
        flows=(Flow("f", names[0], names[-1], "reno", 1),),
        probes=Probes(),
        seed=1,
    )


def owner(topology: Topology, address: str) -> str:
    return next(port.node for port in topology.all_ports() if port.address == address)


def hops(topology: Topology, start: str, address: str) -> int:
    """Walk from node to node along the routes; how many links lie on the way to ``address``."""
    node, walked = start, 0
    while all(port.address != address for port in topology.ports[node]):
        near = {ipaddress.ip_network(f"{port.address}/30", strict=False): port for port in topology.ports[node]}
        attached = next((port for net, port in near.items() if ipaddress.ip_address(address) in net), None)
        if attached:
            node = attached.peer
        else:
            routes = {ipaddress.ip_network(route.subnet): route.via for route in topology.routes[node]}
            node = owner(topology, next(via for net, via in routes.items() if ipaddress.ip_address(address) in net))
        walked += 1
        assert walked <= len(topology.ports), "the routes lead in a circle"
    return walked


@given(st.lists(st.integers(0, 100), min_size=1, max_size=6))
def test_in_a_tree_every_node_reaches_every_address(parents: list[int]) -> None:
    links = [(f"n{parent % child}", f"n{child}") for child, parent in enumerate(parents, start=1)]
    topology = lay_out(spec_of(links))
    for node in topology.ports:
        for port in topology.all_ports():
            assert hops(topology, node, port.address) <= len(links)


def test_the_capacity_of_a_wire_is_that_of_its_rate_at_each_moment() -> None:
    faster = course(Egress(rate_bps=1_000_000, changes=(Change(2_000_000, 4_000_000),)), 10_000_000)
    assert [capacity_bits(faster, until) for until in (1_000_000, 2_000_000, 3_000_000)] == [1e6, 2e6, 6e6]
    assert capacity_bits(course(Egress(rate_bps=3_000_000), 10), 2_000_000) == 6_000_000


def with_image(image: str | None) -> RunSpec:
    spec = delay_spec()
    return dataclasses.replace(spec, nodes=(dataclasses.replace(spec.nodes[0], image=image), *spec.nodes[1:]))


def test_a_later_field_is_part_of_the_identity_only_if_it_is_set() -> None:
    first = {"name", "role", "sysctls", "offloads", "initial_cwnd_segments"}
    assert set(json.loads(with_image(None).to_json())["nodes"][0]) == first
    assert json.loads(with_image("web:1").to_json())["nodes"][0]["image"] == "web:1"
    assert with_image("web:1").run_id != with_image(None).run_id
    text = RunSpec((), (), (), Probes(), 1).to_json()
    assert not [kind for kind in ("udp", "ping", "web", "programs") if kind in text]
