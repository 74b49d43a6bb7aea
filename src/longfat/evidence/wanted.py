# SPDX-License-Identifier: Apache-2.0
"""What a study reads from its runs: the selections of its claims, and of its figures and tables.

Found from the study alone, so that it does not depend on which runs there are. Time series are no part of it: figures
that draw them need the raw runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import pairwise

from longfat.figures.document import FiguresDocument
from longfat.manifest.study import Study
from longfat.metrics import METRICS
from longfat.metrics.quantities import Selection
from longfat.relations.bind import Scope, ValuesOf, scopes, selections_in, values_in_study
from longfat.relations.claims import Claim
from longfat.relations.needs import asked_of
from longfat.relations.syntax import Chain, Relation


def wanted(study: Study, claims: Iterable[Claim], figures: FiguresDocument) -> tuple[Selection, ...]:
    """What claims and figures of a study read, each of all runs of its experiment.

    Metrics with several points in a run are left out. The other runs of an experiment are read too: the engine may ask
    them what a metric varies by.
    """
    found: list[Selection] = []
    for claim in claims:
        found += selections_of_claim(claim, study)
    for figure in figures.figures:
        found += figure.selections(study)
    whole = [dataclasses.replace(one, where=(), added=()) for one in found if not METRICS[one.metric].over]
    return tuple(
        {(one.experiment, one.metric, one.flow, *sorted(one.parameters.items())): one for one in whole}.values()
    )


def selections_of_claim(claim: Claim, study: Study, values_of: ValuesOf | None = None) -> Iterator[Selection]:
    """All that a claim reads, for all values that its loops take: in the study, or as ``values_of`` says."""
    values_of = values_of or values_in_study(study)
    for relation in claim.relations:
        for _, selections in parts_of(relation, study, values_of):
            for one in selections:
                yield one
                yield from (asked for _, asked in asked_of(claim.needs, one)) if claim.needs else ()


def parts_of(relation: Relation, study: Study, values_of: ValuesOf) -> Iterator[tuple[Scope, tuple[Selection, ...]]]:
    """What each comparison of a relation reads, in the engine's order: for each scope, side after side of a chain."""
    for scope in scopes(relation, study, values_of):
        claim = relation.claim
        if isinstance(claim, Chain):
            sides = [claim.first, *(limit.of for _, limit in claim.rest)]
            for left, right in pairwise(sides):
                yield scope, tuple(selections_in((left, right), scope, values_of))
        else:
            yield scope, tuple(selections_in((claim.of,), scope, values_of))
