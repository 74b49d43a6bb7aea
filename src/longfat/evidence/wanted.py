# SPDX-License-Identifier: Apache-2.0
"""What a study reads from its runs: the selections of its claims, and of its figures and tables.

Found from the study alone, so that it does not depend on which runs there are. Time series are no part of it: figures
that draw them need the raw runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from longfat.figures.document import FiguresDocument
from longfat.manifest.study import Study
from longfat.metrics import METRICS
from longfat.metrics.quantities import Selection
from longfat.relations.bind import ValuesOf
from longfat.relations.claims import Claim
from longfat.relations.needs import asked_of


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
    """Yield all that a claim reads, for all values of its loops: in the study, or as ``values_of`` has them."""
    for relation in claim.relations:
        for one in relation.selections(study, values_of):
            yield one
            yield from (asked for _, asked in asked_of(claim.needs, one)) if claim.needs else ()
