# SPDX-License-Identifier: Apache-2.0
"""The functions over an expression's nodes: ``check``, ``selections``, ``key``, ``unit``, ``words`` and ``value``.

Only these functions traverse a tree; for a node without its own case they visit its ``parts``. All of them raise
RelationError on an unknown name.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations

import numpy as np

from longfat.metrics import METRICS, Metric, statistics
from longfat.metrics.data import Array, NoValue, Point
from longfat.metrics.orders import Judged, Narrowest, Widest, tally
from longfat.metrics.quantities import RELATIONS, Pool, Selection, significant
from longfat.metrics.statistics import Estimate
from longfat.relations.bind import (
    ALLOWED,
    QUANTITIES,
    RelationError,
    Scope,
    Term,
    ValuesOf,
    along,
    check_each,
    check_factor,
    check_term,
    has_value,
    metric_of,
    quantity,
    selection_of,
    unknown_at,
)
from longfat.relations.formulas import DIMENSIONS, FORMULAS, arguments_of
from longfat.relations.nodes import (
    Binary,
    Count,
    Expression,
    Extreme,
    Farthest,
    Formula,
    Gain,
    Number,
    Operator,
    Places,
    Rank,
    Spread,
    parts,
    terms_of,
)
from longfat.relations.ranking import farthest, places, rank_of
from longfat.study.study import Study


@dataclass(frozen=True)
class Readings:
    """A source without numbers."""

    study: Study

    @property
    def values_of(self) -> ValuesOf | None:
        """The function of the values of a factor in selected runs; None for the values of the study's points."""
        return None

    @property
    def pool(self) -> Pool:
        """The runs behind ranks, counts and points. Raises NoValue if there are none."""
        raise NoValue("a rank, a count or points are not given apart from the relation")

    def read(self, selection: Selection, least: int | None) -> Estimate:
        """Return the metric. Raises NoValue."""
        raise NoValue("the number is not given")

    def middle(self, selection: Selection, least: int | None) -> Judged:
        """Return the median of the metric. Raises NoValue."""
        return self.read(selection, least)


@dataclass(frozen=True)
class At:
    """The context of an evaluation; ``least`` is the smallest number of runs behind a metric."""

    scope: Scope
    readings: Readings
    least: int | None = None


