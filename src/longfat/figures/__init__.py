# SPDX-License-Identifier: Apache-2.0
"""Figures and tables: what figures.yaml may ask for, one module for each kind, and how it is drawn.

Importing the package registers every kind.
"""

from longfat.figures import bars, curves, ranking, table, timeseries, topology
from longfat.figures.base import KINDS, Figure

__all__ = ["KINDS", "Figure", "bars", "curves", "ranking", "table", "timeseries", "topology"]
