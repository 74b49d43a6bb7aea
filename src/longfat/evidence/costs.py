# SPDX-License-Identifier: Apache-2.0
"""What the evidence lacks, and what it costs: runs that are not there, and their time.

Times are wall time of one run at a time on one core, which virtual time keeps busy: minutes of CPU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from longfat.evidence.ground import Ground
from longfat.evidence.wanted import selections_of_claim
from longfat.plan.estimate import run_seconds
from longfat.relations.claims import Claim
from longfat.studies import StudyFolder

LEAST = 3  # repetitions with which a comparison is judged
MEASURED_OVER_PLANNED = 2.0  # seconds of a run over the plan's, as long as the evidence has none

Targets = Mapping[str, int]
"""The number of repetitions to have of a scenario, by its name."""


class Costs:
    """Which repetitions the evidence of a profile lacks, and how many seconds of CPU they take."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground

    def missing(self, name: str, n: int) -> list[int]:
        """The repetitions of a scenario up to the n-th that are not there."""
        known = {row.repetition for row in self.ground.rows.get(name, ())}
        return [number for number in range(1, n + 1) if number not in known]

    def of_run(self, name: str) -> float:
        """Of one run of a scenario: what those in the evidence took, else a multiple of the plan's model.

        The multiple is that of the experiment in the study's reference, else that of all runs in the evidence.
        """
        rows = self.ground.rows.get(name, ())
        if rows:
            return max(sum(row.seconds for row in rows) / len(rows), 0.01)
        scenario = self.ground.planned.scenarios[name]
        return run_seconds(scenario.spec) * self._pace.get(scenario.experiment, self._slowness)

    @cached_property
    def _pace(self) -> Mapping[str, float]:
        planned = self.ground.planned
        return StudyFolder(self.ground.grounds.dataset.folder).pace(planned.profile, planned.stack)

    @cached_property
    def _slowness(self) -> float:
        scenarios = self.ground.planned.scenarios
        took = sum(row.seconds for rows in self.ground.rows.values() for row in rows)
        planned = sum(run_seconds(scenarios[name].spec) * len(rows) for name, rows in self.ground.rows.items())
        return took / planned if took > 0 and planned > 0 else MEASURED_OVER_PLANNED


@dataclass(frozen=True)
class Lack:
    """The runs of a profile without which claims cannot be decided, with the seconds of CPU of each.

    ``each`` has them by scenario and repetition.
    """

    profile: str
    each: Mapping[tuple[str, int], float]

    @property
    def runs(self) -> int:
        """How many they are."""
        return len(self.each)

    @property
    def seconds(self) -> float:
        """Seconds of CPU of all."""
        return sum(self.each.values())

    def __str__(self) -> str:
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        return f"lacks {runs} of profile {self.profile}, about {time_of(self.seconds)}"


def time_of(seconds: float) -> str:
    """Seconds of CPU for people, in minutes or hours."""
    minutes = max(seconds / 60, 0.1)
    return f"{minutes:.1f} min of CPU" if minutes < 120 else f"{minutes / 60:.1f} h of CPU"


def joined(lacks: Iterable[Lack]) -> tuple[Lack, ...]:
    """The same runs, each once, by profile."""
    found: dict[str, dict[tuple[str, int], float]] = {}
    for lack in lacks:
        found.setdefault(lack.profile, {}).update(lack.each)
    return tuple(Lack(profile, each) for profile, each in found.items())


def lack_of(claim: Claim, ground: Ground, known: Collection[str] = (), least: int = LEAST) -> Lack | None:
    """What a claim lacks of a profile's runs: ``least`` of each scenario, or as many as it needs, each with its values.

    None where nothing lacks; where the profile leaves out what the claim is about, or makes it too short; and where all
    that lacks is among the ``known`` specs, of runs that are evidence for another profile: then its runs do not help.
    """
    least = max(least, (claim.needs and claim.needs.at_least_n) or 0)
    costs, dataset = Costs(ground), ground.grounds.dataset
    if too_short(claim, ground):
        return None
    missing: set[tuple[str, int]] = set()
    for selection in selections_of_claim(claim, ground.planned.study, ground.grounds.values_of):
        runs = selection.chosen(dataset)
        if not runs:
            return None
        missing |= {(run.scenario, number) for run in runs for number in costs.missing(run.scenario, least)}
        missing |= {
            (run.scenario, run.repetition) for run in runs if run.status == "ok" and ground.lacks(run, selection)
        }
    if {ground.spec(*run) for run in missing} <= {*known}:
        return None
    return Lack(ground.profile, {(name, number): costs.of_run(name) for name, number in sorted(missing)})


def too_short(claim: Claim, ground: Ground) -> bool:
    """Whether some run of the profile ends before the time that the claim needs, or that one of its metrics is of."""
    for selection in selections_of_claim(claim, ground.planned.study, ground.grounds.values_of):
        needed = claim.needs.lasts_in(selection.experiment) * 1e6 if claim.needs else 0.0
        least = max(selection.parameters.get("within", 0.0), needed)
        scenarios = (ground.planned.scenarios[run.scenario] for run in selection.chosen(ground.grounds.dataset))
        if any(scenario.spec.end_us < least for scenario in scenarios):
            return True
    return False
