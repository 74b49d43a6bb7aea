# SPDX-License-Identifier: Apache-2.0
"""The value of an expression over a dataset, with its interval; and the comparisons that a relation consists of.

Owns how intervals combine along an expression. Gives no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from longfat.dataset.load import Dataset
from longfat.manifest.study import Study
from longfat.metrics import METRICS, statistics
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Selection, measure, significant
from longfat.metrics.statistics import Summary
from longfat.relations.bind import (
    Scope,
    ValuesOf,
    along,
    first_experiment,
    has_points,
    is_constant,
    metric_of,
    scopes,
    selection_of,
    terms_of,
)
from longfat.relations.formulas import FORMULAS
from longfat.relations.limits import APPROXIMATE_TOLERANCE, TOLERANCE, Limits, Outcome
from longfat.relations.points import farthest, places
from longfat.relations.ranking import rank_of
from longfat.relations.syntax import (
    Alike,
    Binary,
    Chain,
    Comparator,
    Expression,
    Extreme,
    Formula,
    Gain,
    Limit,
    Number,
    Places,
    Rank,
    Relation,
    Term,
    Value,
    Within,
)
from longfat.runspec import Scalar


@dataclass(frozen=True)
class Evidence:
    """One comparison: what, its mean, standard deviation, n and 95 % interval, the limit, and the outcome.

    ``n`` of None marks a computed value. The numbers are None when there was no data; ``reason`` says why.
    ``repeats`` counts repetitions that are not among the ``n`` because they are the same to the byte as another.
    """

    what: str
    unit: str
    limit: str
    outcome: Outcome
    mean: float | None = None
    sd: float | None = None
    n: int | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    repeats: int = 0


@dataclass(frozen=True)
class Grounds:
    """What relations are judged on: a study and the dataset of its runs."""

    study: Study
    dataset: Dataset

    @cached_property
    def labels(self) -> Mapping[tuple[str, str, Scalar], str]:
        """The manifest's wording of factor values, by experiment."""
        return {
            (experiment.id, factor, value): point.labels[factor]
            for experiment in self.study.experiments
            for point in experiment.points
            for factor, value in point.factors.items()
        }

    @property
    def values_of(self) -> ValuesOf:
        """The values of a factor over the runs in the lock that a selection chooses, in ascending order."""

        def values(selection: Selection, factor: str) -> Sequence[Value]:
            found = {run.factors[factor] for run in selection.chosen(self.dataset)}
            ordered = sorted(found, key=lambda value: (str(type(value)), value))
            return [
                Value(base, self.labels.get((selection.experiment, factor, base), str(base)), 1) for base in ordered
            ]

        return values


def comparisons(relation: Relation, grounds: Grounds) -> Iterator[Evidence]:
    """The comparisons that a relation consists of, for all values of its loops. Raises RelationError."""
    found = False
    for scope in scopes(relation, grounds.study, grounds.values_of):
        found = True
        yield from _claimed(relation.claim, _Values(grounds, scope))
    if not found:
        experiment = first_experiment(relation, grounds.study)
        reason = f"the lock has no such run of experiment {experiment!r}"
        yield Evidence(relation.text, "", "", "no_data", reason=reason)


def evaluated(expression: Expression, grounds: Grounds, least: int | None = None) -> Summary:
    """The value of an expression with its interval, from ``least`` repetitions on.

    Raises NoValue or ValueError with the reason, RelationError on a name that stands for nothing.
    """
    return _Values(grounds, Scope(grounds.study), least).value(expression)


def _claimed(claim: Chain | Within | Alike, values: _Values) -> Iterator[Evidence]:
    if isinstance(claim, Within):
        yield values.held(claim.of, Limits(claim.low, claim.high, True))
    elif isinstance(claim, Alike):
        percent = 100 * (APPROXIMATE_TOLERANCE if claim.nearly else TOLERANCE)
        what = f"{values.words(claim.of)}, highest over lowest {claim.factor}"
        limits = Limits(float("-inf"), percent, True)
        yield compared(lambda: values.widest(claim.of, claim.factor), what, "%", limits)
    else:
        left = claim.first
        for sign, limit in claim.rest:
            yield values.compare(left, sign, limit)
            left = limit.of


