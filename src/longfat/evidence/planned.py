# SPDX-License-Identifier: Apache-2.0
"""The scenarios that a study plans now, and the check whether a row belongs to them.

A row counts only if its spec equals the spec that the study now has for that scenario and repetition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.evidence.rows import SPEC_DIGITS, Row
from longfat.plan import PlannedRun, Scenario, scenarios_of
from longfat.study.study import Study
from longfat.system.errors import StudyError


@dataclass(frozen=True)
class Planned:
    """A study's scenarios with a stack and a profile, without digests of kernel, image and code."""

    study: Study
    stack: str
    profile: str
    backend: str = DEFAULT_BACKEND
    _known: dict[tuple[str, int], PlannedRun] = field(default_factory=dict)

    @cached_property
    def scenarios(self) -> Mapping[str, Scenario]:
        """The scenarios by name, in the manifest's order. Raises StudyError on an unknown stack or profile."""
        pins = {"backend": self.backend}
        found, _ = scenarios_of(self.study, profile=self.profile, stack=self.stack, pins=pins)
        return {scenario.name: scenario for scenario in found}

    def run(self, scenario: str, repetition: int) -> PlannedRun | None:
        """Return a repetition of a scenario, with the study's own seed; None without such a scenario."""
        if scenario not in self.scenarios:
            return None
        key = scenario, repetition
        if key not in self._known:
            self._known[key] = self.scenarios[scenario].run(self.study.header.seed, repetition)
        return self._known[key]

    def fault(self, row: Row) -> str | None:
        """Return the reason why a row is not of a run of the study; None if it is."""
        run = self.run(row.scenario, row.repetition)
        if run is None:
            return "of scenarios that the study does not have"
        return None if run.run_id[:SPEC_DIGITS] == row.spec else "of scenarios that are not what they were"


def planned_or_none(study: Study, stack: str, profile: str, backend: str = DEFAULT_BACKEND) -> Planned | None:
    """Return the scenarios, or None for an unknown stack or profile."""
    planned = Planned(study, stack, profile, backend)
    try:
        _ = planned.scenarios
    except StudyError:
        return None
    return planned
