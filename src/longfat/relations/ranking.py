# SPDX-License-Identifier: Apache-2.0
"""Points of a curve, the ranking of a factor's values by two metrics (docs/claims.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from longfat.dataset.load import Dataset
from longfat.metrics.data import NoValue, Point
from longfat.metrics.orders import Sampled, bootstrapped
from longfat.metrics.quantities import (
    LEAST_RUNS,
    Pool,
    Repetitions,
    Selection,
    by_repetition,
    gathered,
    points_of_run,
    significant,
)
from longfat.metrics.statistics import Estimate
from longfat.relations.limits import TOLERANCE
from longfat.spec.runspec import Scalar

LEAST_REPETITIONS = 2
Levels = Mapping[Scalar, float]
Complete = Repetitions[tuple[float, ...]]  # the values of several selections, by complete repetition


def ranked(first: Levels, second: Levels) -> list[Scalar]:
    """Return the keys of both mappings, best first.

    They are sorted by ``first``, largest first. The largest value forms a group with all values that it exceeds by at
    most 5 %; ``second`` sorts the group, largest first; the rest continues in the same way. Keys that are equal in both
    keep their order in ``first``.
    """
    left = sorted(first, key=lambda value: -first[value])
    order: list[Scalar] = []
    while left:
        head = first[left[0]]
        size = sum(head <= significant(first[value] + TOLERANCE * abs(first[value])) for value in left)
        group, left = left[:size], left[size:]
        order += sorted(group, key=lambda value: -second[value])
    return order


def rank_of(pool: Pool, of: Selection, then: Selection, by: str, value: Scalar) -> Sampled:
    """Return the rank of one value of the factor ``by`` in the ranking by means, by bootstrap.

    Raises NoValue with the reasons if the lock has no such value, or if fewer than two repetitions are complete; a
    single one suffices if all are equal or the seed has no effect.
    """
    values, found = _compared(pool.dataset, of, then, by)
    drawn = any(pool.draws(run) for one in (of, then) for run in one.chosen(pool.dataset))
    return _sampled(found, drawn, lambda rows: _place(value, by, _ranked_by_means(values, rows)))


def _sampled(found: Complete, drawn: bool, of: Callable[[Sequence[tuple[float, ...]]], float]) -> Sampled:
    exact = len(found.distinct) == 1 and (found.repeats > 0 or not drawn)
    found.least(1 if exact else LEAST_REPETITIONS)
    rows = list(found.distinct.values())
    return Sampled(of(rows), bootstrapped(rows, of), len(rows), found.repeats, exact)


def _place(value: Scalar, by: str, order: Sequence[Scalar]) -> float:
    if value not in order:
        raise NoValue(f"the lock has no run with {by} {value} to rank")
    return float(order.index(value) + 1)


def _ranked_by_means(values: Sequence[Scalar], rows: Sequence[tuple[float, ...]]) -> list[Scalar]:
    means = _means(rows)
    return ranked(*(dict(zip(values, half, strict=True)) for half in (means[: len(values)], means[len(values) :])))


def _means(rows: Sequence[tuple[float, ...]]) -> list[float]:
    return [significant(sum(of) / len(of)) for of in zip(*rows, strict=True)]


def _compared(dataset: Dataset, of: Selection, then: Selection, by: str) -> tuple[Sequence[Scalar], Complete]:
    """Return the values of a factor, and both metrics for each of them."""
    # The order in the lock is random.
    values = sorted({run.factors[by] for run in of.chosen(dataset)}, key=lambda item: (str(type(item)), item))
    if len(values) < 2:
        raise NoValue(f"the lock has {len(values)} of the values of {by!r} to rank")
    return values, _complete(dataset, [one.narrowed(by, value) for one in (of, then) for value in values])


def _complete(dataset: Dataset, selections: Sequence[Selection]) -> Complete:
    everything = [by_repetition(dataset, selection) for selection in selections]
    complete = sorted(set.intersection(*(set(one.values) for one in everything)))
    return Repetitions(
        {repetition: tuple(significant(one.values[repetition]) for one in everything) for repetition in complete},
        {repetition: tuple(one.observed[repetition] for one in everything) for repetition in complete},
        max(one.planned for one in everything),
        tuple(fault for one in everything for fault in one.faults),
    )


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
