# SPDX-License-Identifier: Apache-2.0
"""A run's text: complete, and unchanged by fields that came later."""

from __future__ import annotations

import dataclasses
import json

from conftest import delay_spec

from longfat.runspec import RunSpec


def with_image(image: str | None) -> RunSpec:
    spec = delay_spec()
    return dataclasses.replace(spec, nodes=(dataclasses.replace(spec.nodes[0], image=image), *spec.nodes[1:]))


def test_what_was_written_is_read_back() -> None:
    for spec in (delay_spec(), with_image("web:1")):
        assert RunSpec.from_json(spec.to_json()) == spec


def test_a_later_field_at_its_default_leaves_older_runs_their_identity() -> None:
    assert set(json.loads(with_image(None).to_json())["nodes"][0]) == {
        "name",
        "role",
        "sysctls",
        "offloads",
        "initial_cwnd_segments",
    }


def test_a_later_field_that_is_set_is_part_of_the_identity() -> None:
    assert json.loads(with_image("web:1").to_json())["nodes"][0]["image"] == "web:1"
    assert with_image("web:1").run_id != with_image(None).run_id
