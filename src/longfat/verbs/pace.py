# SPDX-License-Identifier: Apache-2.0
"""How long runs take and how much disk they need on this machine, as multiples of the plan's model of them.

Measured on the runs that are in the results folders here, the newest ones: those of an experiment for itself, else of
its study, else of all studies. Where there are none, the model stands as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from longfat.backends.registry import traits_of
from longfat.plan import Plan, PlannedRun
from longfat.plan.estimate import run_bytes, seconds_on
from longfat.runspec import RunSpec
from longfat.verbs.places import repository_root

NEWEST = 200  # runs of a folder that are looked at
ENOUGH = 3  # runs from which the pace of an experiment, a study or a machine is taken


@dataclass(frozen=True)
class Factor:
    """What runs took over what the model says: in seconds of wall time and bytes of disk. ``runs`` is how many."""

    seconds: float = 1.0
    disk: float = 1.0
    runs: int = 0


@dataclass(frozen=True)
class Pace:
    """The factors of a study's experiments by name, and that of all others, with its origin for people."""

    others: Factor = Factor()
    words: str = "by a model of another machine: any run, such as those of ./just smoke, measures this one"
    of: Mapping[str, Factor] = field(default_factory=dict)

    def seconds(self, plan: Plan, run: PlannedRun) -> float:
        """Wall time of a run of the plan."""
        return seconds_on(_backend(plan), run.spec) * self.of.get(run.experiment, self.others).seconds

    def disk(self, run: PlannedRun) -> float:
        """Bytes that the record of a run takes."""
        return run_bytes(run.spec) * self.of.get(run.experiment, self.others).disk

    def cost(self, plan: Plan, runs: Iterable[PlannedRun], jobs: int) -> tuple[float, float]:
        """Seconds of wall time of all distinct runs, ``jobs`` at a time, and their bytes."""
        distinct = {run.run_id: run for run in runs}.values()
        jobs = 1 if traits_of(_backend(plan)).clock == "real" else jobs
        seconds = [self.seconds(plan, run) for run in distinct]
        return max(sum(seconds) / jobs, max(seconds, default=0.0)), sum(map(self.disk, distinct))


def pace_here(plan: Plan, results: Path) -> Pace:
    """The pace of a study's runs on this machine; ``results`` is its results folder."""
    if traits_of(_backend(plan)).clock == "real":
        return Pace(words="a second takes a second")
    own = list(_records(results, plan))
    if len(own) < ENOUGH:
        every = [one for place in repository_root().glob("results/*") for one in _records(place, plan)]
        return Pace(_factor(every), f"by {len(every)} runs of other studies here") if len(every) >= ENOUGH else Pace()
    experiments = {run.scenario: run.experiment for run in plan.runs}
    groups: dict[str, list[_Record]] = {}
    for one in own:
        groups.setdefault(experiments.get(one.scenario, ""), []).append(one)
    of = {name: _factor(group) for name, group in groups.items() if len(group) >= ENOUGH}
    return Pace(_factor(own), f"by {len(own)} runs of this study here", of)


@dataclass(frozen=True)
class _Record:
    """A run that is recorded: what it took, and what the model says that it takes."""

    scenario: str
    seconds: float
    disk: float
    modelled_s: float
    modelled_bytes: float


def _records(results: Path, plan: Plan) -> Iterator[_Record]:
    folders = sorted(results.glob("raw/*/run.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in islice(folders, NEWEST):
        try:
            told, spec = json.loads(path.read_text()), RunSpec.from_json((path.parent / "spec.json").read_text())
            if told["status"] == "ok" and told["backend"] == _backend(plan):
                size = sum(512 * file.stat().st_blocks for file in path.parent.rglob("*") if file.is_file())
                modelled = seconds_on(told["backend"], spec), run_bytes(spec)
                yield _Record(path.parent.name.rsplit(".", 2)[0], float(told["wall_seconds"]), size, *modelled)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # damaged, or of another version: it tells nothing


def _factor(records: Iterable[_Record]) -> Factor:
    every = list(records)
    seconds = sum(one.seconds for one in every) / sum(one.modelled_s for one in every)
    return Factor(seconds, sum(one.disk for one in every) / sum(one.modelled_bytes for one in every), len(every))


def _backend(plan: Plan) -> str:
    return plan.pins["backend"]
