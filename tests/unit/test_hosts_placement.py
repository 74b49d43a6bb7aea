# SPDX-License-Identifier: Apache-2.0
"""Nodes of a run on the hosts of a lab, and the delays that its cables take off."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import cable_spec, delay_spec

from longfat.backends.testbed.connect.paths import BuiltRun, missed_round_trips, subtract_cables
from longfat.backends.testbed.connect.placement import place
from longfat.backends.testbed.inventory import Host, Inventory
from longfat.spec.network import ports
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


def test_a_missing_host_and_a_missing_cable_are_named() -> None:
    with pytest.raises(RigError, match=r"2 sender host\(s\), the lab has sender"):
        place(dumbbell(2), TRIANGLE)
    row = lab(host("r", "router", "left", "right"), host("s", "sender", "left"), host("t", "receiver", "right"))
    with pytest.raises(RigError, match="s to t"):
        place(cable_spec(), row)


def built(spec: RunSpec, own_us: dict[str, int]) -> BuiltRun:
    return subtract_cables(spec, place(spec, TRIANGLE), own_us)


def delays_us(spec: RunSpec) -> dict[str, int]:
    return {port.name: port.egress.delay_us for port in ports(spec) if port.egress.delay_us}


@pytest.mark.parametrize("own_us", [{"right": 20_000}, {"left": 8_000, "right": 20_000}])
def test_the_round_trips_of_cables_are_taken_off_half_in_each_direction(own_us: dict[str, int]) -> None:
    half_us = sum(own_us.values()) // 2
    found = built(delay_spec(), own_us)
    assert delays_us(delay_spec()) == {"delay-eth0": 15_000, "delay-eth1": 15_000}
    assert delays_us(found.spec) == {"delay-eth0": 15_000 - half_us, "delay-eth1": 15_000 - half_us}
    assert found.shares_us == {"delay-eth0": half_us, "delay-eth1": half_us}
    links = {0: "left", 1: "right"}
    assert found.round_trips_us == {k: own_us[name] + 15_000 - half_us for k, name in links.items() if name in own_us}


def test_a_path_longer_than_the_run_declares_is_refused_with_both_numbers() -> None:
    with pytest.raises(RigError, match=r"right .* 31000 us, the run declares 30000 us"):
        built(delay_spec(), {"right": 31_000})


def test_delays_that_other_traffic_passes_too_are_left_alone() -> None:
    both = dumbbell(2)
    ends = [host(name, "sender", name) for name in ("one", "two")]
    row = lab(*ends, host("router", "router", "one", "two", "right"), host("z", "receiver", "right"))
    with pytest.raises(RigError, match=r"two .* 4000 us, the run declares 0 us"):
        subtract_cables(both, place(both, row), {"two": 4_000})


def test_a_measured_round_trip_may_exceed_the_declared_one_a_little_and_never_be_less() -> None:
    def missed(found_us: int | None) -> list[str]:
        return list(missed_round_trips({1: 20_000}, {1: found_us}, {1: "right"}))

    assert [missed(found) for found in (20_000, 21_900)] == [[], []]
    for found, word in ((19_990, "19990 us"), (22_100, "22100 us"), (None, "unanswered")):
        (reason,) = missed(found)
        assert f"right is {word}, declared 20000 us" in reason
