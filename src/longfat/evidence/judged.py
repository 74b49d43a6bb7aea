# SPDX-License-Identifier: Apache-2.0
"""Verdicts from evidence alone: the same engine over a dataset that has values and no tables.

Owns which rows count, with the name of each reason why others do not, and which profile a claim is judged on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.dataset.load import Dataset, Run
from longfat.evidence.epochs import Epoch
from longfat.evidence.planned import Planned, planned_or_none
from longfat.evidence.rows import Row, ValueKey
from longfat.evidence.store import Place, Rows, epochs_with_evidence, read_rows
from longfat.manifest.study import Study
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.definitions import definition_digest
from longfat.metrics.quantities import key_of
from longfat.relations.claims import Claim
from longfat.relations.evaluate import Grounds
from longfat.relations.gates import printed_numbers
from longfat.relations.judge import Verdict, decide
from longfat.relations.paper import PaperNumbers
from longfat.studies import StudyFolder

PROFILES = ("paper", "quick", "smoke")
"""A claim is judged on the first of these that has a value for all of it, else on the first that there is."""


@dataclass(frozen=True)
class Values:
    """Runs with what is known of them, by the keys of the engine."""

    runs: tuple[Run, ...]
    computed: dict[Hashable, float | str]


@dataclass(frozen=True)
class EvidenceDataset(Dataset):
    """A dataset without tables: what is not among its values cannot be had."""

    values: Values

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The runs that count, and a missing one for each scenario of the profile that has none."""
        return self.values.runs

    @cached_property
    def computed(self) -> dict[Hashable, object]:
        """All values."""
        return {**self.values.computed}

    def _read(self, table: str, **options: object) -> NoReturn:
        raise NoValue("the evidence does not have this value: it was added before a claim or figure asked for it")


@dataclass(frozen=True)
class Ground:
    """What claims are judged on: the evidence of one profile."""

    planned: Planned
    grounds: Grounds
    rows: Mapping[str, tuple[Row, ...]]  # those that count, by scenario, in the order of repetitions

    @property
    def profile(self) -> str:
        """The profile's name."""
        return self.planned.profile


@dataclass(frozen=True)
class Judged:
    """A claim's verdict, and the profile whose runs it rests on; None where it rests on no run."""

    verdict: Verdict
    profile: str | None


@dataclass(frozen=True)
class Evidenced:
    """A study with its evidence of one epoch; ``exclusions`` name what of it does not count, and how much that is."""

    study: Study
    epoch: str
    stack: str
    claims: tuple[Claim, ...]
    grounds: tuple[Ground, ...]
    exclusions: tuple[str, ...]

    @property
    def runs(self) -> int:
        """How many runs count."""
        return sum(len(rows) for ground in self.grounds for rows in ground.rows.values())

    @cached_property
    def papers(self) -> Mapping[str, PaperNumbers]:
        """The paper's own numbers by claim."""
        return printed_numbers(self.claims, self.study)

    def verdicts(self) -> list[Judged]:
        """Every claim's verdict, in the order of claims.yaml."""
        return [self._judged(claim) for claim in self.claims]

    def _judged(self, claim: Claim) -> Judged:
        found: list[Judged] = []
        for ground in self.grounds:
            verdict = decide(claim, ground.grounds, self.papers)
            judged = Judged(verdict, ground.profile if any(item.n for item in verdict.evidence) else None)
            if verdict.verdict != "not_measured":
                return judged
            found.append(judged)
        return next((judged for judged in found if judged.profile), found[0])


