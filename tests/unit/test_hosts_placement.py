# SPDX-License-Identifier: Apache-2.0
"""Which host of a lab has which nodes of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import cable_spec, delay_spec

from longfat.backends.testbed.connect.placement import place
from longfat.backends.testbed.inventory import Host, Inventory
from longfat.spec.runspec import Interface, Link, Node, Role, RunSpec
from longfat.system.errors import RigError


def host(name: str, role: Role, *links: str) -> Host:
    return Host(name, role, name, 22, "root", links, "")


def lab(*hosts: Host) -> Inventory:
    return Inventory(Path("lab"), "existing", hosts)


TRIANGLE = lab(
    host("receiver", "receiver", "right", "direct"),
    host("router", "router", "left", "right"),
    host("sender", "sender", "left", "direct"),
)


def dumbbell(senders: int) -> RunSpec:
    """Senders, a switch, a delay element and a receiver in a row."""
    names = [f"client{k + 1}" for k in range(senders)]
    nodes = [Node(name, "sender") for name in names]
    nodes += [Node("switch", "router"), Node("delay", "router"), Node("server", "receiver")]
    pairs = [(name, "switch") for name in names] + [("switch", "delay"), ("delay", "server")]
    links = tuple(Link(Interface(a), Interface(b)) for a, b in pairs)
    flows = tuple(delay_spec().flows[0].__class__(name, name, "server", "reno", 1_000_000) for name in names)
    return RunSpec(tuple(nodes), links, flows, delay_spec().probes, seed=1)


def test_each_node_has_a_host_of_its_role_and_each_link_a_cable() -> None:
    found = place(delay_spec(), TRIANGLE)
    assert found.hosts == {"client1": "sender", "delay": "router", "server": "receiver"}
    assert found.cables == {0: "left", 1: "right"}


def test_hosts_that_have_no_node_take_no_part() -> None:
    found = place(cable_spec(), TRIANGLE)
    assert found.taking_part() == ("receiver", "sender")
    assert found.cables == {0: "direct"}


def test_routers_share_a_host_and_the_link_between_them_needs_no_cable() -> None:
    found = place(dumbbell(1), TRIANGLE)
    assert found.nodes_of("router") == ("switch", "delay")
    assert found.cables == {0: "left", 2: "right"}


def test_routers_are_spread_where_only_that_fits_the_cables() -> None:
    chain = lab(
        host("a", "sender", "one"),
        host("r1", "router", "one", "two"),
        host("r2", "router", "two", "three"),
        host("z", "receiver", "three"),
    )
    found = place(dumbbell(1), chain)
    assert found.hosts["switch"] == "r1"
    assert found.hosts["delay"] == "r2"
    assert found.cables == {0: "one", 1: "two", 2: "three"}


def test_two_links_between_the_same_hosts_have_two_cables() -> None:
    spec = RunSpec(
        (Node("client1", "sender"), Node("server", "receiver")),
        (Link(Interface("client1"), Interface("server")), Link(Interface("client1"), Interface("server"))),
        cable_spec().flows,
        cable_spec().probes,
        seed=1,
    )
    both = lab(host("a", "sender", "one", "two"), host("z", "receiver", "one", "two"))
    assert place(spec, both).cables == {0: "one", 1: "two"}
    single = lab(host("a", "sender", "one"), host("z", "receiver", "one"))
    with pytest.raises(RigError, match="a to z"):
        place(spec, single)


def test_a_missing_host_and_a_missing_cable_are_named() -> None:
    with pytest.raises(RigError, match=r"2 sender host\(s\), the lab has sender"):
        place(dumbbell(2), TRIANGLE)
    row = lab(host("r", "router", "left", "right"), host("s", "sender", "left"), host("t", "receiver", "right"))
    with pytest.raises(RigError, match="s to t"):
        place(cable_spec(), row)
