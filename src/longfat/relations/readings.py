# SPDX-License-Identifier: Apache-2.0
"""The base class of the sources of a relation's numbers: the runs of a dataset, or the numbers of a paper."""

from __future__ import annotations

from dataclasses import dataclass

from longfat.metrics.data import NoValue
from longfat.metrics.orders import Judged
from longfat.metrics.quantities import Pool, Selection
from longfat.metrics.statistics import Estimate
from longfat.relations.bind import ValuesOf
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
