# SPDX-License-Identifier: Apache-2.0
"""What cables with a delay of their own take off a run's delay elements."""

from __future__ import annotations

import dataclasses

import pytest
from conftest import delay_spec
from test_hosts_placement import TRIANGLE, dumbbell, host, lab

from longfat.backends.testbed.connect.paths import BuiltRun, missed_round_trips, subtract_cables
from longfat.backends.testbed.connect.placement import place
from longfat.spec.network import ports
from longfat.spec.runspec import Egress, RunSpec
from longfat.system.errors import RigError


def built(spec: RunSpec, own_us: dict[str, int]) -> BuiltRun:
    return subtract_cables(spec, place(spec, TRIANGLE), own_us)


def delays_us(spec: RunSpec) -> dict[str, int]:
    return {port.name: port.egress.delay_us for port in ports(spec) if port.egress.delay_us}


def test_without_such_cables_the_run_is_built_as_declared() -> None:
    assert built(delay_spec(), {}) == BuiltRun(delay_spec(), {}, {})


def test_a_round_trip_is_taken_off_half_in_each_direction() -> None:
    found = built(delay_spec(), {"right": 20_000})
    assert delays_us(delay_spec()) == {"delay-eth0": 15_000, "delay-eth1": 15_000}
    assert delays_us(found.spec) == {"delay-eth0": 5_000, "delay-eth1": 5_000}
    assert found.shares_us == {"delay-eth0": 10_000, "delay-eth1": 10_000}
    assert found.round_trips_us == {1: 20_000 + 5_000}


def test_several_cables_of_one_path_take_off_their_sum() -> None:
    found = built(delay_spec(), {"left": 8_000, "right": 20_000})
    assert delays_us(found.spec) == {"delay-eth0": 1_000, "delay-eth1": 1_000}
    assert found.round_trips_us == {0: 8_000 + 1_000, 1: 20_000 + 1_000}


def test_a_direction_that_is_not_delayed_leaves_the_rest_to_the_other() -> None:
    spec = delay_spec()
    far = spec.links[1]
    forward = dataclasses.replace(far.a, egress=dataclasses.replace(far.a.egress, delay_us=30_000))
    near = dataclasses.replace(spec.links[0], b=dataclasses.replace(spec.links[0].b, egress=Egress()))
    one_way = dataclasses.replace(spec, links=(near, dataclasses.replace(far, a=forward)))
    assert delays_us(built(one_way, {"right": 20_000}).spec) == {"delay-eth1": 10_000}


def test_a_path_longer_than_the_run_declares_is_refused_with_both_numbers() -> None:
    with pytest.raises(RigError, match=r"right .* 31000 us, the run declares 30000 us"):
        built(delay_spec(), {"right": 31_000})


def test_delays_that_other_traffic_passes_too_are_left_alone() -> None:
    both = dumbbell(2)
    ends = [host(name, "sender", name) for name in ("one", "two")]
    row = lab(*ends, host("router", "router", "one", "two", "right"), host("z", "receiver", "right"))
    with pytest.raises(RigError, match=r"two .* 4000 us, the run declares 0 us"):
        subtract_cables(both, place(both, row), {"two": 4_000})


def test_a_lab_of_two_hosts_has_its_routers_beside_the_sender() -> None:
    pair = lab(host("here", "sender", "path"), host("there", "receiver", "path"))
    found = place(delay_spec(), pair)
    assert found.hosts == {"client1": "here", "delay": "here", "server": "there"}
    assert found.cables == {1: "path"}
    assert delays_us(subtract_cables(delay_spec(), found, {"path": 30_000}).spec) == {}


def test_a_measured_round_trip_may_exceed_the_declared_one_a_little_and_never_be_less() -> None:
    def missed(found_us: int | None) -> list[str]:
        return list(missed_round_trips({1: 20_000}, {1: found_us}, {1: "right"}))

    assert [missed(found) for found in (20_000, 21_900)] == [[], []]
    for found, word in ((19_990, "19990 us"), (22_100, "22100 us"), (None, "unanswered")):
        (reason,) = missed(found)
        assert f"right is {word}, declared 20000 us" in reason
