# SPDX-License-Identifier: Apache-2.0
"""The dataset of a study's results, in which a run is valid only if every value that the study reads is possible."""

from __future__ import annotations

from pathlib import Path

from longfat.dataset.build import DatasetSummary, build_dataset
from longfat.dataset.load import load_dataset
from longfat.evidence.wanted import wanted
from longfat.metrics.quantities import impossible
from longfat.studies import StudyFolder


def build_valid(results: Path, folder: StudyFolder) -> DatasetSummary:
    """Build the dataset with the gates applied, and again if a metric has a value outside its bounds.

    Raises StudyError, RecordError or RigError as ``build_dataset``.
    """
    summary = build_dataset(results)
    if not summary.ok:
        return summary
    found = impossible(load_dataset(results), wanted(folder.study, folder.claims, folder.figures))
    return build_dataset(results, found) if found else summary
