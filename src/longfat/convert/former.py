# SPDX-License-Identifier: Apache-2.0
"""Format 1: quantities, and the tests of claims.

Owns their shape. The meaning of their names does not matter here, and metrics and formulas check their own arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from longfat.manifest import fields as f
from longfat.manifest.closed import Closed
from longfat.manifest.names import unknown
from longfat.relations.claims import PaperStatement
from longfat.runspec import Scalar


def _condition(given: object) -> object:
    values = given if isinstance(given, list | tuple) else [given]
    if not values or not all(isinstance(value, bool | int | float | str) for value in values):
        raise f.fault(f'{given!r} is no condition; write a value, a list of values, or such as "> 3 MiB"')
    return tuple(values) if isinstance(given, list) else given


Condition = Annotated[bool | int | float | str | tuple[Scalar, ...], BeforeValidator(_condition)]


class Quantity(Closed):
    """A metric over the runs of one experiment, with the parameters that the metric takes."""

    metric: f.Text
    experiment: f.Text
    where: dict[f.FactorName, Condition] = Field({})
    flow: f.Name | None = None
    at: f.FactorValue | None = None
    since: f.FactorValue | None = None
    until: f.FactorValue | None = None
    within: f.FactorValue | None = None
    level: f.FactorValue | None = None
    interval: f.FactorValue | None = None
    segment: f.FactorValue | None = None
    lowest: f.FactorValue | None = None
    highest: f.FactorValue | None = None

    @property
    def parameters(self) -> dict[str, Scalar]:
        """The flow and the metric's parameters, as far as they are given."""
        given = {name: getattr(self, name) for name in _PARAMETERS}
        return {name: value for name, value in given.items() if value is not None}


_PARAMETERS = [name for name in Quantity.model_fields if name not in ("metric", "experiment", "where")]
LIMITS = {"above": ">", "below": "<", "at_least": ">=", "at_most": "<="}


class Limits(Closed):
    """The limit that a value is compared with: exactly one of the six."""

    equals: f.FactorValue | None = None
    approximate: bool = False
    plus_minus: f.FactorValue | None = None
    above: f.FactorValue | None = None
    below: f.FactorValue | None = None
    at_least: f.FactorValue | None = None
    at_most: f.FactorValue | None = None
    between: tuple[f.FactorValue, f.FactorValue] | None = None

    @model_validator(mode="after")
    def _check_limits(self) -> Limits:
        names = ("equals", *LIMITS, "between")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            raise f.fault(f"give exactly one of {', '.join(names)}; given: {', '.join(given) or 'none'}")
        if (self.approximate or self.plus_minus is not None) and self.equals is None:
            raise f.fault("approximate and plus_minus belong to equals")
        return self


class ValueTest(Limits):
    """One quantity against limits."""

    kind: Literal["value"]
    of: Quantity


class RatioTest(Limits):
    """One quantity over another against limits."""

    kind: Literal["ratio"]
    of: Quantity
    to: Quantity


class GainTest(Limits):
    """By how many percent one quantity exceeds another, against limits."""

    kind: Literal["gain"]
    of: Quantity
    over: Quantity


class DifferenceTest(Limits):
    """One quantity less another, in its unit, against limits."""

    kind: Literal["difference"]
    of: Quantity
    minus: Quantity


class OrderTest(Closed):
    """A quantity, or its excess over another, falls strictly along the listed values of a factor."""

    kind: Literal["order"]
    of: Quantity
    minus: Quantity | None = None
    by: f.FactorName
    descending: tuple[f.FactorValue, ...] = Field(min_length=2)
    for_each: f.FactorName | None = None


class EqualTest(Closed):
    """A quantity is the same for all values of a factor."""

    kind: Literal["equal"]
    of: Quantity
    across: f.FactorName
    for_each: f.FactorName | None = None
    approximate: bool = False


class RankTest(Limits):
    """The rank of one value of a factor among all, by ``of``, and among values similar in it by ``then``."""

    kind: Literal["rank"]
    of: Quantity
    then: Quantity
    by: f.FactorName
    value: f.FactorValue


class FormulaTest(Limits):
    """A formula's value, computed and not measured, against limits."""

    kind: Literal["formula"]
    formula: f.Text
    arguments: dict[str, f.FactorValue] = Field({})


class AllTest(Closed):
    """Several tests that must all hold."""

    kind: Literal["all"]
    tests: tuple[Test, ...] = Field(min_length=1)


class NotTestable(Closed):
    """A claim that this testbed cannot test, with the reason."""

    kind: Literal["not_testable"]
    reason: f.Text


SimpleTest = ValueTest | RatioTest | GainTest | DifferenceTest | OrderTest | EqualTest | RankTest | FormulaTest
_KINDS = ("value", "ratio", "gain", "difference", "order", "equal", "rank", "formula", "all", "not_testable")


def _known_kind(given: object) -> object:
    if not isinstance(given, Mapping):
        raise f.fault(f"{given!r} is not a mapping of keys to values")
    if given.get("kind") not in _KINDS:
        raise f.fault(*unknown("kind of test", given.get("kind"), _KINDS))
    return given


Test = Annotated[
    Annotated[ValueTest, Tag("<value>")]
    | Annotated[RatioTest, Tag("<ratio>")]
    | Annotated[GainTest, Tag("<gain>")]
    | Annotated[DifferenceTest, Tag("<difference>")]
    | Annotated[OrderTest, Tag("<order>")]
    | Annotated[EqualTest, Tag("<equal>")]
    | Annotated[RankTest, Tag("<rank>")]
    | Annotated[FormulaTest, Tag("<formula>")]
    | Annotated[AllTest, Tag("<all>")]
    | Annotated[NotTestable, Tag("<not_testable>")],
    Discriminator(lambda given: f"<{given['kind']}>"),
    BeforeValidator(_known_kind),
]
AllTest.model_rebuild()


class Claim(Closed):
    """One testable statement of the paper."""

    id: f.Name
    artifact: f.Name | None = None
    also: tuple[f.Name, ...] = ()
    kind: Literal["analytic", "numeric", "qualitative", "ordering", "ratio"]
    statement: f.Text
    paper: PaperStatement
    test: Test


class ClaimsDocument(Closed):
    """The whole of a claims.yaml of format 1."""

    format: Literal[1]
    study: f.Name
    claims: tuple[Claim, ...]
