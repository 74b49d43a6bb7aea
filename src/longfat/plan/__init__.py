# SPDX-License-Identifier: Apache-2.0
"""From a study to a lock: every run in full, in order of execution. Pure except for the lock file."""

from longfat.plan.build import Scenario, build_plan, scenarios_of
from longfat.plan.estimate import Estimate, estimate
from longfat.plan.lockfile import read_lock, write_lock
from longfat.plan.model import Excluded, Plan, PlannedRun

__all__ = [
    "Estimate",
    "Excluded",
    "Plan",
    "PlannedRun",
    "Scenario",
    "build_plan",
    "estimate",
    "read_lock",
    "scenarios_of",
    "write_lock",
]
