# SPDX-License-Identifier: Apache-2.0
"""Capacity of a wire whose rate changes, and the JSON text of a RunSpec."""

from __future__ import annotations

import dataclasses
import json

from conftest import delay_spec

from longfat.spec.network import capacity_bits, course
from longfat.spec.runspec import Change, Egress, Probes, RunSpec


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