_ARITHMETIC: Mapping[Operator, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_OPERATIONS: Mapping[Operator, Callable[[Estimate, Estimate], Estimate]] = {
    "+": statistics.total,
    "-": statistics.difference,
    "*": statistics.product,
    "/": statistics.ratio,
}
_OPERATOR_WORDS: Mapping[Operator, str] = {"+": "plus", "-": "less", "*": "times", "/": "over"}
_KIND_WORDS = {"max": "largest", "min": "smallest"}
LEAST_COMPARED = 2


def inner_scopes(node: Extreme | Count | Spread, scope: Scope) -> list[Scope]:
    """Return the scope for each value along a node's loop or factor."""
    terms = terms_of(node.of)
    if not isinstance(node, Spread):
        return list(along(node.loop, scope, terms))
    values = scope.values_of(selection_of(terms[0], scope), node.factor)
    return [scope.having(node.factor, value, terms) for value in values]


def check(node: Expression, scope: Scope) -> None:
    """Check all names of an expression."""
    match node:
        case Term():
            check_term(node, scope)
        case Formula():
            check_formula(node, scope.over)
        case Extreme() | Count():
            for inner in inner_scopes(node, scope):
                check(node.of, inner)
        case Places():
            check_term(node.of, scope, several=True)
        case Farthest():
            check_term(node.of, scope, several=True)
            check(node.law, dataclasses.replace(scope, over=metric_of(node.of).over))
        case _:
            check_each(*(partial(check, part, scope) for part in parts(node)))
    if isinstance(node, Rank | Spread):
        for term in terms_of(node.of):
            check_factor(node.factor, term, scope, node.column)
    if isinstance(node, Spread) and len(inner_scopes(node, scope)) < LEAST_COMPARED:
        raise RelationError(f"alike compares values of {node.factor!r}; these conditions leave one", node.column)
    if isinstance(node, Gain) or (isinstance(node, Binary) and node.operator in "+-"):
        require_one_unit(node.left, node.right)
    if isinstance(node, Rank):
        _check_ranked(node, scope)


def require_one_unit(left: Expression, right: Expression) -> None:
    """Raise RelationError if both sides are measured, and in different units."""
    left, right = sorted((left, right), key=lambda side: [term.column for term in terms_of(side)])
    one, other = (unit(side).replace("points", "%") for side in (left, right))
    plain = metric_behind(left) and metric_behind(right)  # so that no unit is a unit, not an unknown one
    if one != other and (plain or (one and other)):
        message = f"{one or 'a number without unit'} and {other or 'a number without unit'} cannot be compared or added"
        raise RelationError(message, terms_of(right)[0].column)


def metric_behind(left: Expression) -> Metric | None:
    """Return the metric of an expression or of an extreme of it; None for arithmetic, counts and formulas."""
    while isinstance(left, Extreme):
        left = left.of
    return METRICS.get(left.metric) if isinstance(left, Term) else None


def bounds_of(node: Expression, scope: Scope) -> tuple[str, str, float, float] | None:
    """Return name, unit, smallest and largest value of a place, a count or a metric; None for other expressions."""
    match node:
        case Rank():
            return "the place", "", 1.0, float(len(scope.values_of(selection_of(node.of, scope), node.factor)))
        case Count():
            return "the count", "", 0.0, float(len(inner_scopes(node, scope)))
    known = metric_behind(node)
    return (known.name, known.unit, *known.bounds) if known else None


def _check_ranked(node: Rank, scope: Scope) -> None:
    of, then = selection_of(node.of, scope), selection_of(node.then, scope)
    if of.experiment != then.experiment:
        message = f"the ranked metrics are of experiments {of.experiment!r} and {then.experiment!r}; one is ranked"
        raise RelationError(message, node.then.column)
    values, ranked = scope.values_of(of, node.factor), scope.resolved(node.value)
    if len(values) < LEAST_COMPARED:
        raise RelationError(f"rank compares values of {node.factor!r}; these conditions leave one", node.column)
    if not has_value({value.base: value.text for value in values}, ranked):
        raise unknown_at(node.factor, ranked.text, [value.text for value in values], node.value.column)


def check_formula(formula: Formula, over: Sequence[str] = ()) -> None:
    """Raise RelationError unless it is a known formula with its arguments, each a number or a quantity above 0.

    The variable that points are ``over`` may be an argument by its name alone.
    """
    if formula.name not in FORMULAS:
        raise unknown_at("formula", formula.name, FORMULAS, formula.column)
    needed = arguments_of(formula.name)
    for name, value in formula.arguments:
        if name not in needed:
            raise unknown_at(f"argument of {formula.name}", name, needed, value.column if value else formula.column)
        if value is None and name not in over:
            known = f"the points are over {', '.join(over)}" if over else "there are no points to take it from"
            raise RelationError(f"argument {name} has no value, and {known}", formula.column)
        if value and (isinstance(value.base, bool | str) or value.base <= 0 or value.text.endswith("%")):
            message = f"argument {name} is {value.text!r}; allowed: a number or a quantity above 0, a part as 0.01"
            raise RelationError(message, value.column)
        kind = DIMENSIONS.get(name)
        if value and kind and value.dimension not in (None, QUANTITIES[kind]):
            raise RelationError(f"argument {name} is {value.text!r}; allowed: {ALLOWED[kind]}", value.column)
    names = [name for name, _ in formula.arguments]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise RelationError(f"argument {twice} is given twice", formula.column)
    missing = [name for name in needed if name not in names]
    if missing:
        raise RelationError(f"formula {formula.name!r} needs {', '.join(missing)}", formula.column)


def selections(node: Expression, scope: Scope) -> Iterator[Selection]:
    """Yield the selections that an expression reads, for each value of a loop in it."""
    match node:
        case Term():
            yield selection_of(node, scope)
        case Extreme() | Count():
            for inner in inner_scopes(node, scope):
                yield from selections(node.of, inner)
        case _:
            for part in parts(node):
                yield from selections(part, scope)


def key(node: Expression, scope: Scope) -> Hashable:
    """Return the identity of an expression over the study's points; equal quantities have equal identities."""
    match node:
        case Term():
            return quantity(selection_of(node, scope), scope.study)
        case Number():
            return node.number
        case Formula():
            return node.name, tuple((name, value and value.base) for name, value in node.arguments)
        case Binary():
            return node.operator, key(node.left, scope), key(node.right, scope)
        case Extreme() | Count() | Spread():
            name = node.kind if isinstance(node, Extreme) else type(node).__name__
            bound = (node.sign, node.level) if isinstance(node, Count) else ()
            return name, frozenset(key(node.of, inner) for inner in inner_scopes(node, scope)), *bound
        case Rank():
            own: tuple[Hashable, ...] = node.factor, scope.resolved(node.value).base
        case Farthest():
            own = (key(node.law, scope),)
        case _:
            own = ()
    return type(node).__name__, *own, *(key(part, scope) for part in parts(node))


def unit(node: Expression) -> str:
    """Return the unit of an expression's value; "" for a product or a ratio, whose numbers may change it."""
    match node:
        case Term():
            return metric_of(node).unit
        case Gain() | Spread():
            return "%"
        case Extreme():
            return unit(node.of)
        case Binary():
            units = [unit(side) for side in parts(node) if terms_of(side)]
            if node.operator == "-" and units == ["%", "%"]:
                return "points"
            return units[0] if node.operator in "+-" and len({*units}) == 1 else ""
    return ""


def words(node: Expression, scope: Scope) -> str:
    """Return an expression in words; a loop is shown at its first value."""
    texts = [words(part, scope) for part in parts(node)] if not isinstance(node, Extreme | Count) else []
    match node:
        case Term():
            return _named(selection_of(node, scope))
        case Number():
            return node.text
        case Formula():
            arguments = ", ".join(f"{name} {value.text}" if value else name for name, value in node.arguments)
            return f"{node.name.replace('_', ' ')} ({arguments})"
        case Gain():
            return ", gain over ".join(texts)
        case Binary():
            return f" {_OPERATOR_WORDS[node.operator]} ".join(texts)
        case Extreme() | Count():
            loop = node.loop.variable
            if isinstance(node, Extreme):
                text = f"{_KIND_WORDS[node.kind]} value over all {loop}"
            else:
                text = f"number of values of {loop} with {node.sign} {node.level:g}"
            first = next(iter(inner_scopes(node, scope)), None)
            return f"{text}: {words(node.of, first)}" if first else text
        case Rank():
            of, then = texts
            return f"rank of {node.factor} {scope.resolved(node.value).text} by {of}, where equal by {then}"
        case Spread():
            return f"{texts[0]}, highest over lowest {node.factor}"
        case Places():
            return f"places of {texts[0]}"
        case Farthest():
            return f"{texts[0]}, over {words(node.law, scope)} where it is farthest from that"


def _named(selection: Selection) -> str:
    """Return metric, experiment, conditions and flow in words; a fixed factor appears with its value."""
    conditions = [f"{name} {text}" for name, text in {name: one.text for name, one in selection.where}.items()]
    flow = [f"flow {selection.flow}"] if selection.flow else []
    return " ".join([f"{METRICS[selection.metric].meaning} of {selection.experiment}", *conditions, *flow])


def computed(node: Expression, point: Point | None = None) -> float:
    """Return the value of an expression of numbers and formulas, with the variables of the point.

    Raises ArithmeticError or ValueError if it has none.
    """
    match node:
        case Number():
            return node.number
        case Formula():
            return _mean_over_arguments(node, point.at if point else {})
        case Gain():
            return 100 * (computed(node.left, point) / computed(node.right, point) - 1)
        case Binary():
            return float(_ARITHMETIC[node.operator](computed(node.left, point), computed(node.right, point)))
    raise ValueError("it rests on a measurement")


def constant(node: Expression) -> float:
    """Return the value of an expression of numbers and formulas. Raises RelationError if it has none."""
    _check_formulas(node)
    try:
        return computed(node)
    except (ArithmeticError, ValueError) as error:
        raise RelationError(f"the expression has no value: {error}") from error


def _check_formulas(node: Expression) -> None:
    if isinstance(node, Formula):
        check_formula(node)
    for part in parts(node):
        _check_formulas(part)


def _mean_over_arguments(formula: Formula, variables: Mapping[str, float | Array]) -> float:
    """Return the formula's value; if a variable is an array, the mean of its values."""
    given = {
        name: np.atleast_1d(np.asarray(variables[name] if value is None else value.base, dtype=np.float64))
        for name, value in formula.arguments
    }
    rows = zip(*np.broadcast_arrays(*given.values()), strict=True)
    try:
        values = [FORMULAS[formula.name](**dict(zip(given, map(float, row), strict=True))) for row in rows]
    except ArithmeticError as error:
        raise ValueError(f"formula {formula.name!r} has no value: {error}") from error
    return math.fsum(values) / len(values)


def value(node: Expression, at: At) -> Estimate:
    """Return the value of an expression with its interval. Raises NoValue or ValueError with the reason."""
    match node:
        case Term():
            return at.readings.read(selection_of(node, at.scope), at.least)
        case Number() | Formula():
            return statistics.exactly(computed(node))
        case Gain():
            return statistics.percent_gain(value(node.left, at), value(node.right, at))
        case Binary():
            return _OPERATIONS[node.operator](value(node.left, at), value(node.right, at))
        case Extreme():
            found = [value(node.of, inner) for inner in _inner(node, at)]
            return statistics.extreme(found, max if node.kind == "max" else min)
        case Places():
            return places(at.readings.pool, selection_of(node.of, at.scope))
        case Farthest():
            law = node.law
            return farthest(
                at.readings.pool, selection_of(node.of, at.scope), lambda point: computed(law, point), node.sign
            )
    raise ValueError("a rank, a count or a spread stands alone on its side: it cannot be part of arithmetic")


def judged(node: Expression, at: At) -> Judged:
    """Return the value that is compared with limits: the median of a metric that is judged by it, else ``value``."""
    match node:
        case Term() if metric_of(node).judged_by == "median":
            return at.readings.middle(selection_of(node, at.scope), at.least)
        case Rank():
            of, then = selection_of(node.of, at.scope), selection_of(node.then, at.scope)
            return rank_of(at.readings.pool, of, then, node.factor, at.scope.resolved(node.value).base)
        case Count():
            chosen = [selection_of(node.of, inner.scope) for inner in _inner(node, at)]
            every = inner_scopes(node, dataclasses.replace(at.scope, given_values=None))
            if len(chosen) < len(every):
                raise NoValue(
                    f"the lock has {len(chosen)} of the {len(every)} values of {node.loop.variable!r} to count"
                )
            found = [at.readings.read(one, at.least) for one in chosen]
            sign, level = node.sign, node.level
            return tally(found, level, sign[0] == ">", lambda mean: RELATIONS[sign](significant(mean), level))
        case Extreme():
            return _EXTREMES[node.kind].of_all([judged(node.of, one) for one in _inner(node, at)])
        case Binary() | Gain():
            return _arithmetic(node, at)
        case Spread():
            inner = _inner(node, at)
            if len(inner) < 2:
                raise NoValue(f"the lock has {len(inner)} of the values of {node.factor!r} to compare")
            found = [value(node.of, one) for one in inner]
            return Widest(tuple(statistics.percent_gain(one, other) for one, other in permutations(found, 2)))
    return value(node, at)


def _inner(node: Extreme | Count | Spread, at: At) -> list[At]:
    """Return the context for each value along a loop or factor. Raises NoValue if there is none."""
    found = [dataclasses.replace(at, scope=scope) for scope in inner_scopes(node, at.scope)]
    if not found:
        name = node.factor if isinstance(node, Spread) else node.loop.variable
        raise NoValue(f"the lock has none of the values of {name!r}")
    return found


_EXTREMES: Mapping[str, type[Widest]] = {"max": Widest, "min": Narrowest}


def _arithmetic(node: Expression, at: At) -> Judged:
    """Return the value of arithmetic. An extreme in it becomes one of the whole, which corrects for its choice."""
    match node:
        case Extreme():
            return _EXTREMES[node.kind].of_all([_arithmetic(node.of, one) for one in _inner(node, at)])
        case Gain():
            return _combined("/", statistics.percent_gain, _arithmetic(node.left, at), _arithmetic(node.right, at))
        case Binary():
            sides = _arithmetic(node.left, at), _arithmetic(node.right, at)
            return _combined(node.operator, _OPERATIONS[node.operator], *sides)
    return value(node, at)


def _combined(
    operator: Operator,
    operate: Callable[[Estimate, Estimate], Estimate],
    left: Judged,
    right: Judged,
) -> Judged:
    """Combine two sides; where the result falls with an extreme, the largest becomes the smallest."""
    scales = operator in "*/"
    if isinstance(left, Widest):
        falls = scales and right.value < 0
        return left.turned(falls).of_all([_combined(operator, operate, one, right) for one in left.of])
    if isinstance(right, Widest):
        falls = (operator in "-/") != (scales and left.value < 0)
        return right.turned(falls).of_all([_combined(operator, operate, left, one) for one in right.of])
    assert isinstance(left, Estimate) and isinstance(right, Estimate)
    return operate(left, right)
