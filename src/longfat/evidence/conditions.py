# SPDX-License-Identifier: Apache-2.0
"""For which values of what a paper does not state its claims hold, by the committed evidence alone. Runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from longfat.evidence.epochs import Epoch
from longfat.evidence.judged import evidence_of
from longfat.evidence.regions import At, Region, regions, values_in
from longfat.evidence.store import Rows, epochs_with_evidence, read_rows
from longfat.manifest.unknowns import Unknown
from longfat.relations.claims import Claim
from longfat.relations.evaluate import Evidence
from longfat.relations.judge import Verdict
from longfat.runspec import Scalar
from longfat.studies import StudyFolder


@dataclass(frozen=True)
class Condition:
    """An unknown, the values that evidence has, and the outcomes of each claim that depends on it along them."""

    name: str
    unknown: Unknown
    tried: tuple[Scalar, ...]
    claims: Mapping[str, tuple[Region, ...]]


def conditions(folder: StudyFolder, epochs: Sequence[Epoch]) -> Iterator[Condition]:
    """What each unknown of a study decides. A claim that says the same at every value does not depend on it."""
    with_evidence = epochs_with_evidence(folder.path)
    unknowns = folder.header.unknowns if with_evidence else {}
    rows = read_rows(folder.path, folder.header.study, with_evidence[-1]) if unknowns else {}
    about = {
        claim.id: {name for relation in claim.relations for name in relation.experiments(folder.study)}
        for claim in (folder.claims if unknowns else ())
    }
    for name, unknown in folder.header.unknowns.items():
        values = values_in((row.assuming for of in rows.values() for row in of.values()), name, unknown)
        varied = {place.experiment for place, of in rows.items() if any(name in row.assuming for row in of.values())}
        tried: list[At] = []
        told: dict[str, list[tuple[Evidence, ...]]] = {}
        asked = [claim for claim in folder.claims if about[claim.id] & varied] if rows else []
        needed = {experiment for claim in asked for experiment in about[claim.id]}
        own = {place: of for place, of in rows.items() if place.experiment in needed}
        for value in values if len(values) > 1 else ():
            verdicts = list(_verdicts(folder.assuming({name: value}, needed), epochs, own, asked)) if asked else []
            tried.append(At(value, {verdict.claim: verdict.verdict for verdict in verdicts}))
            for verdict in verdicts:
                told.setdefault(verdict.claim, []).append(verdict.evidence)
        depends = [
            claim for claim, each in told.items() if len(each) == len(tried) and any(one != each[0] for one in each)
        ]
        yield Condition(
            name,
            unknown,
            tuple(at.value for at in tried),
            {claim: regions(claim, tried, unknown) for claim in depends},
        )


def _verdicts(folder: StudyFolder, epochs: Sequence[Epoch], rows: Rows, asked: Sequence[Claim]) -> Iterator[Verdict]:
    """The verdicts on claims by rows of their experiments; none on a claim of which no run is there."""
    found = evidence_of(folder, epochs, rows=rows)
    for claim in asked if found else ():
        if found and (judged := found.of_own_runs(claim)).profile:
            yield judged.verdict
