# SPDX-License-Identifier: Apache-2.0
"""What a package says of the runs in it: when they happened, what they took, and what a claim needs of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from longfat.dataset.load import Dataset
from longfat.errors import RecordError
from longfat.plan.estimate import run_bytes, run_seconds
from longfat.plan.model import Plan, PlannedRun
from longfat.record.bundle import SUMS
from longfat.record.verify import read_facts as record_facts
from longfat.relations.claims import Claim
from longfat.relations.judge import Verdict
from longfat.studies import StudyFolder


@dataclass(frozen=True)
class Cost:
    """Distinct runs, seconds of wall time one after the other, bytes of their records."""

    runs: int
    seconds: float
    size: int


@dataclass(frozen=True)
class Tested:
    """A claim with its verdict, the experiments that it rests on, and what these cost; none for arithmetic."""

    claim: Claim
    verdict: Verdict
    experiments: tuple[str, ...]
    cost: Cost


@dataclass(frozen=True)
class Facts:
    """A plan, how many of its distinct runs are valid, and of those on record the wall times and when they happened.

    ``seconds`` is by run_id; ``began`` and ``ended`` are in UTC.
    """

    plan: Plan
    valid: int
    seconds: Mapping[str, float]
    began: datetime | None
    ended: datetime | None

    @property
    def runs(self) -> str:
        """How many runs there are, and of how many where some are missing or invalid."""
        planned = len({run.run_id for run in self.plan.runs})
        return f"{planned} runs" if self.valid == planned else f"{self.valid} of {planned} runs"

    def cost(self, experiments: Iterable[str] | None = None) -> Cost:
        """Of the distinct runs of some experiments, or of all: measured times, else those of the plan's model."""
        chosen = None if experiments is None else set(experiments)
        runs = {run.run_id: run for run in self.plan.runs if chosen is None or run.experiment in chosen}.values()
        return Cost(len(runs), sum(map(self._seconds, runs)), sum(run_bytes(run.spec) for run in runs))

    def tested(self, folder: StudyFolder, verdicts: Iterable[Verdict]) -> list[Tested]:
        """Every claim of the study that has a verdict, in the study's order."""
        claims = {claim.id: claim for claim in folder.claims}
        found = []
        for verdict in verdicts:
            claim = claims[verdict.claim]
            named = {name: None for one in claim.relations for name in one.experiments(folder.study)}
            experiments = tuple(named) if claim.measured else ()
            found.append(Tested(claim, verdict, experiments, self.cost(experiments)))
        return found

    def _seconds(self, run: PlannedRun) -> float:
        return self.seconds.get(run.run_id, run_seconds(run.spec))


def read_facts(plan: Plan, results: Path, dataset: Dataset) -> Facts:
    """The facts of the records under ``results``; those that are not there add none. Raises RecordError."""
    valid = {run.run_id for run in dataset.runs if run.status == "ok"}
    seconds: dict[str, float] = {}
    times: list[datetime] = []
    for path in sorted(results.glob(f"raw/[!.]*/{SUMS}")):
        data = record_facts(path.parent)
        try:
            began = datetime.fromisoformat(data["started_utc"]).astimezone(UTC).replace(microsecond=0)
            took = float(data["wall_seconds"])
            seconds[str(data["run_id"])] = took
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(f"the record cannot be read: {error!r}", where=str(path.parent)) from error
        times += [began, began + timedelta(seconds=round(took))]
    return Facts(plan, len(valid), seconds, min(times, default=None), max(times, default=None))
