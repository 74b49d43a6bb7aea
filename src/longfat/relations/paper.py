# SPDX-License-Identifier: Apache-2.0
"""The paper's own numbers as grounds to judge on, and the identity of two quantities or two tests.

Owns the identity of quantities and tests over a study's points. Measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from longfat.manifest.study import Study
from longfat.metrics.data import NoValue
from longfat.metrics.orders import Judged
from longfat.metrics.quantities import Selection
from longfat.metrics.statistics import Estimate, exactly
from longfat.relations.bind import (
    Scope,
    ValuesOf,
    along,
    has_points,
    is_constant,
    scopes,
    selection_of,
    terms_of,
    values_in_study,
)
from longfat.relations.evaluate import Allowed, constant
from longfat.relations.limits import APPROXIMATE_TOLERANCE, TOLERANCE, Agreement, Limits
from longfat.relations.syntax import (
    Alike,
    Binary,
    Chain,
    Comparator,
    Count,
    Expression,
    Extreme,
    Formula,
    Gain,
    Number,
    Places,
    Rank,
    Relation,
    Term,
    Within,
)
from longfat.runspec import Scalar

Key = Hashable


class Test(NamedTuple):
    """One comparison over the whole study: quantity, limit, and its number where the paper prints it."""

    quantity: Key
    allowed: Allowed
    number: float | None = None
    about: bool = False  # the number is called approximate


@dataclass(frozen=True)
class PaperNumbers:
    """The paper's numbers for the metrics that relations name; the grounds on which a test is tested."""

    study: Study
    numbers: Mapping[Key, float]

    @property
    def values_of(self) -> ValuesOf:
        """The values of a factor over the study's points."""
        return values_in_study(self.study)

    def read(self, selection: Selection, least: int | None) -> Estimate:
        """The paper's number. Raises NoValue where it is not given."""
        key = quantity(selection, self.study)
        if key not in self.numbers:
            raise NoValue("the paper's number is not given")
        return exactly(self.numbers[key])

    def middle(self, selection: Selection, least: int | None) -> Judged:
        """The paper's number. Raises NoValue where it is not given."""
        return self.read(selection, least)

    def place(self, of: Selection, then: Selection, factor: str, value: Scalar) -> Judged:
        """The paper's rank. Raises NoValue: the rank is in the relation."""
        raise NoValue("the paper's rank is not given apart from the relation")

    def farthest(self, selection: Selection, law: Expression, sign: Comparator) -> Estimate:
        """The paper's points. Raises NoValue: papers give none."""
        raise NoValue("the paper's points are not given")

    def count(self, selections: Sequence[Selection], holds: Callable[[float], bool]) -> Judged:
        """How many of the paper's means hold. Raises NoValue: it stands in the relation."""
        raise NoValue("the paper's count is not given apart from the relation")

    def places(self, selection: Selection) -> Estimate:
        """The places of the paper's points. Raises NoValue: papers give none."""
        raise NoValue("the paper's points are not given")


def quantity(selection: Selection, study: Study) -> Key:
    """The identity of a selection: two with the same metric at the same points are equal."""
    experiment = next(one for one in study.experiments if one.id == selection.experiment)
    points = frozenset(
        place
        for place, point in enumerate(experiment.points)
        if all(condition.holds(point.factors.get(name)) for name, condition in selection.where)
    )
    return selection.metric, selection.experiment, points, selection.flow, tuple(sorted(selection.parameters.items()))


def tests_of(relation: Relation, study: Study) -> Iterator[Test]:
    """The comparisons of a checked relation over all points of the study."""
    for scope in scopes(relation, study, values_in_study(study)):
        claim = relation.claim
        if isinstance(claim, Within):
            yield Test(_key(claim.of, scope), Limits(claim.low, claim.high, True))
        elif isinstance(claim, Alike):
            percent = 100 * (APPROXIMATE_TOLERANCE if claim.nearly else TOLERANCE)
            values = values_in_study(study)(selection_of(next(terms_of(claim.of)), scope), claim.factor)
            terms = tuple(terms_of(claim.of))
            inner = frozenset(_key(claim.of, scope.having(claim.factor, value, terms)) for value in values)
            yield Test(("alike", inner), Limits(float("-inf"), percent, True))
        else:
            yield from _links(claim, scope)


def _links(chain: Chain, scope: Scope) -> Iterator[Test]:
    left = chain.first
    for sign, limit in chain.rest:
        right = limit.of
        if isinstance(left, Term) and has_points(left):
            yield Test(("points", _key(left, scope), _law(right)), Limits.of(sign, 1.0))
        elif is_constant(right):
            number = constant(right)
            if limit.spread is not None:
                yield Test(_key(left, scope), Agreement(number, limit.spread), number)
            else:
                printed = number if sign in "=~" else None
                yield Test(_key(left, scope), Limits.of(sign, number), printed, sign == "~")
        elif sign in "<>":
            sides = (left, right) if sign == ">" else (right, left)
            yield Test(("less", *(_key(side, scope) for side in sides)), Limits.of(">", 0.0))
        else:
            yield Test(("over", _key(left, scope), _key(right, scope)), Limits.of(sign, 1.0))
        left = right


def _law(expression: Expression) -> Key:
    """The values of a law of numbers and formulas at each point: two with the same values are equal."""
    if isinstance(expression, Formula):
        return expression.name, tuple((name, value and value.base) for name, value in expression.arguments)
    if isinstance(expression, Binary):
        return expression.operator, _law(expression.left), _law(expression.right)
    return constant(expression)


def _key(expression: Expression, scope: Scope) -> Key:
    if isinstance(expression, Term):
        return quantity(selection_of(expression, scope), scope.study)
    if isinstance(expression, Binary):
        return expression.operator, _key(expression.left, scope), _key(expression.right, scope)
    if isinstance(expression, Gain):
        return "gain", _key(expression.left, scope), _key(expression.right, scope)
    if isinstance(expression, Extreme):
        terms = tuple(terms_of(expression.of))
        inner = along(expression.loop, scope, terms, values_in_study(scope.study))
        return expression.kind, frozenset(_key(expression.of, one) for one in inner)
    if isinstance(expression, Count):
        inner = along(expression.loop, scope, (expression.of,), values_in_study(scope.study))
        return "count", frozenset(_key(expression.of, one) for one in inner), expression.sign, expression.level
    if isinstance(expression, Places):
        return "places", _key(expression.of, scope)
    if isinstance(expression, Rank):
        value = scope.environment.get(str(expression.value.base), expression.value)
        return "rank", _key(expression.of, scope), _key(expression.then, scope), expression.factor, value.base
    return expression.value if isinstance(expression, Number) else constant(expression)
