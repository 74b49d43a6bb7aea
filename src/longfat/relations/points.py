# SPDX-License-Identifier: Apache-2.0
"""A metric that has several points in a run, compared with a law that has a different value at each.

Owns the choice of the point that decides: the one farthest from the law. Must not judge.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

import numpy as np

from longfat.metrics.data import NoValue, Point
from longfat.metrics.quantities import LEAST_RUNS, Pool, Repetitions, Selection, gathered, points_of_run, significant
from longfat.metrics.statistics import Estimate
from longfat.relations.formulas import FORMULAS
from longfat.relations.syntax import Binary, Comparator, Expression, Formula, Number, Operator

OPERATIONS: Mapping[Operator, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def law_at(law: Expression, point: Point) -> float:
    """The value of a law of numbers and formulas at a point; over an array, the mean of its values."""
    if isinstance(law, Number):
        return law.value
    if isinstance(law, Binary):
        return OPERATIONS[law.operator](law_at(law.left, point), law_at(law.right, point))
    assert isinstance(law, Formula), "a relation's check lets no other law pass"
    given = {
        name: np.atleast_1d(np.asarray(point.at[name] if value is None else value.base, dtype=np.float64))
        for name, value in law.arguments
    }
    rows = np.broadcast_arrays(*given.values())
    said = [FORMULAS[law.name](**dict(zip(given, map(float, row), strict=True))) for row in zip(*rows, strict=True)]
    return math.fsum(said) / len(said)


def over_law(point: Point, law: Expression) -> float:
    """The point's value divided by the law's; of several possible values of the point, the nearest to the law.

    Raises NoValue where that is not a number.
    """
    said = law_at(law, point)
    if said == 0 or math.isnan(said) or math.isnan(point.value):
        raise NoValue("the law says 0 at a point, or one of the two is no number")
    return min(max(said, point.value - point.give), point.value + point.give) / said


def farthest(pool: Pool, selection: Selection, law: Expression, sign: Comparator) -> Estimate:
    """Of all points of all repetitions, the point divided by the law that is farthest from what ``sign`` allows.

    A law holds in each single run, so repetitions add points and no interval. Raises NoValue when there is no
    point, or too few repetitions are complete.
    """
    points, n, repeats = _points(pool, selection)
    ratios = [over_law(point, law) for point in points]
    if sign in ("<", "<="):
        worst = max(ratios)
    elif sign in (">", ">="):
        worst = min(ratios)
    else:
        worst = max(ratios, key=lambda ratio: abs(ratio - 1))
    return Estimate(significant(worst), n=n, runs=n, repeats=repeats)


def places(pool: Pool, selection: Selection) -> Estimate:
    """At how many different places the points of all repetitions lie. Raises NoValue like ``farthest``."""
    points, n, repeats = _points(pool, selection)
    return Estimate(float(len({point.place for point in points})), n=n, runs=n, repeats=repeats)


def _points(pool: Pool, selection: Selection) -> tuple[list[Point], int, int]:
    """All points, with how many repetitions there are, and how many more the same to the byte."""
    found: Repetitions[list[tuple[Point, ...]]] = gathered(
        pool.dataset, selection, lambda run: points_of_run(pool.dataset, run, selection)
    )
    found.least(LEAST_RUNS if any(pool.draws(run) for run in selection.chosen(pool.dataset)) else 1)
    points = [point for runs in found.distinct.values() for own in runs for point in own]
    if not points:
        raise NoValue("there is no such point")
    return points, len(found.distinct), found.repeats
