# SPDX-License-Identifier: Apache-2.0
"""The registry of metrics: signatures, bounds, the digests of definitions, and metrics of studies."""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import sys
from pathlib import Path

import pytest
from fabricated_results import write_results, write_study
from test_laws import _restored as _restored

from longfat.data.study_folder import StudyFolder
from longfat.dataset.load import load_dataset
from longfat.evidence.collect import build_valid
from longfat.metrics import METRICS
from longfat.metrics.data import FlowRows, NoValue, OutOfBounds
from longfat.metrics.definitions import definition_digest
from longfat.metrics.registry import load_own_metrics, metric
from longfat.system.errors import StudyError


def test_a_parameter_without_a_unit_or_source_and_a_name_given_twice_are_refused() -> None:
    with pytest.raises(TypeError, match="'rows' has no source"):
        metric("", "faulty")(lambda rows: 0.0)
    with pytest.raises(TypeError, match="speed"):

        @metric("", "faulty")
        def faulty(rows: FlowRows, speed: float) -> float:
            return speed

    with pytest.raises(TypeError, match="goodput"):
        metric("", "again", name="goodput")(lambda: 0.0)


SOURCE = '''
from longfat.metrics.data import FlowRows
from longfat.metrics.registry import metric

FACTOR = 2


def helper(value):
    return value * FACTOR


@metric("s", "a number of ours", name="ours")
def ours(rows: FlowRows) -> float:
    """What it is."""
    return helper(len(rows))
'''


def test_a_faulty_file_of_metrics_is_named_and_registers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    study = tmp_path / "experiments/own"
    study.mkdir(parents=True)
    (study / "metrics.py").write_text(f"{SOURCE}\nimport nothing_of_this_name\n", encoding="utf-8")
    with pytest.raises(StudyError, match="nothing_of_this_name"):
        load_own_metrics(study)
    assert "ours" not in METRICS


def digest_of(source: str, folder: Path, number: int) -> str:
    """The digest of the metric ``ours`` in a module with this source."""
    name = f"longfat_metrics_of_test_{number}"
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    METRICS.pop("ours", None)
    spec.loader.exec_module(module)
    return definition_digest(METRICS["ours"])


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("What it is.", "What else it is.", True),
        ('"a number of ours"', '"a quantity of ours"', True),
        ("    return helper", "    # a comment\n    return helper", True),
        ("helper(len(rows))", "helper(len(rows) + 1)", False),
        ("value * FACTOR", "value / FACTOR", False),
        ("FACTOR = 2", "FACTOR = 3", False),
    ],
)
def test_a_definition_changes_with_its_code_and_its_helpers_and_not_with_its_words(
    tmp_path: Path, before: str, after: str, same: bool
) -> None:
    one = digest_of(SOURCE, tmp_path, 1)
    assert before in SOURCE
    assert (digest_of(SOURCE.replace(before, after), tmp_path, 2) == one) is same


METRIC = dataclasses.replace(METRICS["jain"], bounds=(0.2, 1.0))


@pytest.mark.parametrize("value", [0.2, 0.7, 1.0, 1.004, 0.1995])
def test_a_value_that_samples_take_past_a_bound_is_the_bound(value: float) -> None:
    assert METRIC.bounded(value) == min(max(value, 0.2), 1.0)


@pytest.mark.parametrize("value", [1.01, -0.2, 5.0, float("inf")])
def test_a_value_far_outside_is_refused_with_the_bounds(value: float) -> None:
    with pytest.raises(OutOfBounds, match=r"jain is .*, outside its bounds 0.2 to 1"):
        METRIC.bounded(value)
    with pytest.raises(NoValue, match="the value is nan"):
        METRIC.bounded(float("nan"))


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
