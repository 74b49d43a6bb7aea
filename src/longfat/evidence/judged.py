# SPDX-License-Identifier: Apache-2.0
"""Verdicts from evidence alone: the same engine over a dataset that has values and no tables.

Owns which profile a claim is judged on, and what is said of one that is not measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.evidence.costs import Lack, joined, lack_of
from longfat.evidence.epochs import Epoch
from longfat.evidence.ground import EvidenceDataset, Ground, Values, fault_of, ground_of
from longfat.evidence.planned import planned_or_none
from longfat.evidence.store import Rows, epochs_with_evidence, read_rows
from longfat.manifest.study import Study
from longfat.manifest.thinning import Profile
from longfat.metrics.data import NoValue
from longfat.relations.claims import Claim
from longfat.relations.counting import Counts, tally
from longfat.relations.evaluate import Grounds, evaluated
from longfat.relations.judge import Verdict, decide
from longfat.relations.syntax import parse_expression
from longfat.studies import StudyFolder

PROFILES = ("paper", "steady", "quick", "smoke")
"""A claim is judged on the first of these that has a value for all of it, else on the first that there is."""

CHEAPEST_FIRST = ("quick", "steady", "paper")
"""A claim that cannot be judged lacks runs of the first of these that could measure it; before, of those with runs."""


@dataclass(frozen=True)
class Judged:
    """A claim's verdict, and the profile whose runs it rests on; None where it rests on no run.

    ``lack`` has the runs that would measure a claim that is not measured; None where none would.
    """

    verdict: Verdict
    profile: str | None
    lack: Lack | None = None

    @property
    def n(self) -> str:
        """The number of observations, for people: from the fewest of its comparisons to the most; "" without any."""
        counts = [item.n for item in self.verdict.evidence if item.n]
        if not counts:
            return ""
        return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"

    @property
    def reason(self) -> str:
        """The reason of the verdict and what is lacking, for people; "" where there is none."""
        return "; ".join(str(part) for part in (self.verdict.reason, self.lack) if part)


@dataclass(frozen=True)
class Evidenced:
    """A study with its evidence of one epoch and stack.

    ``exclusions`` name what of it does not count, and how much that is; ``besides`` has the runs of other stacks.
    """

    folder: StudyFolder
    epoch: str
    stack: str
    backend: str
    grounds: tuple[Ground, ...]
    exclusions: tuple[str, ...]
    besides: Mapping[str, int]

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
        """How many runs count."""
        return self.valid_runs[1]

    @property
    def valid_runs(self) -> tuple[int, int]:
        """How many of the runs that count are valid, and how many they are."""
        kept = [row for ground in self.grounds for rows in ground.rows.values() for row in rows]
        return sum(row.measured is not None for row in kept), len(kept)

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """Every claim's verdict, in the order of claims.yaml."""
        return tuple(self.judge(claim) for claim in self.claims)

    @cached_property
    def counts(self) -> Counts:
        """How often each word was given, by category."""
        return tally(item.verdict.counted for item in self.judged)

    def judge(self, claim: Claim) -> Judged:
        """The verdict on one claim, with what it lacks where it is not measured."""
        judged = self.of_own_runs(claim)
        lacking = judged.verdict.verdict == "not_measured"
        return replace(judged, lack=next(self._lacks(claim), None)) if lacking else judged

    def of_own_runs(self, claim: Claim) -> Judged:
        """The verdict on one claim by the runs that are there; plans no profile that has none."""
        found: list[Judged] = []
        for grounds, profile in self._all_grounds:
            verdict = decide(claim, grounds, self.folder.papers)
            judged = Judged(verdict, profile if any(item.n for item in verdict.evidence) else None)
            if verdict.verdict != "not_measured":
                return judged
            found.append(judged)
        return next((judged for judged in found if judged.profile), found[0])

    @property
    def lacks(self) -> tuple[Lack, ...]:
        """What the claims lack that are not measured, each run once, by profile."""
        return joined(item.lack for item in self.judged if item.lack)

    def value(self, expression: str) -> float | None:
        """The value of an expression of relations by the first profile that has one; None where none has.

        Raises RelationError on what is no such expression.
        """
        for ground in self.grounds:
            try:
                return evaluated(parse_expression(expression), ground.grounds, 1).value
            except (NoValue, ValueError):
                continue
        return None

    @property
    def _all_grounds(self) -> list[tuple[Grounds, str | None]]:
        """What claims are judged on, with the profiles; without evidence of any, no run at all."""
        nothing = Grounds(self.study, EvidenceDataset(self.folder.path, Values()))
        return [(ground.grounds, ground.profile) for ground in self.grounds] or [(nothing, None)]

    def _lacks(self, claim: Claim) -> Iterator[Lack]:
        """What a claim lacks of each profile that could measure it."""
        known: set[str] = set()
        for ground in self._measurable:
            if lack := lack_of(claim, ground, known):
                yield lack
            known |= ground.specs

    @cached_property
    def _measurable(self) -> tuple[Ground, ...]:
        """The grounds of the profiles that the study has: those with evidence, then the others."""
        own = {ground.profile: ground for ground in self.grounds}
        found = [own[name] for name in CHEAPEST_FIRST if name in own]
        for name in CHEAPEST_FIRST:
            if name in own or (name == "steady" and self.study.header.profiles.steady == Profile()):
                continue
            planned = planned_or_none(self.study, self.stack, name, self.backend)
            found += [ground_of(self.folder.path, planned, (), Counter())] if planned is not None else []
        return tuple(found)


