# SPDX-License-Identifier: Apache-2.0
"""Wall time and disk space of runs, as multiples of the plan's model of them.

The factors come from the newest recorded runs of the study here, for each experiment; else from the study's committed
reference, which another machine may have made; else the model is multiplied by ``TYPICAL``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from longfat.backends.registry import traits_of
from longfat.cli.paths import study_path
from longfat.errors import StudyError
from longfat.plan import Plan, PlannedRun
from longfat.plan.estimate import run_bytes, seconds_on
from longfat.runspec import RunSpec
from longfat.studies import StudyFolder

NEWEST = 200  # runs of a folder that are read
ENOUGH = 3  # runs from which a factor is computed
TYPICAL = 0.5  # few flows fill their link, which the model assumes


@dataclass(frozen=True)
class Factor:
    """Measured seconds and bytes of runs, divided by the model's."""

    seconds: float = 1.0
    disk: float = 1.0


@dataclass(frozen=True)
class Pace:
    """The factors of a study's experiments by name, the factor of all others, and their origin in words."""

    others: Factor = Factor()
    words: str = ""
    of: Mapping[str, Factor] = field(default_factory=dict)

    def seconds(self, plan: Plan, run: PlannedRun) -> float:
        """Return the wall time of a run of the plan."""
        return seconds_on(plan.pins["backend"], run.spec) * self.of.get(run.experiment, self.others).seconds

    def disk(self, run: PlannedRun) -> float:
        """Return the size of a run's record in bytes."""
        return run_bytes(run.spec) * self.of.get(run.experiment, self.others).disk

    def cost(self, plan: Plan, runs: Iterable[PlannedRun], jobs: int) -> tuple[float, float]:
        """Return the wall time of all distinct runs, ``jobs`` at a time, and their bytes."""
        distinct = {run.run_id: run for run in runs}.values()
        jobs = 1 if traits_of(plan.pins["backend"]).clock == "real" else jobs
        seconds = [self.seconds(plan, run) for run in distinct]
        return max(sum(seconds) / jobs, max(seconds, default=0.0)), sum(map(self.disk, distinct))


def pace_here(plan: Plan, results: Path) -> Pace:
    """Return the pace of a study's runs on this machine; ``results`` is its results folder."""
    backend = plan.pins["backend"]
    if traits_of(backend).clock == "real":
        return Pace(words="a second takes a second")
    own = list(_records(results, backend))
    if len(own) >= ENOUGH:
        of = {name: _factor(group) for name, group in _by_experiment(own).items() if len(group) >= ENOUGH}
        return Pace(_factor(own), f"by {len(own)} runs of this study here", of)
    known = _reference_pace(plan)
    if not known:
        return Pace(Factor(TYPICAL), "by a model; runs on this machine make it exact")
    others = Factor(sum(known.values()) / len(known))
    words = "by the reference of the study, from another machine; runs on this machine make it exact"
    return Pace(others, words, {name: Factor(seconds) for name, seconds in known.items()})


def pace_of(results: Path) -> dict[str, float]:
    """Return the seconds of recorded runs divided by the model's, by experiment, as a reference stores them."""
    backend = str(json.loads((results / "lock.json").read_text())["pins"]["backend"])
    groups = _by_experiment(_records(results, backend))
    return {name: round(_factor(group).seconds, 3) for name, group in sorted(groups.items())}


def _reference_pace(plan: Plan) -> Mapping[str, float]:
    try:
        return StudyFolder(study_path(plan.study)).pace(plan.profile, plan.stack)
    except (StudyError, ValueError, KeyError):
        return {}


@dataclass(frozen=True)
class _Record:
    """The measured and the modelled cost of a recorded run."""

    experiment: str
    seconds: float
    disk: float
    modelled_s: float
    modelled_bytes: float


def _records(results: Path, backend: str) -> Iterator[_Record]:
    folders = sorted(results.glob("raw/*/run.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in islice(folders, NEWEST):
        try:
            facts, spec = json.loads(path.read_text()), RunSpec.from_json((path.parent / "spec.json").read_text())
            if facts["status"] == "ok" and facts["backend"] == backend:
                size = sum(512 * file.stat().st_blocks for file in path.parent.rglob("*") if file.is_file())
                modelled = seconds_on(backend, spec), run_bytes(spec)
                yield _Record(path.parent.name.partition(".")[0], float(facts["wall_seconds"]), size, *modelled)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # damaged, or from another version


def _by_experiment(records: Iterable[_Record]) -> dict[str, list[_Record]]:
    groups: dict[str, list[_Record]] = {}
    for one in records:
        groups.setdefault(one.experiment, []).append(one)
    return groups


def _factor(records: Iterable[_Record]) -> Factor:
    every = list(records)
    seconds = sum(one.seconds for one in every) / sum(one.modelled_s for one in every)
    return Factor(seconds, sum(one.disk for one in every) / sum(one.modelled_bytes for one in every))
