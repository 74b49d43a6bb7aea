# SPDX-License-Identifier: Apache-2.0
"""Settings that a paper does not state, so that a study must assume them: defaults and plausible values.

Owns the replacement of ``${name}`` by the assumed value, before the file is processed further. An unknown can replace
any value, and is not a factor: the name of a scenario does not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from longfat.spec.runspec import Scalar
from longfat.study.formulas import Amount, amount_of
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding, Path, require, shown
from longfat.system.errors import StudyError

SECTION = "unknowns"
_NOT_IN = ("format", "study", "title", "paper", SECTION)


class Unknown(f.Closed):
    """One setting that the paper does not state."""

    what: f.Text = Field(description="name of the setting in a few words, with its unit")
    default: f.FactorValue = Field(description="assumed value")
    between: Annotated[tuple[f.FactorValue, ...], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="the lowest and the highest plausible value; this or `among` is required"
    )
    among: Annotated[tuple[f.FactorValue, ...], Field(min_length=2)] | None = Field(
        default=None, description="all plausible values, if they are not a range"
    )
    source: f.Text = Field(description="source of the plausible values: a document, a driver, the paper's text")

    @model_validator(mode="after")
    def _one_of_two(self) -> Unknown:
        if (self.between is None) == (self.among is None):
            raise f.fault("give either `between` or `among`")
        if self.among is not None and self.default not in self.among:
            raise f.fault(f"`default` is {shown(self.default)}, which is not among them")
        if self.between is not None:
            low, high, default = (_amount(value) for value in (*self.between, self.default))
            if not low.dimension == high.dimension == default.dimension:
                raise f.fault("`between` and `default` are of different units")
            if not low.value < high.value or not low.value <= default.value <= high.value:
                raise f.fault("`default` lies in `between`, whose first value is the lower one")
        return self

    @property
    def plausible(self) -> str:
        """The plausible values as text."""
        if self.between:
            return f"{self.between[0]} to {self.between[1]}"
        return ", ".join(str(value) for value in self.among or ())

    def allows(self, value: Scalar) -> bool:
        """Return whether a value is plausible and has the unit of the default."""
        if self.among is not None:
            return value in self.among
        assert self.between is not None
        low, high = (_amount(one) for one in self.between)
        amount = amount_of(value)
        return amount is not None and amount.dimension == low.dimension and low.value <= amount.value <= high.value


def _amount(value: Scalar) -> Amount:
    amount = amount_of(value)
    if amount is None:
        raise f.fault(f"{shown(value)} is neither a number nor a quantity; `among` takes words")
    return amount


def assumed(data: dict[str, Any], given: Mapping[str, Scalar]) -> tuple[dict[str, Any], list[Finding]]:
    """Replace each unknown in the file's data by its given value, or else by its default.

    The findings are unused unknowns, and unknowns with the name of a factor. Raises StudyError for a value in ``given``
    that is not plausible, and for an unknown name.
    """
    unknowns = _readable(data.get(SECTION))
    _check(given, unknowns)
    if not unknowns:
        return data, []
    values = {name: given.get(name, one.default) for name, one in unknowns.items()}
    used: set[str] = set()
    result = {key: part if key in _NOT_IN else _replaced(part, values, used) for key, part in data.items()}
    findings = [
        Finding((SECTION, name), f"unknown {name!r} is never used; write ${{{name}}} instead of its value")
        for name in values
        if name not in used
    ]
    findings += [
        Finding(path, f"factor {path[-1]!r} has the name of an unknown; names are unique")
        for path in _factors(data.get("experiments"))
        if path[-1] in values
    ]
    return result, findings


def _readable(raw: Any) -> dict[str, Unknown]:
    """Return the valid unknowns; the check of the header reports the others."""
    found = {}
    for name, entry in raw.items() if isinstance(raw, dict) else ():
        with suppress(ValidationError):
            found[name] = Unknown.model_validate(entry)
    return found


def _check(given: Mapping[str, Scalar], unknowns: Mapping[str, Unknown]) -> None:
    for name, value in given.items():
        require("unknown", name, unknowns)
        if not unknowns[name].allows(value):
            raise StudyError(f"{name} = {shown(value)} is not plausible; allowed: {unknowns[name].plausible}")


def _replaced(raw: Any, values: Mapping[str, Scalar], used: set[str]) -> Any:
    if isinstance(raw, dict):
        return {key: _replaced(value, values, used) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_replaced(value, values, used) for value in raw]
    if not isinstance(raw, str) or "${" not in raw:
        return raw
    if (whole := f.REFERENCE.fullmatch(raw)) and whole.group(1) in values:
        used.add(whole.group(1))
        return values[whole.group(1)]
    return raw


def _factors(raw: Any) -> list[Path]:
    """Return the places of the names of all factors."""
    found: list[Path] = []
    for index, experiment in enumerate(raw if isinstance(raw, list) else ()):
        sweep = experiment.get("sweep") if isinstance(experiment, dict) else None
        parts = sweep.items() if isinstance(sweep, dict) else ()
        for group, part in parts:
            place: Path = ("experiments", index, "sweep", group)
            if group in ("product", "zip", "derived") and isinstance(part, dict):
                found += [(*place, name) for name in part]
            elif isinstance(part, list):
                found += [(*place, row, name) for row, one in enumerate(part) if isinstance(one, dict) for name in one]
    return found