def evidence_of(
    folder: StudyFolder,
    epochs: Sequence[Epoch],
    *,
    epoch: str | None = None,
    stack: str | None = None,
    rows: Rows | None = None,
    profile: str | None = None,
) -> Evidenced | None:
    """The evidence of a study's folder, of its newest epoch and own stack or those named; None where there is none.

    ``rows`` stand for those on the disk. With a ``profile`` it is that of this profile alone, and there is always some
    of the epoch named, if only the runs that are missing.
    Raises StudyError on evidence, claims or a manifest that cannot be used.
    """
    study = folder.study
    names = sorted({place.epoch for place in rows}) if rows is not None else epochs_with_evidence(folder.path)
    if epoch is None and names:
        epoch = names[-1]
    if epoch is None or (epoch not in names and profile is None):
        return None
    _ = folder.claims  # with them the study's own metrics are registered
    rows = read_rows(folder.path, study.name, epoch) if rows is None else rows
    stack = stack or study.header.stack
    if profile is None and not any(of for place, of in rows.items() if (place.epoch, place.stack) == (epoch, stack)):
        return None
    members = next((known.members for known in epochs if known.name == epoch), {})
    backend = next((member.combination.backend for member in members.values()), DEFAULT_BACKEND)
    left_out: Counter[str] = Counter()
    grounds = []
    known = (*PROFILES, *sorted({place.profile for place in rows} - {*PROFILES}))
    for one in known if profile is None else (profile,):
        own = {
            place: of for place, of in rows.items() if (place.epoch, place.stack, place.profile) == (epoch, stack, one)
        }
        if not own and profile is None:
            continue
        planned = planned_or_none(study, stack, one, backend)
        counted = []
        for place, row in ((place, row) for place, of in own.items() for row in of.values()):
            if fault := fault_of(row, place, planned, members):
                if not row.assuming:  # of other assumptions, it is nothing that is missed here
                    left_out[f"{one}: {fault}"] += 1
            else:
                counted.append(row)
        if planned is not None:
            grounds.append(ground_of(folder.path, planned, counted, left_out))
    exclusions = tuple(f"{count} x {reason}" for reason, count in sorted(left_out.items()))
    besides: Counter[str] = Counter()
    for place, of in rows.items():
        besides.update({place.stack: len(of)} if place.epoch == epoch and place.stack != stack else {})
    return Evidenced(folder, epoch, stack, backend, tuple(grounds), exclusions, besides)
