# SPDX-License-Identifier: Apache-2.0
"""Metrics: numbers read from a run, each one registered function; and their values over chosen runs.

Importing the package registers every metric of the project. Must not judge.
"""

from longfat.metrics import (
    bottleneck,
    cuts,
    datagrams,
    goodput,
    harm,
    outstanding,
    programs,
    requests,
    steadiness,
    together,
    web,
    windows,
)
from longfat.metrics.registry import METRICS, Metric

__all__ = [
    "METRICS",
    "Metric",
    "bottleneck",
    "cuts",
    "datagrams",
    "goodput",
    "harm",
    "outstanding",
    "programs",
    "requests",
    "steadiness",
    "together",
    "web",
    "windows",
]
