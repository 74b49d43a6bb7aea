# SPDX-License-Identifier: Apache-2.0
"""Verdicts from evidence alone: the same judgement on a dataset that has values but no tables.

Owns the choice of the profile by which a claim is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.data.study_folder import StudyFolder
from longfat.evidence.baselines import Baseline
from longfat.evidence.criteria import Records, read_criteria, summary, younger
from longfat.evidence.rows import Conflict, Row, merge, standing
from longfat.evidence.store import Rows, baselines_with_evidence, contradiction, read_rows, two_outcomes
from longfat.evidence.stored_dataset import EvidenceDataset, Ground, Planned, fault_of, ground_of
from longfat.metrics.data import NoValue
from longfat.relations.claims import Claim
from longfat.relations.counting import Counts, once, tally
from longfat.relations.evaluate import Grounds, evaluated
from longfat.relations.headlines import JudgedHeadline, claim_words, judged_headlines
from longfat.relations.judge import Verdict, decide
from longfat.relations.syntax import parse_expression
from longfat.study.study import Study
from longfat.system.errors import StudyError

PROFILES = ("paper", "steady", "quick", "smoke")
"""A claim is judged by the first of these profiles with all its values, else by the first with evidence."""


@dataclass(frozen=True)
class Judged:
    """A claim's verdict, and the profile of its runs; None without a run."""

    verdict: Verdict
    profile: str | None

    @property
    def n(self) -> str:
        """The number of observations, as a range over its comparisons; "" without any."""
        counts = [item.n for item in self.verdict.evidence if item.n]
        if not counts:
            return ""
        return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"

    @property
    def repetitions(self) -> int:
        """The number of repetitions that decides; of several comparisons that fail, the largest number."""
        word = self.verdict.verdict
        numbers = [item.n + item.repeats for item in self.verdict.evidence if item.n and item.outcome == word]
        return (max if word == "not reproduced" else min)(numbers, default=0)

    @property
    def reason(self) -> str:
        """The reason of the verdict; "" without any."""
        return self.verdict.reason or ""


@dataclass(frozen=True)
class Evidenced:
    """A study with its evidence of one baseline and stack.

    ``exclusions`` are the numbers of excluded rows and values, with reasons; ``others`` has the number of runs of other
    stacks, ``rows`` all rows of the baseline.
    """

    folder: StudyFolder
    baseline: str
    stack: str
    backend: str
    grounds: tuple[Ground, ...]
    exclusions: tuple[str, ...]
    others: Mapping[str, int]
    rows: Rows = field(default_factory=dict, repr=False)

    @property
    def study(self) -> Study:
        """The study."""
        return self.folder.study

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Its claims."""
        return self.folder.claims

    @property
    def runs(self) -> int:
        """The number of included runs."""
        return self.valid_runs[1]

    @property
    def valid_runs(self) -> tuple[int, int]:
        """The number of valid runs, and of all included runs."""
        kept = {row.key: row for ground in self.grounds for rows in ground.rows.values() for row in rows}
        return sum(row.measured is not None for row in kept.values()), len(kept)

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """The verdict on each claim, in the order of claims.yaml."""
        return tuple(self.judge(claim) for claim in self.claims)

    @cached_property
    def criteria(self) -> Records:
        """The criteria of the claims at the time when rows became evidence. Raises StudyError on a damaged file."""
        return read_criteria(self.folder.path)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences about the numbers of repetitions, and about the days on which the criteria were recorded."""
        numbers = [ground.repetitions for ground in self.grounds if ground.rows]
        return (*numbers, summary(self.claims, self.study, self.rows, self.criteria))

    @cached_property
    def younger(self) -> tuple[str, ...]:
        """Differences of criteria from those with the first rows that the study's ``changes`` do not list."""
        return tuple(younger(self.claims, self.study, self.rows, self.criteria))

    @cached_property
    def headlines(self) -> tuple[JudgedHeadline, ...]:
        """The paper's main conclusions, judged from the claims behind them."""
        words = claim_words([item.verdict for item in self.judged], self.claims)
        return judged_headlines(self.folder.headlines, words, self.value)

    @cached_property
    def counts(self) -> Counts:
        """The number of verdicts of each kind, by category."""
        return tally(item.verdict.counted for item in self.judged)

    @property
    def decided_by(self) -> Mapping[str, int]:
        """The number of decided claims that only runs can decide, by the profile of their runs."""
        found = Counter(item.profile for item in self._decided)
        return {profile: found[profile] for profile in PROFILES if found[profile]}

    @property
    def differing(self) -> int:
        """The number of claims among them that are not reproduced, but in another scenario than the source's."""
        return sum(item.verdict.why == "scenario differs" for item in self._decided)

    @property
    def early(self) -> int:
        """The number of them whose deciding comparison has fewer repetitions than stated before the runs."""
        stated = self.study.header.stated_repetitions
        return sum(item.repetitions < stated for item in self._decided)

    @property
    def _decided(self) -> list[Judged]:
        counted = once(item.verdict.counted for item in self.judged)
        left = "undecided", "not testable"
        claims = {one.claim for one in counted if one.category == "measured" and one.word not in left}
        return [item for item in self.judged if item.verdict.claim in claims]

    def judge(self, claim: Claim) -> Judged:
        """Judge a claim by the first profile with all its values, else by the first profile with one of its runs."""
        found: list[Judged] = []
        for grounds, profile in self._all_grounds:
            verdict = decide(claim, grounds, self.folder.papers)
            judged = Judged(verdict, profile if any(item.n for item in verdict.evidence) else None)
            if verdict.why != "runs missing":
                return judged
            found.append(judged)
        return next((judged for judged in found if judged.profile), found[0])

    def value(self, expression: str) -> float | None:
        """Return the value of an expression from the first profile that has one; None if none has.

        Raises RelationError on a wrong expression.
        """
        for ground in self.grounds:
            try:
                return evaluated(parse_expression(expression), ground.grounds, 1).value
            except (NoValue, ValueError):
                continue
        return None

    @property
    def _all_grounds(self) -> list[tuple[Grounds, str | None]]:
        """The runs for judgement, by profile; without evidence an empty dataset."""
        nothing = Grounds(self.study, EvidenceDataset(self.folder.path))
        return [(ground.grounds, ground.profile) for ground in self.grounds] or [(nothing, None)]


