# SPDX-License-Identifier: Apache-2.0
"""Figures and tables: the kinds that figures.yaml may use, one module for each kind.

Importing a kind's module registers it: a new kind is one module and one line here.
"""

from longfat.figures import bars, curves, runs, table, timeseries, topology
from longfat.figures.base import KINDS, Figure

__all__ = ["KINDS", "Figure", "bars", "curves", "runs", "table", "timeseries", "topology"]
