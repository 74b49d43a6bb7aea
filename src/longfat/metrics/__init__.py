# SPDX-License-Identifier: Apache-2.0
"""Metrics: numbers read from a run, each one registered function; and their values over chosen runs.

Importing the package registers every metric of the project. Must not judge.
"""

from longfat.metrics import (
    bottleneck,
    cuts,
    goodput,
    harm,
    outstanding,
    requests,
    steadiness,
    together,
    windows,
)
from longfat.metrics.registry import METRICS, Metric

__all__ = [
    "METRICS",
    "Metric",
    "bottleneck",
    "cuts",
    "goodput",
    "harm",
    "outstanding",
    "requests",
    "steadiness",
    "together",
    "windows",
]