def evidence_of(
    folder: StudyFolder,
    epochs: list[Epoch],
    *,
    epoch: str | None = None,
    stack: str | None = None,
    rows: Rows | None = None,
    profile: str | None = None,
) -> Evidenced | None:
    """The evidence of a study's folder, of its newest epoch or of the one named; None where there is none.

    ``rows`` stand for those on the disk. With a ``profile`` it is that of this profile alone, and there is always some
    of the epoch named, if only the runs that are missing.
    Raises StudyError on evidence, claims or a manifest that cannot be used.
    """
    study, claims = folder.study, folder.claims
    names = sorted({place.epoch for place in rows}) if rows is not None else epochs_with_evidence(folder.path)
    if epoch is None and names:
        epoch = names[-1]
    if epoch is None or (epoch not in names and profile is None):
        return None
    rows = read_rows(folder.path, study.name, epoch) if rows is None else rows
    stack = stack or study.header.stack
    members = next((known.members for known in epochs if known.name == epoch), {})
    left_out: Counter[str] = Counter()
    grounds = []
    for one in PROFILES if profile is None else (profile,):
        own = {
            place: of for place, of in rows.items() if (place.epoch, place.stack, place.profile) == (epoch, stack, one)
        }
        if not own and profile is None:
            continue
        backend = next((member.combination.backend for member in members.values()), DEFAULT_BACKEND)
        planned = planned_or_none(study, stack, one, backend)
        counted: dict[str, list[Row]] = {}
        for place, row in ((place, row) for place, of in own.items() for row in of.values()):
            if fault := _fault(row, place, planned, members):
                if not row.assuming:  # of other assumptions, it is nothing that is missed here
                    left_out[f"{one}: {fault}"] += 1
            else:
                counted.setdefault(row.scenario, []).append(row)
        if planned is not None:
            kept = {name: tuple(sorted(of, key=lambda row: row.repetition)) for name, of in counted.items()}
            values = _values(planned, kept, left_out)
            grounds.append(Ground(planned, Grounds(study, EvidenceDataset(folder.path, values)), kept))
    exclusions = tuple(f"{count} x {reason}" for reason, count in sorted(left_out.items()))
    return Evidenced(study, epoch, stack, claims, tuple(grounds), exclusions)


def _fault(row: Row, place: Place, planned: Planned | None, members: Mapping[str, object]) -> str | None:
    """Why a row does not count, as part of a sentence about several."""
    if row.made not in members:
        return f"runs of a combination ({row.made}) that the epoch does not list"
    if planned is None:
        return f"runs of stack {place.stack} and profile {place.profile}, which the study does not have"
    if fault := planned.fault(row):
        return f"runs {fault}"
    if planned.scenarios[row.scenario].experiment != place.experiment:
        return f"runs that lie with experiment {place.experiment}, and are of another"
    return None


def _values(planned: Planned, rows: Mapping[str, tuple[Row, ...]], left_out: Counter[str]) -> Values:
    computed: dict[Hashable, float | str] = {}
    runs = []
    for scenario in planned.scenarios.values():
        for row in rows.get(scenario.name, ()):
            run = _run(planned, row)
            runs.append(run)
            computed.update(_computed(run, row, left_out))
        if scenario.name not in rows:
            runs.append(_missing(planned, scenario.name))
    return Values(tuple(runs), computed)


def _run(planned: Planned, row: Row) -> Run:
    of = planned.scenarios[row.scenario]
    status = "ok" if row.measured else "invalid"
    fixed = (row.spec, of.experiment, of.name, row.repetition, planned.stack, status, row.reason)
    return Run(*fixed, factors=of.point.factors, measured=row.measured)


def _missing(planned: Planned, scenario: str) -> Run:
    of = planned.scenarios[scenario]
    fixed = (f"missing {scenario}", of.experiment, of.name, 1, planned.stack)
    return Run(*fixed, "missing", "not in the evidence", factors=of.point.factors)


def _computed(run: Run, row: Row, left_out: Counter[str]) -> Iterator[tuple[Hashable, float | str]]:
    """The row's values; one of a metric that is not what it was is none, and is named."""
    for name, value in row.values.items():
        key = ValueKey.read(name)
        what = key_of(run, key.selection(run.experiment))
        if key.metric not in METRICS:
            left_out[f"values of metric {key.metric}, which there is not"] += 1
        elif key.definition == definition_digest(METRICS[key.metric]):
            yield what, value
        else:
            left_out[f"values of metric {key.metric} by another definition ({key.definition})"] += 1
