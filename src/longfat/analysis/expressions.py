# SPDX-License-Identifier: Apache-2.0
"""The closed models of what a claim or figure may ask for: quantities, limits and tests.

Owns the shape of ``test`` in claims.yaml and of a quantity wherever one is named. Checks what can be checked
without the study; evaluates nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from longfat.analysis.formulas import FORMULAS, arguments_of
from longfat.analysis.metric_table import METRICS
from longfat.analysis.quantities import RELATIONS, Condition, Selection
from longfat.errors import StudyError
from longfat.manifest import fields as f
from longfat.manifest.closed import Closed
from longfat.manifest.names import unknown
from longfat.runspec import Scalar
from longfat.units import Duration, Rate, Size, read_quantity

_CONDITION = re.compile(rf"\s*({'|'.join(RELATIONS)})\s*(.+)")
# What a stated number is allowed to miss by; docs/claims.md has the reasons.
TOLERANCE = 0.05
APPROXIMATE_TOLERANCE = 0.10
# What a quantity may give its metric besides a flow.
PARAMETERS = ("at", "since", "until", "within", "level", "interval", "segment", "lowest", "highest")


def base_units(given: Scalar) -> Scalar:
    """A quantity's text as its number of base units, all else as given. Raises a fault on a bad quantity."""
    if not isinstance(given, str):
        return given
    try:
        quantity = read_quantity(given)
    except StudyError as error:
        raise f.fault(error.message, error.hint) from error
    return quantity.value if quantity else given


def _condition(given: Any) -> Condition:
    values = given if isinstance(given, list) else [given]
    if not values or not all(isinstance(value, bool | int | float | str) for value in values):
        raise f.fault(f'{given!r} is no condition; write a value, a list of values, or such as "> 3 MiB"')
    match = _CONDITION.fullmatch(given) if isinstance(given, str) else None
    if match:
        return Condition(match[1], (_number_if_any(base_units(match[2])),), given)
    return Condition("=", tuple(base_units(value) for value in values), " or ".join(map(str, values)))


def _number_if_any(value: Scalar) -> Scalar:
    """The number that follows a relation without a unit."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


ConditionField = Annotated[Any, BeforeValidator(_condition)]


def _known_metric(given: object) -> object:
    if given not in METRICS:
        raise f.fault(*unknown("metric", given, METRICS))
    return given


def _known_formula(given: object) -> object:
    if given not in FORMULAS:
        raise f.fault(*unknown("formula", given, FORMULAS))
    return given


class Quantity(Closed):
    """A metric over the runs of one experiment, with the parameters that the metric takes."""

    metric: Annotated[str, BeforeValidator(_known_metric)] = Field(description="what is read from each run")
    experiment: f.ExperimentId = Field(description="id of the experiment")
    where: dict[f.FactorName, ConditionField] = Field({}, description="conditions on factors")
    flow: f.Name | None = Field(None, description="one flow of the run (default: all, or the only captured)")
    at: f.Delay | None = Field(None, description="time of the drop")
    since: f.Delay | None = Field(None, description="start of the window of time")
    until: f.Delay | None = Field(None, description="end of the window of time")
    within: f.Length | None = Field(None, description="how long the flows must have lasted")
    level: f.LinkRate | None = Field(None, description="goodput that is to be reached")
    interval: f.Interval | None = Field(None, description="length of the intervals that are compared")
    segment: f.Mtu | None = Field(None, description="payload of a full segment")
    lowest: f.Window | None = Field(None, description="least outstanding data that counts")
    highest: f.Window | None = Field(None, description="most outstanding data that counts")

    @model_validator(mode="after")
    def _check_parameters(self) -> Quantity:
        metric = METRICS[self.metric]
        given = [name for name in ("flow", *PARAMETERS) if getattr(self, name) is not None]
        missing = [name for name in metric.required if name not in given]
        allowed = {*metric.required, *metric.optional, *(("flow",) if metric.flow else ())}
        surplus = [name for name in given if name not in allowed]
        if missing:
            raise f.fault(f"metric {self.metric!r} needs {', '.join(missing)}")
        if surplus:
            raise f.fault(f"metric {self.metric!r} takes no {', '.join(surplus)}")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise f.fault(f"the window from {self.since} to {self.until} is empty")
        return self

    def selection(self) -> Selection:
        """The same in base units, ready to be measured."""
        values = {
            name: float(value.value)
            for name in PARAMETERS
            if isinstance(value := getattr(self, name), Duration | Size | Rate)
        }
        return Selection(self.metric, self.experiment, tuple(self.where.items()), self.flow, values)


class Limits(Closed):
    """What a value is held against; exactly one of the six.

    ``equals`` allows 5 %, 10 % when the paper calls its number ``approximate``, or the paper's own
    ``plus_minus``. ``at_least`` and ``at_most`` include a value that equals them, so within the same 5 %;
    ``above`` and ``below`` are strict.
    """

    equals: f.Number | None = None
    approximate: bool = False
    plus_minus: f.Number | None = None
    above: f.Number | None = None
    below: f.Number | None = None
    at_least: f.Number | None = None
    at_most: f.Number | None = None
    between: tuple[f.Number, f.Number] | None = None

    @model_validator(mode="after")
    def _check_limits(self) -> Limits:
        names = ("equals", "above", "below", "at_least", "at_most", "between")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            found = ", ".join(given) or "none"
            raise f.fault(f"give exactly one of {', '.join(names)}; given: {found}")
        if (self.approximate or self.plus_minus is not None) and given != ["equals"]:
            raise f.fault("approximate and plus_minus belong to equals")
        if self.equals == 0 and self.plus_minus is None:
            raise f.fault("equals 0 has no relative tolerance; give the paper's plus_minus")
        if self.between and self.between[0] >= self.between[1]:
            raise f.fault(f"between {self.between[0]:g} and {self.between[1]:g} holds nothing")
        return self

    def bounds(self) -> tuple[float, float, bool]:
        """Lower and upper bound, and whether they themselves are allowed."""
        if self.between:
            return (*self.between, True)
        if self.above is not None:
            return self.above, float("inf"), False
        if self.below is not None:
            return float("-inf"), self.below, False
        if self.at_least is not None:
            return self.at_least - TOLERANCE * abs(self.at_least), float("inf"), True
        if self.at_most is not None:
            return float("-inf"), self.at_most + TOLERANCE * abs(self.at_most), True
        stated = self.equals or 0.0
        part = APPROXIMATE_TOLERANCE if self.approximate else TOLERANCE
        margin = abs(stated) * part if self.plus_minus is None else self.plus_minus
        return stated - margin, stated + margin, True


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
    """A quantity, or its excess over another, falls strictly along the listed values of a factor.

    For each value of another factor if given.
    """

    kind: Literal["order"]
    of: Quantity
    minus: Quantity | None = None
    by: f.FactorName
    descending: tuple[f.FactorValue, ...] = Field(min_length=2)
    for_each: f.FactorName | None = None


class EqualTest(Closed):
    """A quantity is the same for all values of a factor, for each value of another if given."""

    kind: Literal["equal"]
    of: Quantity
    across: f.FactorName
    for_each: f.FactorName | None = None
    approximate: bool = False

    @property
    def percent(self) -> float:
        """By how much one mean may exceed another."""
        return 100 * (APPROXIMATE_TOLERANCE if self.approximate else TOLERANCE)


class RankTest(Limits):
    """The rank of one value of a factor among all in the lock, 1 for the best, against limits.

    Ranked by ``of``; among those alike in it by ``then``.
    """

    kind: Literal["rank"]
    of: Quantity
    then: Quantity
    by: f.FactorName
    value: f.FactorValue

    @model_validator(mode="after")
    def _check_rank(self) -> RankTest:
        if self.of.experiment != self.then.experiment:
            experiments = f"{self.of.experiment!r} and {self.then.experiment!r}"
            raise f.fault(f"of and then are of experiments {experiments}; one experiment's runs are ranked")
        for quantity in (self.of, self.then):
            condition = quantity.where.get(self.by)
            if condition is not None and not condition.holds(base_units(self.value)):
                raise f.fault(f"the conditions on {self.by!r} leave out {self.value!r}, whose rank is asked for")
        return self


class FormulaTest(Limits):
    """A formula's value, computed and not measured, against limits."""

    kind: Literal["formula"]
    formula: Annotated[str, BeforeValidator(_known_formula)]
    arguments: dict[str, f.FactorValue] = Field({}, description="by name; numbers or quantities")

    @model_validator(mode="after")
    def _check_arguments(self) -> FormulaTest:
        check_arguments(self.formula, self.arguments)
        return self


