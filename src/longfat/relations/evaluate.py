# SPDX-License-Identifier: Apache-2.0
"""The value of an expression over a dataset, with its interval; and the comparisons that a relation consists of.

Owns how intervals combine along an expression. Gives no verdict.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import permutations

from longfat.dataset.load import Dataset
from longfat.manifest.idle import varies
from longfat.manifest.study import Study
from longfat.metrics import METRICS, statistics
from longfat.metrics.data import NoValue
from longfat.metrics.orders import Judged, Widest
from longfat.metrics.quantities import LEAST_RUNS, RELATIONS, Pool, Selection, measure, median, significant
from longfat.metrics.statistics import Estimate
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
from longfat.relations.limits import (
    APPROXIMATE_TOLERANCE,
    LEVEL,
    NO_EFFECT,
    TOLERANCE,
    Agreement,
    Limits,
    Outcome,
)
from longfat.relations.points import farthest, places
from longfat.relations.ranking import count_of, rank_of
from longfat.relations.readings import Readings
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

Allowed = Limits | Agreement

LEAST_OF_ALL = 3  # runs without which no measured comparison is decided
LAW = 0.001  # two runs of a law differ by no more than this part of its value


@dataclass(frozen=True)
class Evidence:
    """One comparison: its quantity, value, n and 95 % interval, the limit, and the outcome.

    ``n`` of None marks a computed value; ``runs`` counts all runs of the smaller side. The numbers are None when there
    was no data; ``reason`` states why. ``repeats`` counts repetitions that are not among the ``n`` because they are
    equal to the byte to another. ``p_holds`` and ``p_fails`` are the chances that decide (``Chances``), ``gain`` the
    factor by which pairing divides the variance.
    ``agreement`` marks a number that is compared within the paper's own error. ``limit_low`` and ``limit_high`` are the
    numbers of ``limit``, None on a side that is open; of a number with an error they are 1.96 errors from it.
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
    runs: int | None = None
    p_holds: float | None = None
    p_fails: float | None = None
    no_effect: bool = False
    gain: float | None = None
    agreement: bool = False
    limit_low: float | None = None
    limit_high: float | None = None


@dataclass(frozen=True)
class Rule:
    """A claim's rules for its comparisons.

    With ``law`` two runs that agree suffice; ``paper`` has the paper's own numbers, by which the size of an order is
    known; ``retest`` is how much the paper's numbers differ when it measures again, in parts of the number or,
    ``retest_absolute``, in its unit.
    """

    law: bool = False
    paper: Readings | None = None
    retest: float = 0.0
    retest_absolute: float = 0.0


@dataclass(frozen=True)
class Grounds:
    """The grounds for relations: a study and the dataset of its runs."""

    study: Study
    dataset: Dataset

    @cached_property
    def pool(self) -> Pool:
        """Properties that runs share."""
        pairs = {one.id: point.experiment.pairs_with for one in self.study.experiments for point in one.points}
        fixed = {
            one.id: [point.factors for point in one.points if not varies(point.experiment, self.study.header)]
            for one in self.study.experiments
        }
        return Pool(self.dataset, {name: partner for name, partner in pairs.items() if partner}, fixed)

    def read(self, selection: Selection, least: int | None) -> Estimate:
        """The metric over the runs. Raises NoValue."""
        return measure(self.dataset, selection, LEAST_RUNS if least is None else least, self.pool)

    def middle(self, selection: Selection, least: int | None) -> Judged:
        """The value that a lone metric is judged by, where this is the median. Raises NoValue."""
        return median(self.dataset, selection, LEAST_RUNS if least is None else least, self.pool)

    def place(self, of: Selection, then: Selection, factor: str, value: Scalar) -> Judged:
        """The rank of a factor's value. Raises NoValue."""
        return rank_of(self.dataset, of, then, factor, value)

    def count(self, selections: Sequence[Selection], holds: Callable[[float], bool]) -> Judged:
        """Of how many selections the mean holds. Raises NoValue."""
        return count_of(self.dataset, selections, holds)

    def farthest(self, selection: Selection, law: Expression, sign: Comparator) -> Estimate:
        """The point of a metric divided by the law there, where it is farthest from the law. Raises NoValue."""
        return farthest(self.pool, selection, law, sign)

    def places(self, selection: Selection) -> Estimate:
        """At how many different places the points of a metric lie. Raises NoValue."""
        return places(self.pool, selection)

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