@dataclass(frozen=True)
class _Values:
    """Expressions evaluated in one scope."""

    grounds: Grounds
    scope: Scope
    least: int | None = None  # repetitions that a metric may rest on (default: its own)

    def compare(self, left: Expression, sign: Comparator, limit: Limit) -> Evidence:
        """One side against the next. Two measured sides: < and > are of their difference, all else of their ratio."""
        right = limit.of
        if isinstance(left, Term) and has_points(left):
            return self._at_points(left, sign, right)
        if is_constant(right):
            return self.held(left, Limits.of(sign, self.constant(right), limit.spread))
        if sign in "<>":
            above, below = (left, right) if sign == ">" else (right, left)
            return self.held(Binary("-", above, below), Limits.of(">", 0.0))
        return self.held(Binary("/", left, right), Limits.of(sign, 1.0))

    def _at_points(self, left: Term, sign: Comparator, law: Expression) -> Evidence:
        """The points of a metric over what the law says at each: the one that is farthest from it decides."""
        selection = selection_of(left, self.scope)
        what = f"{_named(selection)}, over {self.words(law)} where it is farthest from that"
        evaluate = partial(farthest, self.grounds.dataset, selection, law, sign)
        return compared(evaluate, what, "", Limits.of(sign, 1.0))

    def held(self, expression: Expression, limits: Limits) -> Evidence:
        """An expression against limits."""
        return compared(lambda: self.value(expression), self.words(expression), self.unit(expression), limits)

    def constant(self, expression: Expression) -> float:
        """The value of an expression that rests on no measurement; a percentage as the number before the sign."""
        return self.value(expression).mean

    def value(self, expression: Expression) -> Summary:
        """The value with its interval. Raises NoValue, ValueError or RelationError with the reason."""
        if isinstance(expression, Term):
            return measure(self.grounds.dataset, selection_of(expression, self.scope), self.least)
        if isinstance(expression, Number):
            return _exactly(expression.value)
        if isinstance(expression, Formula):
            return _exactly(computed(expression))
        if isinstance(expression, Gain):
            return statistics.percent_gain(self.value(expression.left), self.value(expression.right))
        if isinstance(expression, Binary):
            operation = {
                "+": statistics.total,
                "-": statistics.difference,
                "*": statistics.product,
                "/": statistics.ratio,
            }[expression.operator]
            return operation(self.value(expression.left), self.value(expression.right))
        if isinstance(expression, Extreme):
            return self._extreme(expression)
        if isinstance(expression, Places):
            return places(self.grounds.dataset, selection_of(expression.of, self.scope))
        return self._rank(expression)

    def widest(self, expression: Expression, factor: str) -> Summary:
        """By how many percent the largest mean along the factor exceeds the smallest."""
        terms = tuple(terms_of(expression))
        known = self.grounds.values_of(selection_of(terms[0], self.scope), factor)
        if len(known) < 2:
            raise NoValue(f"the lock has {len(known)} of the values of {factor!r} to compare")
        found = [
            _Values(self.grounds, self.scope.having(factor, value, terms), self.least).value(expression)
            for value in known
        ]
        ends = max(found, key=lambda item: item.mean), min(found, key=lambda item: item.mean)
        return statistics.percent_gain(*ends)

    def _extreme(self, extreme: Extreme) -> Summary:
        terms = tuple(terms_of(extreme.of))
        inner = list(along(extreme.loop, self.scope, terms, self.grounds.values_of))
        if not inner:
            raise NoValue(f"the lock has none of the values of {extreme.loop.variable!r}")
        found = [_Values(self.grounds, scope, self.least).value(extreme.of) for scope in inner]
        return statistics.extreme(found, max if extreme.kind == "max" else min)

    def _rank(self, rank: Rank) -> Summary:
        of, then = selection_of(rank.of, self.scope), selection_of(rank.then, self.scope)
        value = self.scope.environment.get(str(rank.value.base), rank.value) if rank.value.word else rank.value
        return rank_of(self.grounds.dataset, of, then, rank.factor, value.base)

    def unit(self, expression: Expression) -> str:
        """The unit of an expression's value."""
        if isinstance(expression, Term):
            return metric_of(expression).unit
        if isinstance(expression, Gain):
            return "%"
        if isinstance(expression, Extreme):
            return self.unit(expression.of)
        if isinstance(expression, Binary):
            units = [self.unit(side) for side in (expression.left, expression.right) if not is_constant(side)]
            return units[0] if units and (expression.operator in "+-" or len(units) == 1) else ""
        return ""

    def words(self, expression: Expression) -> str:
        """What an expression is, for people."""
        if isinstance(expression, Term):
            return _named(selection_of(expression, self.scope))
        if isinstance(expression, Number):
            return expression.text
        if isinstance(expression, Formula):
            arguments = ", ".join(f"{name} {value.text}" if value else name for name, value in expression.arguments)
            return f"{expression.name.replace('_', ' ')} ({arguments})"
        if isinstance(expression, Places):
            return f"places of {self.words(expression.of)}"
        if isinstance(expression, Gain):
            return f"{self.words(expression.left)}, gain over {self.words(expression.right)}"
        if isinstance(expression, Binary):
            word = {"+": "plus", "-": "less", "*": "times", "/": "over"}[expression.operator]
            return f"{self.words(expression.left)} {word} {self.words(expression.right)}"
        if isinstance(expression, Extreme):
            kind = {"max": "largest", "min": "smallest"}[expression.kind]
            return f"{kind} over {expression.loop.variable} of {self.words_without(expression)}"
        factor_value = self.scope.environment.get(str(expression.value.base), expression.value)
        return (
            f"rank of {expression.factor} {factor_value.text} by {self.words(expression.of)}, "
            f"where alike by {self.words(expression.then)}"
        )

    def words_without(self, extreme: Extreme) -> str:
        """An extreme's expression at the first of its values."""
        inner = next(
            iter(along(extreme.loop, self.scope, tuple(terms_of(extreme.of)), self.grounds.values_of)), self.scope
        )
        return _Values(self.grounds, inner).words(extreme.of) if inner is not self.scope else extreme.loop.variable


