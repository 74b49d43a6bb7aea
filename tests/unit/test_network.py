# SPDX-License-Identifier: Apache-2.0
"""The JSON text of a RunSpec."""

from __future__ import annotations

import dataclasses
import json

from conftest import delay_spec

from longfat.spec.runspec import Probes, RunSpec


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
