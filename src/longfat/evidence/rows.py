# SPDX-License-Identifier: Apache-2.0
"""A row of evidence: one run with its values, as a line of text.

Owns the format of the line, the format of numbers (nine significant digits), and the merging of two rows of one run.
Must not know the files of rows.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StrictStr, TypeAdapter, ValidationError

from longfat.metrics.quantities import Selection, significant
from longfat.spec.plain import canonical_json
from longfat.spec.runspec import Scalar

SPEC_DIGITS = 16  # enough of a spec's digest to distinguish specs of one scenario and repetition
Value = float | str  # a number, or the reason why it is absent
_KEY = re.compile(r"([a-z][a-z0-9_]*)@([0-9a-f]{8})(?:\[(.*)\])?")


class Conflict(Exception):
    """A contradiction between two rows of one run; the text names the difference."""


@dataclass(frozen=True)
class ValueKey:
    """The key of a value: a metric with the digest of its definition, flow and parameters (base units)."""

    metric: str
    definition: str
    flow: str | None = None
    parameters: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        given = [f"flow={self.flow}"] if self.flow else []
        given += [f"{name}={value!r}" for name, value in self.parameters]
        return f"{self.metric}@{self.definition}" + (f"[{','.join(given)}]" if given else "")

    @classmethod
    def read(cls, text: str) -> ValueKey:
        """Parse the text of a key. Raises ValueError."""
        match = _KEY.fullmatch(text)
        if not match:
            raise ValueError(f"{text!r} is not a metric with its definition")
        given = [part.partition("=")[::2] for part in match[3].split(",")] if match[3] else []
        flow = next((value for name, value in given if name == "flow"), None)
        parameters = tuple(sorted((name, float(value)) for name, value in given if name != "flow"))
        return cls(match[1], match[2], flow, parameters)

    def selection(self, experiment: str) -> Selection:
        """Return the selection of this value in an experiment."""
        return Selection(self.metric, experiment, (), self.flow, dict(self.parameters))


@dataclass(frozen=True)
class Row:
    """One run. ``spec`` is the digest of its RunSpec with names instead of digests of kernel, image and code,

    so that all members of a baseline have the same. ``run_id`` and ``made``, the key of a combination, identify the one
    that ran. ``measured`` is the digest of the measurements; in an invalid run it is None, and ``reason`` is given.
    ``assuming`` has values of the study's unknowns that differ from their defaults. A row with the reason ``withdrawn``
    excludes the row of this run with these measurements, even if a merge restores it.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    scenario: StrictStr
    repetition: Annotated[int, Field(strict=True, ge=1)]
    spec: StrictStr
    run_id: StrictStr
    made: StrictStr
    measured: Annotated[StrictStr, Field(min_length=1)] | None
    seconds: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
    values: dict[str, Annotated[float, Field(strict=True, allow_inf_nan=False)] | StrictStr] = field(
        default_factory=dict
    )
    reason: StrictStr | None = None
    assuming: Mapping[str, Scalar] = field(default_factory=dict)
    withdrawn: StrictStr | None = None

    @property
    def key(self) -> tuple[str, int, str]:
        """The identity of the run, and the order of rows."""
        mark = "" if self.withdrawn is None else f" withdrawn {self.measured}"
        return self.scenario, self.repetition, self.spec + mark

    @property
    def outcome(self) -> tuple[str, int, str, str | None]:
        """The run and its measurements, as in a withdrawal."""
        return self.scenario, self.repetition, self.spec, self.measured

    @property
    def name(self) -> str:
        """The name of the run, for people."""
        return f"{self.scenario}, repetition {self.repetition}"

    def line(self) -> str:
        """Return the row as canonical JSON."""
        data: dict[str, object] = {
            "made": self.made,
            "measured": self.measured,
            "repetition": self.repetition,
            "run": self.run_id,
            "scenario": self.scenario,
            "seconds": round(self.seconds, 2),
            "spec": self.spec,
            "values": {name: canonical(value) for name, value in self.values.items()},
        }
        if self.reason is not None:
            data["reason"] = self.reason
        if self.assuming:
            data["assuming"] = dict(self.assuming)
        if self.withdrawn is not None:
            data["withdrawn"] = self.withdrawn
        return canonical_json(data)

    @classmethod
    def read(cls, data: Mapping[str, object]) -> Row:
        """Build a row from the data of a line. Raises KeyError or ValueError."""
        fields = {**data, "run_id": data["run"]}
        del fields["run"]
        try:
            row = _ROW.validate_python(fields)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            if first["type"] == "missing":
                raise KeyError(key) from error
            raise ValueError(f"{key} is {first['input']!r}: {first['msg']}") from error
        for name in row.values:
            if str(ValueKey.read(name)) != name:
                raise ValueError(f"values has {name!r}, which is written {str(ValueKey.read(name))!r}")
        if row.reason is not None and row.values:
            raise ValueError("an invalid run has values")
        if (row.measured is None) == (row.reason is None):
            raise ValueError("a row needs either a digest of its measurements or the reason why it is invalid")
        return row


_ROW = TypeAdapter(Row)


def merge(one: Row, other: Row) -> Row:
    """Merge two rows of one run, in any order. Raises Conflict if they contradict each other."""
    if (one.measured, one.reason) != (other.measured, other.reason):
        raise Conflict(f"measured {_outcome(one)} and {_outcome(other)}")
    for name in sorted({*one.values} & {*other.values}):
        if one.values[name] != other.values[name]:
            raise Conflict(f"{name} is {one.values[name]!r} and {other.values[name]!r}")
    first = min(one, other, key=lambda row: (row.made, row.run_id))
    # An unknown that only one of the rows mentions does not affect the run.
    assuming = min(one.assuming, other.assuming, key=lambda given: (len(given), canonical_json(dict(given))))
    seconds, values = min(one.seconds, other.seconds), {**one.values, **other.values}
    return replace(first, seconds=seconds, values=values, assuming=assuming)


def standing(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that no other row withdraws."""
    every = list(rows)
    gone = {row.outcome for row in every if row.withdrawn is not None}
    return [row for row in every if row.withdrawn is not None or row.outcome not in gone]


def _outcome(row: Row) -> str:
    return row.measured[:16] if row.measured else f"an invalid run ({row.reason})"


def canonical(value: Value) -> Value:
    """Return a value with nine significant digits; an infinite value or NaN becomes a reason."""
    if isinstance(value, str):
        return value
    return significant(value) if math.isfinite(value) else f"the value is {value}"


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) < len(pairs):
        twice = sorted(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"given more than once: {', '.join(map(repr, twice))}")
    return data


def read_line(text: str) -> dict[str, Any]:
    """Parse a line. Raises ValueError, also on a key that is given twice."""
    data = json.loads(text, object_pairs_hook=_each_once)
    if not isinstance(data, dict):
        raise ValueError("the line is not a JSON object")
    return data
