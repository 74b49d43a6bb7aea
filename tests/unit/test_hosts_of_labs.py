# SPDX-License-Identifier: Apache-2.0
"""Hosts of a lab: failing connections and clocks, the places of nodes and delays of cables, the needs of studies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from conftest import cable_spec, delay_spec
from hypothesis import given
from hypothesis import strategies as st

from longfat.backends import hosts
from longfat.backends.registry import traits_of
from longfat.backends.testbed.connect.connection import (
    EXCHANGES,
    Clock,
    Connections,
    HostFailed,
    read_clock,
    ssh_command,
)
from longfat.backends.testbed.connect.placement import BuiltRun, missed_round_trips, place, subtract_cables
from longfat.backends.testbed.inventory import Host, Inventory
from longfat.cli.plan import needs
from longfat.cli.study import Choices, find_study, resolve
from longfat.guest.host_kernel import FEATURES
from longfat.plan import Plan
from longfat.spec.network import ports
from longfat.spec.runspec import Interface, Link, Node, Role, RunSpec, Web
from longfat.study.catalog.ccas import CCAS
from longfat.system.errors import RigError

SENDER = Host("sender", "sender", "192.0.2.1", 2222, "root", ("one",), "")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!", "key"),
        ("root@192.0.2.1: Permission denied (publickey).", "log in"),
        ("sudo: a password is required", "root"),
    ],
)
def test_what_ssh_says_becomes_a_reason_with_the_host_and_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, reason: str
) -> None:
    (tmp_path / "ssh").write_text(f"#!/bin/sh\necho '{said}' >&2; exit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(HostFailed, match=reason) as caught, Connections([SENDER], tmp_path / "mine", b"code"):
        pass
    assert caught.value.where == "sender" and said in caught.value.message


def test_ssh_asks_nothing_and_knows_the_hosts_of_the_lab_only(tmp_path: Path) -> None:
    command = ssh_command(SENDER, tmp_path)
    assert {"BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={tmp_path}/known_hosts"} <= set(command)
    assert not {"-i", "IdentitiesOnly=yes"} & set(command)
    (tmp_path / "id_ed25519").touch()
    assert {str(tmp_path / "id_ed25519"), "IdentitiesOnly=yes"} <= set(ssh_command(SENDER, tmp_path))


DELAY = st.integers(min_value=0, max_value=10**9)


@given(st.integers(-(10**12), 10**12), st.lists(st.tuples(DELAY, DELAY), min_size=EXCHANGES, max_size=EXCHANGES))
def test_the_true_offset_is_within_the_uncertainty(offset: int, delays: list[tuple[int, int]]) -> None:
    def exchanges() -> Iterator[tuple[int, int, int]]:
        for k, (there, back) in enumerate(delays):
            sent = k * 10**10
            yield sent, sent + there + offset, sent + there + back

    following = exchanges()
    clock = read_clock(lambda: next(following))
    assert abs(clock.offset_ns - offset) <= clock.uncertainty_ns + 1
    assert clock.uncertainty_ns == min(there + back for there, back in delays) // 2


def test_a_commander_too_far_from_a_host_is_refused_before_any_run(monkeypatch: pytest.MonkeyPatch) -> None:
    trips_ms = {"near": 19, "far": 21}
    monkeypatch.setattr(Connections, "clock", lambda self, name: Clock(0, trips_ms[name] * 500_000))
    connections = Connections([], Path(), b"")
    assert hosts._read_clocks(connections, ("near",)).keys() == {"near"}
    with pytest.raises(RigError) as caught:
        hosts._read_clocks(connections, ("near", "far"))
    assert caught.value.where == "far" and "router" in str(caught.value.hint)


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
    many = [host(f"s{k}", "sender", f"c{k}") for k in range(10)]  # ten factorial assignments
    with pytest.raises(RigError, match="s9 to r"):
        place(
            dumbbell(10),
            lab(host("r", "router", *(f"c{k}" for k in range(9)), "out"), *many, host("t", "receiver", "out")),
        )


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


STUDIES = ("_smoke", "kelly-2003", "sandia-2003")
WHOLE = "_smoke"  # needs nothing that hosts lack
CABLES = Counter({"receiver 1 to sender 1": 1, "receiver 1 to router": 1, "router to sender 1": 1})


@cache
def plan_on(study: str, backend: str) -> Plan:
    return resolve(find_study(study), Choices(), {"backend": backend})


def laboratory(cables: Counter[str], specs: list[RunSpec]) -> hosts.HostsBackend:
    """A lab with these cables, whose hosts have every ability that a kernel can have."""
    links: dict[str, list[str]] = {}
    for number, ends in enumerate(cables.elements()):
        for end in ends.split(" to "):
            links.setdefault(end, []).append(f"cable{number}")
    made = [Host(end.replace(" ", ""), end.split()[0], end, 22, "root", tuple(own), "") for end, own in links.items()]
    inventory = Inventory(Path("lab"), "existing", tuple(sorted(made, key=lambda host: host.name)))
    kernel = {"release": "6", "reasons": [], "features": list(FEATURES), "ccas": [*CCAS]}
    sysctls = sorted({name for spec in specs for node in spec.nodes for name in node.sysctls})
    card = {"max_mtu_bytes": 65535, "speed_bps": None, "address": "", "pause": False}
    facts = {"build": "", "programs": {}, "kernel": kernel, "sysctls": sysctls}
    return hosts.HostsBackend(inventory, {one.name: {**facts, "cards": dict.fromkeys(one.links, card)} for one in made})


@pytest.mark.parametrize("name", STUDIES)
def test_a_lab_with_the_printed_hosts_and_cables_executes_every_planned_run(name: str) -> None:
    plan = plan_on(name, "hosts")
    specs = [run.spec for run in plan.runs]
    roles, cables = needs(plan)
    backend = laboratory(cables, specs)
    assert {reason for spec in specs for reason in backend.refuses(spec)} == set()
    assert name != WHOLE or cables == CABLES
    there = Counter(host.role for host in backend.inventory.hosts)
    assert all(there[role] == count for role, count in roles.items())


@pytest.mark.parametrize("backend", ["hosts", "mininet"])
def test_points_beyond_a_backend_in_real_time_are_left_out_and_the_others_are_all_there(backend: str) -> None:
    for name in STUDIES:
        plan, whole = plan_on(name, backend), plan_on(name, "virtual")
        lacking = plan.excluded
        assert len({run.scenario for run in plan.runs}) + len(lacking) == len({run.scenario for run in whole.runs})
        assert all(Web.what not in one.reason or Web.what not in traits_of(backend).can for one in lacking)
        if name == WHOLE:
            assert not lacking
