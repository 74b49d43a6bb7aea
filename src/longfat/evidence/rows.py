# SPDX-License-Identifier: Apache-2.0
"""A row of evidence: one run with the values that were read from it, as a line of text.

Owns the format of the line, the format of numbers (nine significant digits), and the merging of two rows of one run.
Must not know the files of rows.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from longfat.metrics.quantities import Selection, significant
from longfat.spec.plain import canonical_json
from longfat.spec.runspec import Scalar

SPEC_DIGITS = 16  # enough of a spec's digest to distinguish specs of one scenario and repetition
Value = float | str  # a number, or the reason why it is absent
_KEY = re.compile(r"([a-z][a-z0-9_]*)@([0-9a-f]{8})(?:\[(.*)\])?")


class Conflict(Exception):
    """Two rows of one run that contradict each other; the text names the difference."""


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
        """Return the engine's selection for it in an experiment."""
        return Selection(self.metric, experiment, (), self.flow, dict(self.parameters))


@dataclass(frozen=True)
class Row:
    """One run. ``spec`` is the digest of its RunSpec with names instead of digests of kernel, image and code.

    So it is equal for all members of a baseline; ``run_id`` and ``made``, the key of a combination, name the one that
    ran. ``measured`` is the digest of the measurements; in an invalid run it is None, and ``reason`` is given.
    ``assuming`` has values of the study's unknowns that differ from their defaults.
    """

    scenario: str
    repetition: int
    spec: str
    run_id: str
    made: str
    measured: str | None
    seconds: float
    values: Mapping[str, Value] = field(default_factory=dict)
    reason: str | None = None
    assuming: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int, str]:
        """The identity of the run, and the order of rows."""
        return self.scenario, self.repetition, self.spec

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
        return canonical_json(data)

    @classmethod
    def read(cls, data: Mapping[str, object]) -> Row:
        """Build a row from the data of a line. Raises KeyError, TypeError or ValueError."""
        known = {"assuming", "made", "measured", "reason", "repetition", "run", "scenario", "seconds", "spec", "values"}
        if unknown := sorted({*data} - known):
            raise ValueError(f"{unknown[0]!r} is not a key of a row")
        repetition, seconds, given = data["repetition"], data["seconds"], data["values"]
        if not isinstance(repetition, int) or isinstance(repetition, bool) or repetition < 1:
            raise ValueError(f"repetition is {repetition!r}; allowed: 1 or more")
        if not _is_number(seconds) or seconds < 0:
            raise ValueError(f"seconds is {seconds!r}; allowed: a number, 0 or more")
        if not isinstance(given, dict):
            raise TypeError(f"values is {given!r}, not an object")
        assuming = data.get("assuming", {})
        if not isinstance(assuming, dict):
            raise TypeError(f"assuming is {assuming!r}, not an object")
        values: dict[str, Value] = {}
        for name, value in given.items():
            ValueKey.read(name)
            if not isinstance(value, str) and not _is_number(value):
                raise ValueError(f"{name} is {value!r}, neither a number nor a reason")
            values[name] = value if isinstance(value, str) else float(value)
        row = cls(
            scenario=_text(data, "scenario"),
            repetition=repetition,
            spec=_text(data, "spec"),
            run_id=_text(data, "run"),
            made=_text(data, "made"),
            measured=None if data["measured"] is None else _text(data, "measured"),
            seconds=float(seconds),
            values=values,
            reason=None if data.get("reason") is None else _text(data, "reason"),
            assuming=assuming,
        )
        if (row.measured is None) == (row.reason is None):
            raise ValueError("a row needs either a digest of its measurements or the reason why it is invalid")
        return row


def merge(one: Row, other: Row) -> Row:
    """Merge two rows of one run, in any order. Raises Conflict if they contradict each other."""
    if (one.measured, one.reason) != (other.measured, other.reason):
        raise Conflict(f"measured {_outcome(one)} and {_outcome(other)}")
    for name in sorted({*one.values} & {*other.values}):
        if one.values[name] != other.values[name]:
            raise Conflict(f"{name} is {one.values[name]!r} and {other.values[name]!r}")
    first = min(one, other, key=lambda row: (row.made, row.run_id))
    # The run does not depend on an unknown that only one row mentions.
    assuming = min(one.assuming, other.assuming, key=lambda given: (len(given), canonical_json(dict(given))))
    seconds, values = min(one.seconds, other.seconds), {**one.values, **other.values}
    return replace(first, seconds=seconds, values=values, assuming=assuming)


def _outcome(row: Row) -> str:
    return row.measured[:16] if row.measured else f"an invalid run ({row.reason})"


def canonical(value: Value) -> Value:
    """Return a value with nine significant digits; a value that is not finite becomes a reason."""
    if isinstance(value, str):
        return value
    return significant(value) if math.isfinite(value) else f"the value is {value}"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)


def _text(data: Mapping[str, object], name: str) -> str:
    value = data[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, not a text")
    return value


def read_line(text: str) -> Mapping[str, object]:
    """Parse a line. Raises ValueError."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("the line is not a JSON object")
    return data