def comparisons(relation: Relation, grounds: Readings, rule: Rule = Rule()) -> Iterator[Evidence]:
    """The comparisons that a relation consists of, for all values of its loops. Raises RelationError.

    Each is decided by itself; the judge decides which fail among several.
    """
    found = False
    for scope in scopes(relation, grounds.study, grounds.values_of):
        found = True
        yield from _claimed(relation.claim, _Values(grounds, scope, rule=rule))
    if not found:
        experiment = first_experiment(relation, grounds.study)
        reason = f"the lock has no such run of experiment {experiment!r}"
        yield Evidence(relation.text, "", "", "no_data", reason=reason)


def evaluated(expression: Expression, grounds: Grounds, least: int | None = None) -> Judged:
    """The value of an expression with its interval, from ``least`` repetitions on.

    Raises NoValue or ValueError with the reason, RelationError on an unknown name.
    """
    return _Values(grounds, Scope(grounds.study), least).value(expression)


def _claimed(claim: Chain | Within | Alike, values: _Values) -> Iterator[Evidence]:
    if isinstance(claim, Within):
        yield values.held(claim.of, Limits(claim.low, claim.high, True))
    elif isinstance(claim, Alike):
        percent = 100 * (APPROXIMATE_TOLERANCE if claim.nearly else TOLERANCE)
        what = f"{values.words(claim.of)}, highest over lowest {claim.factor}"
        limits = Limits(float("-inf"), percent, True)
        yield values.compared(lambda: values.widest(claim.of, claim.factor), what, "%", limits)
    else:
        left = claim.first
        for sign, limit in claim.rest:
            yield values.compare(left, sign, limit)
            left = limit.of


