# SPDX-License-Identifier: Apache-2.0
"""The registry of metrics: what a signature says, what it must not leave open, metrics of a study's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tables_in_memory import run, tables

from longfat.metrics import METRICS
from longfat.metrics.data import Connection, FlowRows
from longfat.metrics.quantities import Selection, measure
from longfat.metrics.reference import with_reference
from longfat.metrics.registry import load_own_metrics, metric
from longfat.system.errors import StudyError

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)


def test_a_signature_says_what_a_metric_needs() -> None:
    @metric("ms", "something", bounds=(0, 9), source="a paper")
    def something(samples: Connection, at_us: float, level_bps: float = 0.0, flow: str | None = None) -> float:
        """What it is."""
        return at_us

    found = METRICS["something"]
    assert (found.unit, found.meaning, found.bounds, found.definition) == ("ms", "something", (0, 9), "What it is.")
    assert [(one.name, one.dimension, one.required) for one in found.parameters.values()] == [
        ("at", "time", True),
        ("level", "rate", False),
    ]
    assert found.required == ("at",)
    assert found.flow
    assert not found.must_name_flow


def test_a_registered_function_is_measured_like_any_other() -> None:
    @metric("flows", "number of flows")
    def number_of_flows(rows: FlowRows) -> float:
        """Number of flows."""
        return float(len(rows))

    dataset = tables([run("a")], {"a": {"one": 1.0, "two": 2.0}})
    assert measure(dataset, Selection("number_of_flows", "two"), 1).value == 2


def test_a_parameter_without_a_unit_and_a_name_given_twice_are_refused() -> None:
    with pytest.raises(TypeError, match="'speed' has no source and no suffix; allowed suffixes: _us, _bytes, _bps, _segments"):

        @metric("", "faulty")
        def faulty(rows: FlowRows, speed: float) -> float:
            return speed

    with pytest.raises(TypeError, match="there is a metric 'goodput' already"):
        metric("", "again", name="goodput")(lambda: 0.0)


def test_a_study_brings_metrics_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "metrics.py").write_text(
        "from longfat.metrics.data import FlowRows\n"
        "from longfat.metrics.registry import metric\n\n\n"
        "@metric('flows', 'flows of this study')\n"
        "def own_flows(rows: FlowRows) -> float:\n"
        "    return float(len(rows))\n",
        encoding="utf-8",
    )
    load_own_metrics(tmp_path)
    assert METRICS["own_flows"].unit == "flows"
    load_own_metrics(tmp_path)  # once is enough


def test_a_faulty_file_of_metrics_is_named_and_registers_nothing(tmp_path: Path) -> None:
    before = set(METRICS)
    (tmp_path / "metrics.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    with pytest.raises(StudyError, match=r"own metrics cannot be loaded.*nothing_of_this_name"):
        load_own_metrics(tmp_path)
    assert set(METRICS) == before


def test_the_committed_table_is_what_the_registrations_give() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert page == with_reference(page)