def evidence_of(
    folder: StudyFolder,
    baselines: Sequence[Baseline],
    *,
    baseline: str | None = None,
    stack: str | None = None,
    rows: Rows | None = None,
    profile: str | None = None,
) -> Evidenced | None:
    """Return the evidence of a study, by default of its newest baseline and its own stack; None without any.

    ``rows`` replace those on the disk. With a ``profile`` the result is of this profile alone, and it is never None for
    a named baseline, even without a run.
    Raises StudyError on evidence, claims or a manifest that cannot be used.
    """
    study = folder.study
    names = sorted({place.baseline for place in rows}) if rows is not None else baselines_with_evidence(folder.path)
    if baseline is None and names:
        baseline = names[-1]
    if baseline is None or (baseline not in names and profile is None):
        return None
    _ = folder.claims  # reading them registers the study's own metrics
    rows = read_rows(folder.path, study.name, baseline) if rows is None else rows
    stack = stack or study.header.stack
    own = {place: of for place, of in rows.items() if (place.baseline, place.stack) == (baseline, stack)}
    if profile is None and not any(own.values()):
        return None
    members = next((known.members for known in baselines if known.name == baseline), {})
    backend = next((member.combination.backend for member in members.values()), DEFAULT_BACKEND)
    left_out: Counter[str] = Counter()
    grounds = []
    present = {place.profile for place in own}
    ordered = [one for one in PROFILES if one in present] + sorted(present - {*PROFILES})
    for one in ordered if profile is None else [profile]:
        planned: Planned | None = None
        with suppress(StudyError):  # an unknown stack or profile
            planned = Planned(study, stack, one, backend).checked()
        counted = _counted(own, one, planned, members, left_out)
        if planned is not None:
            grounds.append(ground_of(folder.path, planned, counted, left_out))
    exclusions = tuple(f"{count} x {reason}" for reason, count in sorted(left_out.items()))
    others: Counter[str] = Counter()
    for place, of in rows.items():
        others.update({place.stack: len(of)} if place.baseline == baseline and place.stack != stack else {})
    return Evidenced(folder, baseline, stack, backend, tuple(grounds), exclusions, others, rows)


def _counted(
    own: Rows, profile: str, planned: Planned | None, members: Mapping[str, object], left_out: Counter[str]
) -> list[Row]:
    """Return the rows that count in a profile, from the files of every profile.

    Faults of rows are counted in ``left_out`` by reason. Raises StudyError with every run that has different outcomes.
    """
    counted: dict[tuple[str, int], Row] = {}
    problems = []
    kept = {id(row) for row in standing(row for of in own.values() for row in of.values())}
    for place, row in ((place, row) for place, of in own.items() for row in of.values() if id(row) in kept):
        fault, run = fault_of(row, place, planned, members), (row.scenario, row.repetition)
        if fault is None:
            try:
                counted[run] = merge(counted[run], row) if run in counted else row
            except Conflict as error:
                problems.append(two_outcomes(place, row, error))
        elif place.profile == profile and not row.assuming:  # rows with other values of unknowns are not a fault
            left_out[f"{profile}: {fault}"] += 1
    if problems:
        raise contradiction(problems)
    return list(counted.values())


def without_runs(folder: StudyFolder, baseline: str) -> Evidenced:
    """Return the evidence of a study without any run, in which no claim that needs runs is measured."""
    return Evidenced(folder, baseline, folder.study.header.stack, DEFAULT_BACKEND, (), (), {})