@dataclass(frozen=True)
class _Values:
    """Expressions evaluated in one scope."""

    grounds: Readings
    scope: Scope
    least: int | None = None  # runs of a scenario that a metric may rest on
    rule: Rule = Rule()

    def compare(self, left: Expression, sign: Comparator, limit: Limit) -> Evidence:
        """One side against the next. Two measured sides: < and > are of their difference, all else of their ratio."""
        right = limit.of
        if isinstance(left, Term) and has_points(left):
            return self._at_points(left, sign, right)
        if is_constant(right):
            number = constant(right)
            if limit.spread is not None and not is_constant(left):
                retest = max(self.rule.retest * abs(number), self.rule.retest_absolute)
                return self.held(left, Agreement(number, limit.spread, retest))
            return self.held(left, Limits.of(sign, number, limit.spread))
        if sign in "<>":
            above, below = (left, right) if sign == ">" else (right, left)
            order = Binary("-", above, below)
            return self.held(order, lambda: Limits(0.0, math.inf, False, self._alike(above, below)))
        return self.held(Binary("/", left, right), Limits.of(sign, 1.0))

    def _at_points(self, left: Term, sign: Comparator, law: Expression) -> Evidence:
        """The points of a metric divided by the law at each: the one farthest from the law decides."""
        selection = selection_of(left, self.scope)
        what = f"{_named(selection)}, over {self.words(law)} where it is farthest from that"
        evaluate = partial(self.grounds.farthest, selection, law, sign)
        return self.compared(evaluate, what, "", Limits.of(sign, 1.0))

    def _alike(self, above: Expression, below: Expression) -> float:
        """How close the sides of an order must be to count as equal: half of the paper's own difference, or 1 %."""
        if self.rule.paper is not None:
            paper = _Values(self.rule.paper, self.scope)
            try:
                return abs(paper.number(above) - paper.number(below)) / 2
            except (NoValue, ValueError):
                pass
        return NO_EFFECT * max(abs(self.number(above)), abs(self.number(below)))

    def number(self, expression: Expression) -> float:
        """The value alone."""
        return self.value(expression).value

    def held(self, expression: Expression, limits: Allowed | Callable[[], Allowed]) -> Evidence:
        """An expression against limits."""
        return self.compared(lambda: self.judged(expression), self.words(expression), self.unit(expression), limits)

    def compared(
        self, evaluate: Callable[[], Judged], what: str, unit: str, limits: Allowed | Callable[[], Allowed]
    ) -> Evidence:
        """Compare a value and its interval with limits: inside, outside, or undecided."""
        text = "above 0" if callable(limits) else limits.text(unit)
        try:
            value = evaluate()
            allowed = limits() if callable(limits) else limits
            self._require(value)
        except NoValue as error:
            return Evidence(what, unit, text, "no_data", reason=str(error))
        except ValueError as error:
            return Evidence(what, unit, text, "undecided", reason=str(error))
        return _evidence(self._as_law(value), what, unit, allowed)

    def _require(self, value: Judged) -> None:
        if value.runs and not value.exact and value.runs < LEAST_OF_ALL and self._as_law(value) is value:
            raise NoValue(f"rests on {value.runs} runs, at least {LEAST_OF_ALL} are needed")

    def _as_law(self, value: Judged) -> Judged:
        """Two runs of a law that agree are as good as a computation."""
        if self.rule.law and isinstance(value, Estimate) and value.range <= LAW * abs(value.value):
            return dataclasses.replace(value, strata={})
        return value

    def judged(self, expression: Expression) -> Judged:
        """The value that is compared with limits: the mean, or the median where runs fall into two modes."""
        if isinstance(expression, Term) and metric_of(expression).judged_by == "median":
            return self.grounds.middle(selection_of(expression, self.scope), self.least)
        if isinstance(expression, Rank):
            return self._rank(expression)
        if isinstance(expression, Count):
            return self._count(expression)
        return self.value(expression)

    def value(self, expression: Expression) -> Estimate:
        """The value with its interval. Raises NoValue, ValueError or RelationError with the reason."""
        if isinstance(expression, Term):
            return self.grounds.read(selection_of(expression, self.scope), self.least)
        if isinstance(expression, Number):
            return statistics.exactly(expression.value)
        if isinstance(expression, Formula):
            return statistics.exactly(computed(expression))
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
            return self.grounds.places(selection_of(expression.of, self.scope))
        raise ValueError("a rank or a count stands alone on its side: it cannot be reckoned with")

    def widest(self, expression: Expression, factor: str) -> Judged:
        """By how many percent the largest mean along the factor exceeds the smallest."""
        terms = tuple(terms_of(expression))
        known = self.grounds.values_of(selection_of(terms[0], self.scope), factor)
        if len(known) < 2:
            raise NoValue(f"the lock has {len(known)} of the values of {factor!r} to compare")
        found = [
            _Values(self.grounds, self.scope.having(factor, value, terms), self.least).value(expression)
            for value in known
        ]
        return Widest(tuple(statistics.percent_gain(one, other) for one, other in permutations(found, 2)))

    def _extreme(self, extreme: Extreme) -> Estimate:
        terms = tuple(terms_of(extreme.of))
        inner = list(along(extreme.loop, self.scope, terms, self.grounds.values_of))
        if not inner:
            raise NoValue(f"the lock has none of the values of {extreme.loop.variable!r}")
        found = [_Values(self.grounds, scope, self.least).value(extreme.of) for scope in inner]
        return statistics.extreme(found, max if extreme.kind == "max" else min)

    def _rank(self, rank: Rank) -> Judged:
        of, then = selection_of(rank.of, self.scope), selection_of(rank.then, self.scope)
        value = self.scope.environment.get(str(rank.value.base), rank.value) if rank.value.word else rank.value
        return self.grounds.place(of, then, rank.factor, value.base)

    def _count(self, count: Count) -> Judged:
        inner = list(along(count.loop, self.scope, (count.of,), self.grounds.values_of))
        if not inner:
            raise NoValue(f"the lock has none of the values of {count.loop.variable!r}")
        selections = [selection_of(count.of, scope) for scope in inner]
        return self.grounds.count(selections, lambda mean: RELATIONS[count.sign](mean, count.level))

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
        """The text of an expression, for people."""
        if isinstance(expression, Term):
            return _named(selection_of(expression, self.scope))
        if isinstance(expression, Number):
            return expression.text
        if isinstance(expression, Formula):
            arguments = ", ".join(f"{name} {value.text}" if value else name for name, value in expression.arguments)
            return f"{expression.name.replace('_', ' ')} ({arguments})"
        if isinstance(expression, Places):
            return f"places of {self.words(expression.of)}"
        if isinstance(expression, Count):
            bound = f"{expression.sign} {expression.level:g}"
            return f"number over {expression.loop.variable} with {bound} of {self.words_without(expression)}"
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

    def words_without(self, extreme: Extreme | Count) -> str:
        """An extreme's or a count's expression at the first of its values."""
        inner = next(
            iter(along(extreme.loop, self.scope, tuple(terms_of(extreme.of)), self.grounds.values_of)), self.scope
        )
        return _Values(self.grounds, inner).words(extreme.of) if inner is not self.scope else extreme.loop.variable


