# SPDX-License-Identifier: Apache-2.0
"""A value that its metric cannot have makes its run invalid, for everything that reads the run."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import pytest
from fabricated_results import write_results, write_study

from longfat.data.study_folder import StudyFolder
from longfat.dataset.load import load_dataset
from longfat.evidence.required_values import build_valid
from longfat.metrics import METRICS
from longfat.metrics.data import OutOfBounds

METRIC = dataclasses.replace(METRICS["jain"], bounds=(0.2, 1.0))


@pytest.mark.parametrize("value", [0.2, 0.7, 1.0, 1.004, 0.1995])
def test_a_value_that_samples_take_past_a_bound_is_the_bound(value: float) -> None:
    assert METRIC.bounded(value) == min(max(value, 0.2), 1.0)


@pytest.mark.parametrize("value", [1.01, -0.2, 5.0, float("inf")])
def test_a_value_far_outside_is_refused_with_the_bounds(value: float) -> None:
    with pytest.raises(OutOfBounds, match=r"jain is .*, outside its bounds 0.2 to 1"):
        METRIC.bounded(value)


def test_a_run_is_invalid_for_everything_when_one_value_that_the_study_reads_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, results = write_study(tmp_path), tmp_path / "results"
    write_results(study, results)
    folder = StudyFolder(study)
    assert build_valid(results, folder).valid
    monkeypatch.setitem(METRICS, "goodput", dataclasses.replace(METRICS["goodput"], bounds=(0, 400)))
    summary = build_valid(results, folder)
    assert (summary.ok, summary.invalid) == (5, 4)
    invalid = {run.factors["window"] for run in load_dataset(results).runs if run.status == "invalid"}
    assert invalid == {8 << 20}
    with (results / "dataset/exclusions.csv").open(newline="") as lines:
        reasons = [row["reason"] for row in csv.DictReader(lines)]
    assert all("goodput is 9" in reason and "outside its bounds 0 to 400 Mb/s" in reason for reason in reasons), reasons
