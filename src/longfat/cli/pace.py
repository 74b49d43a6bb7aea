# SPDX-License-Identifier: Apache-2.0
"""Estimates of wall time: multiples of the plan's model, from the study's committed reference or a typical value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from longfat.backends.registry import traits_of
from longfat.data.study_folder import StudyFolder
from longfat.execute.record.verify import find_records
from longfat.plan import Plan, PlannedRun
from longfat.plan.estimate import run_bytes, seconds_on
from longfat.plan.lockfile import LOCK, read_lock

TYPICAL = 0.5  # few flows fill their link, which the model assumes


@dataclass(frozen=True)
class Pace:
    """The multiples of a study's experiments by name, the multiple of all others, and their origin in words."""

    words: str
    others: float = 1.0
    of: Mapping[str, float] = field(default_factory=dict)

    def cost(self, plan: Plan, runs: Iterable[PlannedRun], jobs: int) -> tuple[float, float]:
        """Return the wall time of all distinct runs, ``jobs`` at a time, and their bytes."""
        backend, distinct = plan.pins["backend"], {run.run_id: run for run in runs}.values()
        jobs = 1 if traits_of(backend).clock == "real" else jobs
        seconds = [seconds_on(backend, run.spec) * self.of.get(run.experiment, self.others) for run in distinct]
        return max(sum(seconds) / jobs, max(seconds, default=0.0)), sum(run_bytes(run.spec) for run in distinct)


def expected_pace(plan: Plan, folder: StudyFolder) -> Pace:
    """Return the pace of a plan's runs on the machine that made the study's reference."""
    if traits_of(plan.pins["backend"]).clock == "real":
        return Pace("a second takes a second")
    known = folder.pace(plan.profile, plan.stack)
    if not known:
        return Pace("by a model", TYPICAL)
    return Pace("by the reference of the study", sum(known.values()) / len(known), known)


def pace_of(results: Path) -> dict[str, float]:
    """Return the seconds of recorded runs divided by the model's, by experiment, as a reference stores them."""
    plan, records = read_lock(results / LOCK), find_records(results / "raw")
    totals: dict[str, list[float]] = {}
    for run in plan.runs:
        if run.run_id in records:
            total = totals.setdefault(run.experiment, [0.0, 0.0])
            total[0] += records[run.run_id].wall_seconds
            total[1] += seconds_on(plan.pins["backend"], run.spec)
    return {name: round(took / modelled, 3) for name, (took, modelled) in sorted(totals.items())}
