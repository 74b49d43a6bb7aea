# SPDX-License-Identifier: Apache-2.0
"""Settings of the roles in ``settings.yml``, which must have the names and types of the roles' argument specs.

Ansible itself ignores an unknown name, and turns a text into a list of one word where it needs a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from longfat.backends.testbed.provision.variables import INFRA
from longfat.study.schema.names import Finding, unknown
from longfat.study.schema.source import read_source
from longfat.system.errors import StudyError

_SPECS = "ansible/roles/*/meta/argument_specs.yml"
_KINDS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "list": ("a list", (list,)),
    "dict": ("a mapping", (dict,)),
    "bool": ("true or false", (bool,)),
    "int": ("a whole number", (int,)),
    "float": ("a number", (int, float)),
    "str": ("a text", (str, int, float)),
    "path": ("a path", (str,)),
}


def read_settings(path: Path) -> dict[str, Any]:
    """Return the settings in a file, by name. Raises StudyError with every unknown name and value of a wrong type."""
    source = read_source(path, "lab's settings")
    settings = {} if source.data is None else source.data
    if not isinstance(settings, dict):
        raise StudyError("the lab's settings are not a mapping of names to values", where=str(path))
    if findings := [*source.findings, *_findings(settings)]:
        raise StudyError("the lab's settings are wrong", problems=tuple(map(source.problem, findings)))
    return settings


def _findings(settings: Mapping[str, Any]) -> Iterator[Finding]:
    options = _options()
    for name, value in settings.items():
        if option := options.get(name):
            kind, types = _KINDS[option["type"]]
            _, of = _KINDS[option["elements"]] if "elements" in option else ("", (object,))
            sound = isinstance(value, types) and isinstance(value, bool) == (kind == "true or false")
            if not sound or not all(isinstance(one, of) for one in (value if isinstance(value, list) else ())):
                yield Finding((name,), f"{value!r} is not allowed; allowed: {kind}")
        elif not name.startswith("ansible_"):
            yield Finding((name,), *unknown("setting", name, options))


def _options() -> dict[str, Any]:
    specs = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(INFRA.glob(_SPECS))]
    return {name: option for spec in specs for name, option in spec["argument_specs"]["main"]["options"].items()}
