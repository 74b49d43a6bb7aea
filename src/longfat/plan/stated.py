# SPDX-License-Identifier: Apache-2.0
"""Stated keys of a manifest without effect on any run, which the plan would list as settings.

Each stated number, switch and word is replaced by other values, and the resulting runs are compared. Must not know
any key.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from longfat.plan.resolve import repeat, resolve
from longfat.spec.runspec import RunSpec
from longfat.spec.units import Quantity
from longfat.study.catalog.stacks import STACKS
from longfat.study.inherit import Placed
from longfat.study.models import Experiment, Hosts
from longfat.study.schema.names import Finding, Path
from longfat.study.study import Study
from longfat.study.traffic import SECTIONS

_PARTS = ("topology", "hosts", *SECTIONS, "probes", "drops", "memory")


def without_effect(study: Study) -> Iterator[Finding]:
    """Yield each stated key that changes no run of the study, at its place in the file."""
    effective: set[Path] = set()
    idle: dict[Path, None] = {}
    for swept in study.experiments:
        settled: Mapping[Path, Path] | None = None
        for point in swept.points:
            if point.places == settled:
                continue  # the same keys as at an earlier point, which all have an effect
            experiment, placed, header = point.experiment, Placed({}, point.places), study.header
            before: RunSpec | None = None
            for inside, path, value, annotation in _stated(experiment, header.hosts):
                place = ("hosts", *path) if inside == "hosts" else placed.place(path)
                if place in effective:
                    continue
                before = before or _run(experiment, study)
                for other in _others(value, annotation):
                    if inside == "hosts":
                        changed = replace(
                            study, header=header.model_copy(update={"hosts": _with(header.hosts, path, other)})
                        )
                        differs = _differs(before, experiment, changed)
                    else:
                        differs = _differs(before, _with(experiment, path, other), study)
                    if differs:
                        effective.add(place)
                        break
                    idle[place] = None
            settled = point.places if effective.issuperset(idle) else None
    for place in idle:
        if place not in effective:
            message = "has no effect: with other values every run of the study is the same"
            yield Finding(place, message, "leave it out, or state what it needs")


def _stated(experiment: Experiment, hosts: Hosts) -> Iterator[tuple[str, Path, Any, Any]]:
    """Yield the values that an experiment states, and the values that the study states for all hosts."""
    for path, value, annotation in _leaves(experiment, (), None):
        if path[0] in _PARTS:
            yield "experiment", path, value, annotation
    for path, value, annotation in _leaves(hosts, (), None):
        yield "hosts", path, value, annotation


def _differs(before: RunSpec, experiment: Experiment, study: Study) -> bool:
    try:
        return _run(experiment, study) != before
    except (ValueError, ArithmeticError, LookupError, TypeError, AssertionError):
        return True  # the value has an effect: an unchecked copy of the model fails on it


def _run(experiment: Experiment, study: Study) -> RunSpec:
    return repeat(resolve(experiment, study, STACKS[study.header.stack], {}), experiment, 0, 1)


def _leaves(value: Any, path: Path, annotation: Any) -> Iterator[tuple[Path, Any, Any]]:
    """Yield each stated value with its path and its type."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        for name in (name for name in fields if name in value.model_fields_set):
            yield from _leaves(getattr(value, name), (*path, name), fields[name].annotation)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(part, (*path, key), None)
    elif isinstance(value, tuple):
        for index, part in enumerate(value):
            yield from _leaves(part, (*path, index), None)
    else:
        yield path, value, annotation


def _with(value: Any, path: Path, other: Any) -> Any:
    """Return a copy with another value at a path."""
    if not path:
        return other
    key, *rest = path
    if isinstance(value, BaseModel):
        name = str(key)
        return value.model_copy(update={name: _with(getattr(value, name), tuple(rest), other)})
    if isinstance(value, Mapping):
        return {**value, key: _with(value[key], tuple(rest), other)}
    return tuple(_with(part, tuple(rest), other) if place == key else part for place, part in enumerate(value))


def _others(value: Any, annotation: Any) -> Iterator[Any]:
    """Yield other values of the same kind, near and far ones, because limits are rounded to whole packets."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, Quantity):
        yield from (type(value)(number) for number in (2 * value.value + 2, 1000 * value.value + 1000, 2))
    elif isinstance(value, int | float):
        yield from (2 * value + 1, 1000 * value + 1000)
    elif isinstance(value, str):
        words = _words(annotation)
        yield from (word for word in words if value in words and word != value)


def _words(annotation: Any) -> tuple[str, ...]:
    """Return the allowed words of a type that lists them."""
    if typing.get_origin(annotation) is typing.Literal:
        return tuple(word for word in typing.get_args(annotation) if isinstance(word, str))
    return tuple(word for part in typing.get_args(annotation) for word in _words(part))
