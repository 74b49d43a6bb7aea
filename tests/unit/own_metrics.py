# SPDX-License-Identifier: Apache-2.0
"""The metrics of a study's own ``metrics.py``, as a module."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from longfat.metrics.registry import load_own_metrics

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def own_metrics(study: str) -> ModuleType:
    """Load the study's metrics, once, and return their module."""
    load_own_metrics(EXPERIMENTS / study)
    return sys.modules[f"longfat_metrics_of_{study.replace('-', '_')}"]
