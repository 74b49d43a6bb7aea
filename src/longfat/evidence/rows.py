# SPDX-License-Identifier: Apache-2.0
"""A row of evidence: one run with the values that were read from it, as a line of text.

Owns the form of the line, that of numbers (nine significant digits), and what two rows of one run make together. Must
not know where rows are kept.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from longfat.metrics.quantities import Selection, significant
from longfat.plain import canonical_json
from longfat.runspec import Scalar

SPEC_DIGITS = 16  # of a spec's digest: within one scenario and repetition they tell one from another
Value = float | str  # a number, or why there is none
_KEY = re.compile(r"([a-z][a-z0-9_]*)@([0-9a-f]{8})(?:\[(.*)\])?")


class Conflict(Exception):
    """Two rows of one run that cannot both be true; the text says in what they differ."""


@dataclass(frozen=True)
class ValueKey:
    """What a value is of: a metric by one definition, with flow and parameters (base units)."""

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
        """Read what ``str`` gave. Raises ValueError."""
        match = _KEY.fullmatch(text)
        if not match:
            raise ValueError(f"{text!r} names no metric with its definition")
        given = [part.partition("=")[::2] for part in match[3].split(",")] if match[3] else []
        flow = next((value for name, value in given if name == "flow"), None)
        parameters = tuple(sorted((name, float(value)) for name, value in given if name != "flow"))
        return cls(match[1], match[2], flow, parameters)

    def selection(self, experiment: str) -> Selection:
        """What the engine would ask for it by, in an experiment."""
        return Selection(self.metric, experiment, (), self.flow, dict(self.parameters))


@dataclass(frozen=True)
class Row:
    """One run. ``spec`` is the digest of its RunSpec with names in the place of the digests of what it ran with.

    So it is the same for all that behaves alike; ``run_id`` and ``made``, the key of a combination, are of the one that
    ran. ``measured`` is the digest of what was measured, None where the run is not valid, and ``reason`` says why.
    ``assuming`` has what was assumed for unknowns of the study in place of their defaults.
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
        """What two rows of one run have in common; rows stand in this order."""
        return self.scenario, self.repetition, self.spec

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.scenario}, repetition {self.repetition}"

    def line(self) -> str:
        """Canonical JSON."""
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
        """Build from a line's data. Raises KeyError, TypeError or ValueError on another shape."""
        known = {"assuming", "made", "measured", "reason", "repetition", "run", "scenario", "seconds", "spec", "values"}
        if unknown := sorted({*data} - known):
            raise ValueError(f"{unknown[0]!r} is no part of a row")
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
            raise ValueError("a row has a digest of what was measured, or a reason why it does not count")
        return row


def united(one: Row, other: Row) -> Row:
    """All that two rows of one run say, whichever comes first. Raises Conflict where they contradict each other."""
    if (one.measured, one.reason) != (other.measured, other.reason):
        raise Conflict(f"measured {_outcome(one)} and {_outcome(other)}")
    for name in sorted({*one.values} & {*other.values}):
        if one.values[name] != other.values[name]:
            raise Conflict(f"{name} is {one.values[name]!r} and {other.values[name]!r}")
    first = min(one, other, key=lambda row: (row.made, row.run_id))
    # What a run does not depend on may be assumed in any way: the row that assumes least says most.
    assuming = min(one.assuming, other.assuming, key=lambda given: (len(given), canonical_json(dict(given))))
    seconds, values = min(one.seconds, other.seconds), {**one.values, **other.values}
    return replace(first, seconds=seconds, values=values, assuming=assuming)


def _outcome(row: Row) -> str:
    return row.measured[:16] if row.measured else f"nothing that counts ({row.reason})"


def canonical(value: Value) -> Value:
    """A value as rows have it: of nine significant digits; one that is not finite is a reason."""
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
    """The data of a line. Raises ValueError."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("the line is no JSON object")
    return data