class AllTest(Closed):
    """Several tests that must all hold."""

    kind: Literal["all"]
    tests: tuple[SimpleTest, ...] = Field(min_length=2)


class NotTestable(Closed):
    """A claim that this testbed cannot test, with the reason."""

    kind: Literal["not_testable"]
    reason: f.Text


SIMPLE = {
    "value": ValueTest,
    "ratio": RatioTest,
    "gain": GainTest,
    "difference": DifferenceTest,
    "order": OrderTest,
    "equal": EqualTest,
    "rank": RankTest,
    "formula": FormulaTest,
}
KINDS = (*SIMPLE, "all", "not_testable")


def _kind_within(allowed: tuple[str, ...]) -> BeforeValidator:
    def check(given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise f.fault(f"{given!r} is not a mapping of keys to values")
        if given.get("kind") not in allowed:
            raise f.fault(*unknown("kind of test", given.get("kind"), allowed))
        return given

    return BeforeValidator(check)


def _tag(given: Any) -> str:
    kind = given["kind"] if isinstance(given, Mapping) else given.kind
    return f"<{kind}>"


SimpleTest = Annotated[
    Annotated[ValueTest, Tag("<value>")]
    | Annotated[RatioTest, Tag("<ratio>")]
    | Annotated[GainTest, Tag("<gain>")]
    | Annotated[DifferenceTest, Tag("<difference>")]
    | Annotated[OrderTest, Tag("<order>")]
    | Annotated[EqualTest, Tag("<equal>")]
    | Annotated[RankTest, Tag("<rank>")]
    | Annotated[FormulaTest, Tag("<formula>")],
    Discriminator(_tag),
    _kind_within(tuple(SIMPLE)),
]
AllTest.model_rebuild()
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
    Discriminator(_tag),
    _kind_within(KINDS),
]


def check_arguments(formula: str, arguments: Mapping[str, Scalar]) -> None:
    """Raise a fault unless the arguments are those of the formula, each a number or a quantity."""
    needed = arguments_of(formula)
    for name in arguments:
        if name not in needed:
            raise f.fault(*unknown(f"argument of {formula}", name, needed))
    missing = [name for name in needed if name not in arguments]
    if missing:
        raise f.fault(f"formula {formula!r} needs {', '.join(missing)}")
    for name, value in arguments.items():
        number = base_units(value)
        if isinstance(number, bool | str) or number <= 0:
            raise f.fault(f"argument {name} is {value!r}; allowed: a number or a quantity above 0")


def compute(formula: str, arguments: Mapping[str, Scalar]) -> float:
    """The formula's value for checked arguments."""
    numbers: dict[str, Any] = {name: base_units(value) for name, value in arguments.items()}
    return float(FORMULAS[formula](**numbers))
