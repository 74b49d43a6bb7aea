# SPDX-License-Identifier: Apache-2.0
"""Ports, addresses, routes and lengths, as they follow from a RunSpec."""

from __future__ import annotations

import ipaddress

from conftest import delay_spec
from hypothesis import given
from hypothesis import strategies as st

from longfat.spec.network import (
    Route,
    Topology,
    base_rtt_us,
    capacity_bits,
    course,
    frame_bytes,
    lay_out,
    mss_bytes,
    ports,
    route,
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


def test_interfaces_have_names_subnets_and_their_own_egress_in_the_order_of_the_links() -> None:
    topology = lay_out(delay_spec())
    ports = topology.all_ports()
    assert [port.name for port in ports] == ["client1-eth0", "delay-eth0", "delay-eth1", "server-eth0"]
    assert [port.peer for port in ports] == ["delay", "client1", "server", "delay"]
    assert [port.address for port in ports] == ["10.0.0.1", "10.0.0.2", "10.0.1.1", "10.0.1.2"]
    assert [port.peer_address for port in ports] == ["10.0.0.2", "10.0.0.1", "10.0.1.2", "10.0.1.1"]
    assert {port.mtu_bytes for port in ports} == {9000}
    assert [port.egress.rate_bps for port in ports] == [1_000_000_000, None, None, 1_000_000_000]
    assert [port.egress.delay_us for port in ports] == [0, 15_000, 15_000, 0]
    assert topology.address("server") == "10.0.1.2"


def test_hosts_reach_the_far_link_through_the_router_and_the_router_needs_no_route() -> None:
    routes = lay_out(delay_spec()).routes
    assert routes == {
        "client1": (Route("10.0.1.0/30", "10.0.0.2"),),
        "delay": (),
        "server": (Route("10.0.0.0/30", "10.0.1.1"),),
    }


def test_of_two_ways_the_one_with_fewer_hops_is_taken() -> None:
    topology = lay_out(spec_of([("a", "r1"), ("r1", "r2"), ("r2", "b"), ("r1", "b")]))
    far = topology.ports["r2"][1]
    assert (far.peer, far.link) == ("b", 2)
    assert Route("10.0.3.0/30", "10.0.0.2") in topology.routes["a"]
    assert hops(topology, "a", "10.0.3.2") == 2


@given(st.lists(st.integers(0, 100), min_size=1, max_size=6))
def test_in_a_tree_every_node_reaches_every_address(parents: list[int]) -> None:
    links = [(f"n{parent % child}", f"n{child}") for child, parent in enumerate(parents, start=1)]
    topology = lay_out(spec_of(links))
    for node in topology.ports:
        for port in topology.all_ports():
            assert hops(topology, node, port.address) <= len(links)


def test_the_way_between_two_nodes_is_the_ports_that_packets_leave_by() -> None:
    spec = delay_spec()
    assert [port.name for port in route(spec, "client1", "server")] == ["client1-eth0", "delay-eth1"]
    assert [port.name for port in route(spec, "server", "client1")] == ["server-eth0", "delay-eth0"]
    assert route(spec, "client1", "nobody") == ()
    assert base_rtt_us(spec, spec.flows[0]) == 30_000


def test_lengths_include_ethernet_framing_headers_and_timestamps() -> None:
    spec = delay_spec()
    assert [port.frame_bytes for port in ports(spec)] == [9000 + 14 + 24] * 4
    assert frame_bytes(1500, Egress(framing_bytes=0)) == 1514
    assert mss_bytes(spec, spec.flows[0]) == 9000 - 40 - 12


def test_the_capacity_of_a_wire_is_that_of_its_rate_at_each_moment() -> None:
    faster = course(Egress(rate_bps=1_000_000, changes=(Change(2_000_000, 4_000_000),)), 10_000_000)
    assert [capacity_bits(faster, until) for until in (1_000_000, 2_000_000, 3_000_000)] == [1e6, 2e6, 6e6]
    assert capacity_bits(course(Egress(rate_bps=3_000_000), 10), 2_000_000) == 6_000_000
