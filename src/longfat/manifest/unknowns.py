# SPDX-License-Identifier: Apache-2.0
"""Settings that a paper does not state and a study has to assume: their defaults and other plausible values.

Owns the replacement of ``${name}`` by the assumed value, before any other processing of the file. An unknown may
therefore be used wherever a value may, and is not a factor: a scenario keeps its name whatever is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from longfat.errors import StudyError
from longfat.manifest.formulas import Amount, amount_of
from longfat.runspec import Scalar
from longfat.schema import fields as f
from longfat.schema.closed import Closed
from longfat.schema.names import Finding, Path, shown, unknown

SECTION = "unknowns"
_NOT_IN = ("format", "study", "title", "paper", SECTION)


class Unknown(Closed):
    """One thing that the paper leaves open."""

    what: f.Text = Field(description="what it is, in a few words with its unit")
    default: f.FactorValue = Field(description="what runs assume")
    between: Annotated[tuple[f.FactorValue, ...], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="the lowest and the highest value that are plausible; this or `among` is required"
    )
    among: Annotated[tuple[f.FactorValue, ...], Field(min_length=2)] | None = Field(
        default=None, description="all values that are plausible, where they are no range"
    )
    source: f.Text = Field(description="why these are plausible: a document, a driver, the paper's own words")

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
        """Its values, for people."""
        if self.between:
            return f"{self.between[0]} to {self.between[1]}"
        return ", ".join(str(value) for value in self.among or ())

    def allows(self, value: Scalar) -> bool:
        """Whether a value is plausible, and of the default's unit."""
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
    """The file's data with each unknown replaced by its given value, or else by its default.

    Findings are unknowns that nothing uses or whose name is a factor's. Raises StudyError for a value in ``given`` that
    is not plausible, or of an unknown that does not exist.
    """
    unknowns = _readable(data.get(SECTION))
    _check(given, unknowns)
    if not unknowns:
        return data, []
    values = {name: given.get(name, one.default) for name, one in unknowns.items()}
    used: set[str] = set()
    result = {key: part if key in _NOT_IN else _replaced(part, values, used) for key, part in data.items()}
    findings = [
        Finding((SECTION, name), f"unknown {name!r} is never used; write ${{{name}}} where its value belongs")
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
    """The valid unknowns; the faults of others are found with the rest of the header."""
    found = {}
    for name, entry in raw.items() if isinstance(raw, dict) else ():
        with suppress(ValidationError):
            found[name] = Unknown.model_validate(entry)
    return found


def _check(given: Mapping[str, Scalar], unknowns: Mapping[str, Unknown]) -> None:
    for name, value in given.items():
        if name not in unknowns:
            message, hint = unknown("unknown", name, unknowns)
            raise StudyError(message, hint=hint)
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
    """The places of the names of all factors."""
    found: list[Path] = []
    for index, experiment in enumerate(raw if isinstance(raw, list) else ()):
        sweep = experiment.get("sweep") if isinstance(experiment, dict) else None
        parts = sweep.items() if isinstance(sweep, dict) else ()
        for group, part in parts:
            if group in ("product", "zip", "derived") and isinstance(part, dict):
                found += [("experiments", index, "sweep", group, name) for name in part]
    return found
