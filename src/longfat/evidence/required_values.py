# SPDX-License-Identifier: Apache-2.0
"""The values that a study needs from its runs: the selections of its claims, figures and tables.

They depend on the study alone. Time series are not included: figures of them need the raw runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path

from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import DatasetSummary, build_dataset
from longfat.dataset.load import load_dataset
from longfat.figures.document import FiguresDocument
from longfat.metrics import METRICS
from longfat.metrics.quantities import Selection, impossible
from longfat.relations.bind import ValuesOf
from longfat.relations.claims import Claim
from longfat.relations.needs import asked_of
from longfat.study.study import Study


def required_selections(study: Study, claims: Iterable[Claim], figures: FiguresDocument) -> tuple[Selection, ...]:
    """Return the selections of claims and figures, each of all runs of its experiment.

    Metrics with several points in a run are left out. All runs of an experiment are included, because judgement may
    need them to find the factors that affect a metric.
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
    """Yield the selections of a claim for all values of its loops, from the study or from ``values_of``."""
    for relation in claim.relations:
        for one in relation.selections(study, values_of):
            yield one
            yield from (needed for _, needed in asked_of(claim.needs, one)) if claim.needs else ()


def build_valid(results: Path, folder: StudyFolder) -> DatasetSummary:
    """Build the dataset with the gates applied, and again if a metric has a value outside its bounds.

    Raises StudyError, RecordError or RigError as ``build_dataset``.
    """
    summary = build_dataset(results)
    if not summary.ok:
        return summary
    found = impossible(load_dataset(results), required_selections(folder.study, folder.claims, folder.figures))
    return build_dataset(results, found) if found else summary
