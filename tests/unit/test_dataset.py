# SPDX-License-Identifier: Apache-2.0
"""The dataset: from lock and raw records to Parquet tables and back."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fabricated_results import bytes_of, change_json, make_results, write_results, write_study

from longfat.dataset import columns
from longfat.dataset.build import DatasetSummary, build_dataset, dataset_digests
from longfat.dataset.load import load_dataset
from longfat.plan import PlannedRun
from longfat.system.errors import RigError


def test_equal_records_give_equal_bytes_whatever_the_wall_clock_or_the_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study, first, second = write_study(tmp_path), tmp_path / "first", Path("run=1/a:b")
    make_results(study, first)
    make_results(study, second)
    assert load_dataset(second).runs == load_dataset(first).runs
    assert bytes_of(first / "dataset") == bytes_of(second / "dataset")
    shutil.rmtree(first / "dataset")
    build_dataset(first)
    assert bytes_of(first / "dataset") == bytes_of(second / "dataset")


def test_a_run_that_was_not_made_is_missing_and_listed_among_the_exclusions(tmp_path: Path) -> None:
    write_results(write_study(tmp_path), tmp_path, omit=lambda run: run.experiment == "one-drop")
    assert build_dataset(tmp_path) == DatasetSummary(ok=8, invalid=0, failed=0, missing=1)
    with (tmp_path / "dataset" / "exclusions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["scenario"], row["status"]) for row in rows] == [("one-drop", "missing")]
    assert "not run yet" in rows[0]["reason"]


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("achieved.json", lambda data: data["interfaces"][0].update(drops="many")),
        ("outcome.json", lambda data: data.update(end_us=1 << 60)),
        ("flows.json", lambda data: data.append(data[0])),
    ],
)
def test_what_was_read_back_of_each_interface_is_a_row_and_what_cannot_be_read_makes_the_run_invalid(
    tmp_path: Path, file: str, change: Callable[[Any], object]
) -> None:
    def bend(run: PlannedRun, folder: Path) -> None:
        if run.experiment == "one-drop":
            change_json(folder / file, change)

    dataset = make_results(write_study(tmp_path), tmp_path, bend).dataset
    good, bad = (next(run for run in dataset.runs if run.status == status) for status in ("ok", "invalid"))
    shaped = next(row for row in dataset.achieved[good.run_id] if row["rate_bps"])
    assert (shaped["interface"], shaped["rate_bps"], shaped["queue_kind"]) == ("client1-eth0", 1_000_000_000, "pfifo")
    assert bad.reason is not None
    assert bad.reason.startswith(f"{file}: ")


def test_a_missing_dataset_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="no dataset yet"):
        load_dataset(tmp_path)
    with pytest.raises(RigError, match="no dataset"):
        dataset_digests(tmp_path)


def test_series_of_a_captured_flow_read_back_in_time_order(tmp_path: Path) -> None:
    dataset = make_results(write_study(tmp_path), tmp_path).dataset
    assert [run.status for run in dataset.runs] == ["ok"] * 9
    run = next(run for run in dataset.runs if run.experiment == "one-drop")
    for read in (dataset.outstanding, dataset.throughput):
        series = read(run.run_id, "stream1")
        assert len(series.t_us) == 100  # one point each RTT of 30 ms in 3 s
        assert (series.t_us[1:] > series.t_us[:-1]).all()
        assert len(read(run.run_id, "stream9").t_us) == 0
    goodput = dataset.flows[run.run_id][0]["goodput_bps"]
    assert series.values[series.t_us < 1_500_000].max() == pytest.approx(goodput / 8, abs=1)


def test_a_factor_of_numbers_and_texts_becomes_a_text_column_and_is_read_back_as_it_was(tmp_path: Path) -> None:
    values = [100, "red", True, 0.5]
    field = columns.runs_schema({"queue": value} for value in values).field("factor_queue")
    stored = [columns.factor_value(value, field.type) for value in values]
    assert stored == ["100", "red", "True", "0.5"]
    pq.write_table(pa.table([stored], pa.schema([field])), tmp_path / "runs.parquet")
    table = pq.read_table(tmp_path / "runs.parquet")
    found = [columns.factors_of(row, table.schema)["queue"] for row in table.to_pylist()]
    assert [(type(value), value) for value in found] == [(type(value), value) for value in values]


def test_the_type_of_a_factor_holds_all_its_values() -> None:
    schema = columns.runs_schema([{"x": 1, "on": True}, {"x": 0.5, "on": False}])
    assert (schema.field("factor_x").type, schema.field("factor_on").type) == ("double", "bool")
