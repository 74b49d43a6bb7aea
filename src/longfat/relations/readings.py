# SPDX-License-Identifier: Apache-2.0
"""The source of a relation's numbers: the runs of a dataset, or the numbers of a paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from longfat.manifest.study import Study
from longfat.metrics.data import NoValue, Point
from longfat.metrics.orders import Judged
from longfat.metrics.quantities import Selection
from longfat.metrics.statistics import Estimate
from longfat.relations.bind import ValuesOf
from longfat.runspec import Scalar

Law = Callable[[Point], float]


@dataclass(frozen=True)
class Readings:
    """A source that has no number at all; each method raises NoValue."""

    study: Study

    @property
    def values_of(self) -> ValuesOf | None:
        """The values of a factor among the runs that a selection chooses; None for those of the study's points."""
        return None

    def read(self, selection: Selection, least: int | None) -> Estimate:
        """Return the metric."""
        raise NoValue("the number is not given")

    def middle(self, selection: Selection, least: int | None) -> Judged:
        """Return the value by which a lone metric is judged, where this is the median."""
        return self.read(selection, least)

    def place(self, of: Selection, then: Selection, factor: str, value: Scalar) -> Judged:
        """Return the rank of a factor's value."""
        raise NoValue("the rank is not given apart from the relation")

    def count(self, selections: Sequence[Selection], holds: Callable[[float], bool]) -> Judged:
        """Return the number of selections whose mean holds."""
        raise NoValue("the count is not given apart from the relation")

    def farthest(self, selection: Selection, law: Law, sign: str) -> Estimate:
        """Return the point of a metric divided by the law there, where it is farthest from the law."""
        raise NoValue("the points are not given")

    def places(self, selection: Selection) -> Estimate:
        """Return the number of different places of a metric's points."""
        raise NoValue("the points are not given")