def compared(evaluate: Callable[[], Summary], what: str, unit: str, limits: Limits) -> Evidence:
    """Hold a value with its interval against limits: inside, outside, or undecided."""
    limit = limits.text(unit)
    try:
        value = evaluate()
    except (NoValue, ValueError) as error:
        return Evidence(what, unit, limit, "no_data", reason=str(error))
    mean, low, high = (significant(number) for number in (value.mean, value.low, value.high))
    sd = None if value.sd is None else significant(value.sd)
    return Evidence(
        what, unit, limit, limits.outcome(value), mean, sd, value.n or None, low, high, repeats=value.repeats
    )


def computed(formula: Formula) -> float:
    """The formula's value for checked arguments."""
    numbers = {
        name: float(value.base) for name, value in formula.arguments if value and not isinstance(value.base, str)
    }
    return float(FORMULAS[formula.name](**numbers))


def _exactly(value: float) -> Summary:
    return Summary(value, None, 0, value, value)


def _named(selection: Selection) -> str:
    """Metric, experiment, conditions and flow in words; of a factor that is held, its value."""
    conditions = [f"{name} {text}" for name, text in {name: one.text for name, one in selection.where}.items()]
    flow = [f"flow {selection.flow}"] if selection.flow else []
    return " ".join([f"{METRICS[selection.metric].meaning} of {selection.experiment}", *conditions, *flow])
