# SPDX-License-Identifier: Apache-2.0
"""Ranks by two quantities: by the first, and among those alike in it by the second. And counts of means.

Owns the rule by which the values of a factor are ranked (docs/claims.md). Must not judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from longfat.dataset.load import Dataset
from longfat.metrics.data import NoValue
from longfat.metrics.orders import Sampled, bootstrapped
from longfat.metrics.quantities import Repetitions, Selection, by_repetition, significant
from longfat.relations.limits import TOLERANCE
from longfat.runspec import Scalar

LEAST_REPETITIONS = 2
Levels = Mapping[Scalar, float]


def ranked(first: Levels, second: Levels) -> list[Scalar]:
    """The keys of both mappings, best first.

    They are sorted by ``first``, largest first. The head of the rest forms a group with all values that it exceeds by
    at most 5 %, and the group is sorted by ``second``, largest first. Keys that are equal in both keep the order of
    ``first``, the mapping.
    """
    left = sorted(first, key=lambda value: -first[value])
    order: list[Scalar] = []
    while left:
        head = first[left[0]]
        size = sum(head <= significant(first[value] * (1 + TOLERANCE)) for value in left)
        group, left = left[:size], left[size:]
        order += sorted(group, key=lambda value: -second[value])
    return order


def ranks(dataset: Dataset, of: Selection, then: Selection, by: str) -> dict[int, dict[Scalar, int]]:
    """Rank of each value of the factor ``by`` in each complete repetition; 1 is the best.

    A repetition is complete when it has both quantities for every value. Raises NoValue when the lock has
    fewer than two values to rank.
    """
    found = _compared(dataset, of, then, by).values
    return {repetition: _places(*pair) for repetition, pair in found.items()}


def rank_of(dataset: Dataset, of: Selection, then: Selection, by: str, value: Scalar) -> Sampled:
    """Rank of one value of the factor ``by`` in the ranking by means over the complete repetitions, by bootstrap.

    Raises NoValue with the reasons when fewer than two are complete or the lock has no such value.
    """
    found = _compared(dataset, of, then, by)
    exact = len(found.distinct) == 1 and found.repeats > 0
    found.least(1 if exact else LEAST_REPETITIONS)
    levels = list(found.distinct.values())
    if value not in levels[0][0]:
        raise NoValue(f"the lock has no run with {by} {value} to rank")

    def place(sample: Sequence[tuple[Levels, Levels]]) -> float:
        firsts, seconds = zip(*sample, strict=True)
        return float(_places(_means(firsts), _means(seconds))[value])

    return Sampled(place(levels), bootstrapped(levels, place), len(levels), found.repeats, exact)


def count_of(dataset: Dataset, selections: Sequence[Selection], holds: Callable[[float], bool]) -> Sampled:
    """Of how many selections the mean over the complete repetitions holds, by bootstrap.

    Raises NoValue with the reasons when fewer than two repetitions are complete.
    """
    everything = [by_repetition(dataset, selection) for selection in selections]
    complete = sorted(set.intersection(*(set(found.values) for found in everything)))
    found = Repetitions(
        {repetition: tuple(one.values[repetition] for one in everything) for repetition in complete},
        {repetition: tuple(one.observed[repetition] for one in everything) for repetition in complete},
        max(one.planned for one in everything),
        tuple(fault for one in everything for fault in one.faults),
    )
    exact = len(found.distinct) == 1 and found.repeats > 0
    found.least(1 if exact else LEAST_REPETITIONS)
    rows = list(found.distinct.values())

    def count(sample: Sequence[tuple[float, ...]]) -> float:
        return float(sum(holds(significant(sum(of) / len(of))) for of in zip(*sample, strict=True)))

    return Sampled(count(rows), bootstrapped(rows, count), len(rows), found.repeats, exact)


def ranking(dataset: Dataset, of: Selection, then: Selection, by: str) -> list[Scalar]:
    """The values of the factor ``by``, best first, by the means of both quantities over complete repetitions.

    Raises NoValue with the reasons when no repetition is complete.
    """
    found = _compared(dataset, of, then, by)
    found.least(1)
    firsts, seconds = zip(*found.distinct.values(), strict=True)
    return ranked(_means(firsts), _means(seconds))


def _places(first: Levels, second: Levels) -> dict[Scalar, int]:
    return {value: place for place, value in enumerate(ranked(first, second), start=1)}


def _means(levels: Sequence[Levels]) -> Levels:
    return {value: significant(sum(level[value] for level in levels) / len(levels)) for value in levels[0]}


def _compared(dataset: Dataset, of: Selection, then: Selection, by: str) -> Repetitions[tuple[Levels, Levels]]:
    """Both quantities by factor value in each repetition that is complete in all of them."""
    # The lock is shuffled: the values are listed in a fixed order.
    values = sorted({run.factors[by] for run in of.chosen(dataset)}, key=lambda item: (str(type(item)), item))
    if len(values) < 2:
        raise NoValue(f"the lock has {len(values)} of the values of {by!r} to rank")
    firsts, seconds = (
        {value: by_repetition(dataset, quantity.narrowed(by, value)) for value in values} for quantity in (of, then)
    )
    everything = [*firsts.values(), *seconds.values()]
    complete = set.intersection(*(set(item.values) for item in everything))
    pairs = {
        repetition: (
            {value: significant(found.values[repetition]) for value, found in firsts.items()},
            {value: significant(found.values[repetition]) for value, found in seconds.items()},
        )
        for repetition in sorted(complete)
    }
    faults = tuple(fault for item in everything for fault in item.faults)
    observed = {repetition: tuple(item.observed[repetition] for item in everything) for repetition in pairs}
    return Repetitions(pairs, observed, max(item.planned for item in everything), faults)
