# SPDX-License-Identifier: Apache-2.0
"""House rules of infra/ansible that ansible-lint does not know."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

ANSIBLE = Path(__file__).resolve().parents[2] / "infra/ansible"
ROLES = sorted(folder.name for folder in (ANSIBLE / "roles").iterdir())


def read(*path: str) -> Any:
    return yaml.safe_load(ANSIBLE.joinpath(*path).read_text())


@pytest.mark.parametrize("role", ROLES)
def test_every_setting_has_a_default_that_is_specified_and_explained(role: str) -> None:
    defaults = read("roles", role, "defaults/main.yml")
    options = read("roles", role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert set(defaults) == set(options)
    assert [name for name in defaults if not name.startswith(f"{role}_")] == []
    assert [name for name, option in options.items() if not option.get("description")] == []
    lines = (ANSIBLE / "roles" / role / "defaults/main.yml").read_text().splitlines()
    bare = [line for before, line in pairwise(lines) if line[:1].isalpha() and before[0] != "#"]
    assert bare == []


@pytest.mark.parametrize("role", ROLES)
def test_a_default_that_the_specification_repeats_is_the_same(role: str) -> None:
    defaults = read("roles", role, "defaults/main.yml")
    options = read("roles", role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: defaults[name] for name, option in options.items() if "default" in option} == {
        name: option["default"] for name, option in options.items() if "default" in option
    }


def test_the_programs_are_pinned_to_the_versions_of_the_image() -> None:
    pinned = read("roles/traffic_tools/defaults/main.yml")["traffic_tools_versions"]
    packages = (ANSIBLE.parents[1] / "images/packages.txt").read_text().splitlines()
    assert set(pinned) <= {line.split()[0] for line in packages}


def test_site_plays_every_role() -> None:
    played = {
        task["ansible.builtin.import_role"]["name"]
        for play in read("site.yml")
        for task in play["tasks"]
        if "ansible.builtin.import_role" in task
    }
    assert played == set(ROLES)


def test_nothing_but_ansibles_own_modules_is_used() -> None:
    files = [*ANSIBLE.glob("roles/*/tasks/*.yml"), *ANSIBLE.glob("roles/*/handlers/*.yml"), ANSIBLE / "site.yml"]
    foreign = [path for path in files for word in ("community.", "ansible.posix") if word in path.read_text()]
    assert foreign == []
