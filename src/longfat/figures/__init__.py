# SPDX-License-Identifier: Apache-2.0
"""The kinds of figures and tables in figures.yaml, with a module for each kind.

Importing a kind's module registers it: a new kind is one module and one line here.
"""

from longfat.figures import bars, curves, runs, table, timeseries, topology
from longfat.figures.base import KINDS, Figure

__all__ = ["KINDS", "Figure", "bars", "curves", "runs", "table", "timeseries", "topology"]
