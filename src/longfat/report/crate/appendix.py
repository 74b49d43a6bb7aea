# SPDX-License-Identifier: Apache-2.0
"""The artifact appendix of a package: the claims, and the command, time and disk that check each of them.

The text is in ``artifact.md.j2``. It follows the checklist of ACM's badges (Artifact Review and Badging, version 1.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from longfat.data.study_folder import StudyFolder
from longfat.plan.estimate import run_bytes, run_seconds
from longfat.plan.model import Plan
from longfat.relations.claims import claim_nouns
from longfat.relations.counting import tally
from longfat.relations.judge import Verdict
from longfat.report.crate.metadata import Part
from longfat.report.page import render


@dataclass(frozen=True)
class Cost:
    """The estimated cost of runs: their number, minutes one after the other, and disk space."""

    runs: int
    minutes: float
    disk: str


@dataclass(frozen=True)
class Row:
    """A claim's verdict, the experiments behind it, and their cost; no experiments for arithmetic."""

    verdict: Verdict
    experiments: tuple[str, ...]
    cost: Cost


def appendix(folder: StudyFolder, plan: Plan, verdicts: Sequence[Verdict], runs: str, parts: Sequence[Part]) -> str:
    """Format ARTIFACT.md."""
    counts = tally(one.counted for one in verdicts)["measured"]
    return render(
        "artifact.md.j2",
        study=folder.header.study,
        title=folder.header.title,
        noun=claim_nouns(folder.header)[1],
        plan=plan,
        runs=runs,
        summary=", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items() if count),
        total=_cost(plan, {run.experiment for run in plan.runs}),
        parts=parts,
        rows=tuple(_rows(folder, plan, verdicts)),
    )


def _rows(folder: StudyFolder, plan: Plan, verdicts: Iterable[Verdict]) -> Iterator[Row]:
    claims = {claim.id: claim for claim in folder.claims}
    for verdict in verdicts:
        claim = claims[verdict.claim]
        named = [name for one in claim.relations for name in one.experiments(folder.study)]
        experiments = tuple(dict.fromkeys(named)) if claim.measured else ()
        yield Row(verdict, experiments, _cost(plan, experiments))


def _cost(plan: Plan, experiments: Iterable[str]) -> Cost:
    """Return the cost of the distinct runs of experiments, by the plan's model."""
    chosen = set(experiments)
    specs = {run.run_id: run.spec for run in plan.runs if run.experiment in chosen}.values()
    size = sum(map(run_bytes, specs))
    disk = f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{-(-size // 10**6)} MB"
    return Cost(len(specs), sum(map(run_seconds, specs)) / 60, disk)
