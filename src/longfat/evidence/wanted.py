# SPDX-License-Identifier: Apache-2.0
"""Values that a study reads from its runs: the selections of its claims, figures and tables.

They depend on the study alone, not on the runs. Time series are not included: figures of them need the raw runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import pairwise

from longfat.figures.document import FiguresDocument
from longfat.manifest.study import Study
from longfat.metrics import METRICS
from longfat.metrics.quantities import Selection
from longfat.relations.bind import ValuesOf, scopes, selections_in, values_in_study
from longfat.relations.claims import Claim
from longfat.relations.needs import asked_of
from longfat.relations.syntax import Chain, Expression


def wanted(study: Study, claims: Iterable[Claim], figures: FiguresDocument) -> tuple[Selection, ...]:
    """Return the selections of claims and figures, each of all runs of its experiment.

    Metrics with several points in a run are left out. All runs of an experiment are read, because the engine may need
    them to see what a metric depends on.
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
    """Yield the selections of a claim for all values of its loops: those in the study, or given by ``values_of``."""
    values_of = values_of or values_in_study(study)
    for relation in claim.relations:
        said = relation.claim
        if isinstance(said, Chain):
            sides = [said.first, *(limit.of for _, limit in said.rest)]
            terms: list[tuple[Expression, ...]] = [*pairwise(sides)]
        else:
            terms = [(said.of,)]
        for scope in scopes(relation, study, values_of):
            for one in (one for term in terms for one in selections_in(term, scope, values_of)):
                yield one
                yield from (needed for _, needed in asked_of(claim.needs, one)) if claim.needs else ()
