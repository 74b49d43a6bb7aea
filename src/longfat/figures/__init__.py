# SPDX-License-Identifier: Apache-2.0
"""Figures and tables: the kinds that figures.yaml may use, one module for each, and how they are drawn.

Importing the package registers every kind.
"""

from longfat.figures import bars, curves, ranking, table, timeseries, topology
from longfat.figures.base import KINDS, Figure

__all__ = ["KINDS", "Figure", "bars", "curves", "ranking", "table", "timeseries", "topology"]
