# SPDX-License-Identifier: Apache-2.0
"""Comparison of a metric that has several points in a run with a law. The point farthest from the law decides."""

from __future__ import annotations

import math
from collections.abc import Callable

from longfat.metrics.data import NoValue, Point
from longfat.metrics.quantities import LEAST_RUNS, Pool, Selection, gathered, points_of_run, significant
from longfat.metrics.statistics import Estimate

Law = Callable[[Point], float]


def over_law(point: Point, law: Law) -> float:
    """Return the ratio of the point to the law, with the value within ``give`` of the point that is nearest to the law.

    Raises NoValue if that is not a number.
    """
    expected = law(point)
    if expected == 0 or math.isnan(expected) or math.isnan(point.value):
        raise NoValue("the law is 0 at a point, or one of the two is not a number")
    return min(max(expected, point.value - point.give), point.value + point.give) / expected


def farthest(pool: Pool, selection: Selection, law: Law, sign: str) -> Estimate:
    """Return the ratio of point to law that violates ``sign`` most.

    A law holds in each run, so repetitions add points but no interval. Raises NoValue without a point, or with too few
    complete repetitions.
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
    """Return the number of distinct places of the points of all repetitions. Raises NoValue like ``farthest``."""
    points, n, repeats = _points(pool, selection)
    return Estimate(float(len({point.place for point in points})), n=n, runs=n, repeats=repeats)


def _points(pool: Pool, selection: Selection) -> tuple[list[Point], int, int]:
    """Return all points, the number of repetitions, and the number of further, byte-identical ones."""
    found = gathered(pool.dataset, selection, lambda run: points_of_run(pool.dataset, run, selection))
    found.least(LEAST_RUNS if any(pool.draws(run) for run in selection.chosen(pool.dataset)) else 1)
    points = [point for runs in found.distinct.values() for own in runs for point in own]
    if not points:
        raise NoValue("there is no such point")
    return points, len(found.distinct), found.repeats
