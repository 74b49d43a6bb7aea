# SPDX-License-Identifier: Apache-2.0
"""What a relation is held against, as its evaluation sees it: runs, a paper's numbers, or a note of what is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from longfat.manifest.study import Study
from longfat.metrics.orders import Judged
from longfat.metrics.quantities import Selection
from longfat.metrics.statistics import Estimate
from longfat.relations.bind import ValuesOf
from longfat.relations.syntax import Comparator, Expression
from longfat.runspec import Scalar


class Readings(Protocol):
    """What a relation is held against: the runs of a dataset, or the numbers of a paper."""

    @property
    def study(self) -> Study: ...
    @property
    def values_of(self) -> ValuesOf:
        """The values of a factor among what a selection chooses."""
        ...

    def read(self, selection: Selection, least: int | None) -> Estimate:
        """The metric. Raises NoValue."""
        ...

    def middle(self, selection: Selection, least: int | None) -> Judged:
        """What the metric is judged by, where this is the median. Raises NoValue."""
        ...

    def place(self, of: Selection, then: Selection, factor: str, value: Scalar) -> Judged:
        """The rank of a factor's value. Raises NoValue."""
        ...

    def count(self, selections: Sequence[Selection], holds: Callable[[float], bool]) -> Judged:
        """Of how many selections the mean holds. Raises NoValue."""
        ...

    def farthest(self, selection: Selection, law: Expression, sign: Comparator) -> Estimate:
        """The point of a metric that is farthest from a law. Raises NoValue."""
        ...

    def places(self, selection: Selection) -> Estimate:
        """At how many places the points of a metric lie. Raises NoValue."""
        ...
