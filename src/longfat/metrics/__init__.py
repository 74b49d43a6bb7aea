# SPDX-License-Identifier: Apache-2.0
"""Metrics: numbers from one run, each a registered function, and their estimates over selected runs.

Importing the package registers every metric of the project.
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