def _evidence(value: Judged, what: str, unit: str, limits: Allowed) -> Evidence:
    chances = limits.chances(value)
    outcome: Outcome = "fails" if chances.fails <= LEVEL else "holds" if chances.holds <= LEVEL else "undecided"
    low, high = (significant(number) for number in value.interval())
    spread = value.spread if isinstance(value, Estimate) else None
    bounds = limits.ends
    return Evidence(
        what,
        unit,
        limits.text(unit),
        outcome,
        significant(value.value),
        None if value.sd is None else significant(value.sd),
        value.n or None,
        low,
        high,
        repeats=value.repeats,
        runs=value.runs or None,
        p_holds=significant(chances.holds),
        p_fails=significant(chances.fails),
        no_effect=chances.no_effect,
        gain=significant(spread.gain) if spread and spread.gain else None,
        agreement=isinstance(limits, Agreement),
        limit_low=None if math.isinf(bounds[0]) else significant(bounds[0]),
        limit_high=None if math.isinf(bounds[1]) else significant(bounds[1]),
    )


def constant(expression: Expression) -> float:
    """The value of an expression that rests on no measurement."""
    if isinstance(expression, Number):
        return expression.value
    if isinstance(expression, Formula):
        return computed(expression)
    if isinstance(expression, Gain):
        return 100 * (constant(expression.left) / constant(expression.right) - 1)
    if not isinstance(expression, Binary):
        raise ValueError("rests on a measurement")
    left, right = constant(expression.left), constant(expression.right)
    operate = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
    return float(operate[expression.operator](left, right))


def computed(formula: Formula) -> float:
    """The formula's value for checked arguments."""
    numbers = {
        name: float(value.base) for name, value in formula.arguments if value and not isinstance(value.base, str)
    }
    return float(FORMULAS[formula.name](**numbers))


def _named(selection: Selection) -> str:
    """Metric, experiment, conditions and flow in words; of a factor that is held, its value."""
    conditions = [f"{name} {text}" for name, text in {name: one.text for name, one in selection.where}.items()]
    flow = [f"flow {selection.flow}"] if selection.flow else []
    return " ".join([f"{METRICS[selection.metric].meaning} of {selection.experiment}", *conditions, *flow])
