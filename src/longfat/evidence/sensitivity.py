# SPDX-License-Identifier: Apache-2.0
"""Sensitivity of claims to unknowns: outcomes as a function of a setting that the paper does not state.

Uses only the committed evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from longfat.data.study_folder import StudyFolder
from longfat.evidence.baselines import Baseline
from longfat.evidence.judged import evidence_of
from longfat.evidence.store import Rows, baselines_with_evidence, read_rows
from longfat.relations.evaluate import Evidence
from longfat.relations.outcomes import Word
from longfat.spec.runspec import Scalar
from longfat.study.formulas import amount_of
from longfat.study.unknowns import Unknown


@dataclass(frozen=True)
class At:
    """The verdicts on claims, by id, at one value of an unknown."""

    value: Scalar
    words: Mapping[str, Word]

    def outcome(self, claim: str) -> Word:
        """Return the verdict on a claim at this value."""
        return self.words.get(claim, "undecided")


@dataclass(frozen=True)
class Region:
    """Neighbouring values with the same outcome of a claim."""

    outcome: Word
    first: Scalar
    last: Scalar

    def __str__(self) -> str:
        span = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        return f"{self.outcome} at {span}"


def regions(claim: str, tried: Collection[At], unknown: Unknown) -> tuple[Region, ...]:
    """Return a claim's outcomes over the tried values, in ascending order."""
    ordered = sorted(tried, key=lambda at: _order(unknown, at.value))
    grouped = ((outcome, list(own)) for outcome, own in groupby(ordered, key=lambda at: at.outcome(claim)))
    return tuple(Region(outcome, own[0].value, own[-1].value) for outcome, own in grouped)


def _order(unknown: Unknown, value: Scalar) -> Fraction:
    if unknown.between is None:
        return Fraction((unknown.among or ()).index(value))
    amount = amount_of(value)
    assert amount is not None, "a range has numbers and quantities alone"
    return amount.value


def values_in(assumed: Iterator[Mapping[str, Scalar]], name: str, unknown: Unknown) -> tuple[Scalar, ...]:
    """Return the values of an unknown in evidence with defaults for all other unknowns; the default first."""
    found = [given[name] for given in assumed if set(given) == {name} and unknown.allows(given[name])]
    return tuple(dict.fromkeys((unknown.default, *sorted(found, key=lambda value: _order(unknown, value)))))


@dataclass(frozen=True)
class Condition:
    """An unknown, its values in the evidence, and the outcomes of each claim that depends on it."""

    name: str
    unknown: Unknown
    tried: tuple[Scalar, ...]
    claims: Mapping[str, tuple[Region, ...]]


def conditions(folder: StudyFolder, baselines: Sequence[Baseline]) -> Iterator[Condition]:
    """Yield a condition for each unknown. A claim depends on it if its evidence differs between its values."""
    unknowns, with_evidence = folder.header.unknowns, baselines_with_evidence(folder.path)
    rows = read_rows(folder.path, folder.header.study, with_evidence[-1]) if unknowns and with_evidence else {}
    for name, unknown in unknowns.items():
        values = values_in((row.assuming for of in rows.values() for row in of.values()), name, unknown)
        tried, evidence = _tried(folder, baselines, rows, name, values) if len(values) > 1 else ([], {})
        depends = [
            claim for claim, each in evidence.items() if len(each) == len(tried) and any(one != each[0] for one in each)
        ]
        yield Condition(
            name, unknown, tuple(at.value for at in tried), {claim: regions(claim, tried, unknown) for claim in depends}
        )


def _tried(
    folder: StudyFolder, baselines: Sequence[Baseline], rows: Rows, name: str, values: Sequence[Scalar]
) -> tuple[list[At], dict[str, list[tuple[Evidence, ...]]]]:
    """Judge, at each value of an unknown, the claims about experiments with runs at other values.

    Returns the verdicts by value, and by claim its evidence at each value for which it has runs.
    """
    varied = {place.experiment for place, of in rows.items() if any(name in row.assuming for row in of.values())}
    about = {
        claim.id: {experiment for relation in claim.relations for experiment in relation.experiments(folder.study)}
        for claim in folder.claims
    }
    claims = [claim for claim in folder.claims if about[claim.id] & varied]
    needed = {experiment for claim in claims for experiment in about[claim.id]}
    own = {place: of for place, of in rows.items() if place.experiment in needed}
    tried: list[At] = []
    evidence: dict[str, list[tuple[Evidence, ...]]] = {}
    for value in values:
        found = evidence_of(folder.assuming({name: value}, needed), baselines, rows=own) if claims else None
        judged = [found.judge(claim) for claim in claims] if found else []
        verdicts = [one.verdict for one in judged if one.profile]
        tried.append(At(value, {verdict.claim: verdict.verdict for verdict in verdicts}))
        for verdict in verdicts:
            evidence.setdefault(verdict.claim, []).append(verdict.evidence)
    return tried, evidence
