# SPDX-License-Identifier: Apache-2.0
"""Metrics: numbers read from a run, each one registered function; and their values over chosen runs.

Importing the package registers every metric of the project. Must not judge.
"""

from importlib import import_module

from longfat.metrics.registry import METRICS as METRICS
from longfat.metrics.registry import Metric as Metric

_MODULES = (
    *("bottleneck", "cuts", "goodput", "harm", "outstanding"),
    *("requests", "steadiness", "together", "windows"),
)
for _name in _MODULES:
    import_module(f"{__name__}.{_name}")
