# SPDX-License-Identifier: Apache-2.0
"""The dataset: from lock and raw records to Parquet tables and back."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from fabricated_results import bytes_of, change_json, write_results, write_study

from longfat.dataset import columns
from longfat.dataset.build import DatasetSummary, build_dataset, dataset_digests
from longfat.dataset.columns import OF_KERNELS
from longfat.dataset.load import SOCKET_COLUMNS, load_dataset
from longfat.plan import PlannedRun
from longfat.system.errors import RecordError, RigError
from longfat.system.identity import KernelSource


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path)


def test_every_valid_run_is_counted_and_has_its_flows(study: Path, tmp_path: Path) -> None:
    write_results(study, tmp_path)
    assert build_dataset(tmp_path) == DatasetSummary(ok=9, invalid=0, failed=0, missing=0)
    dataset = load_dataset(tmp_path)
    assert all(len(dataset.flows[run.run_id]) == 1 for run in dataset.runs)
    small = next(run for run in dataset.runs if run.factors.get("window") == 1 << 20)
    # The fake's truth: the window of 1 MiB over 30 ms.
    assert dataset.flows[small.run_id][0]["goodput_bps"] == pytest.approx((1 << 20) * 8 / 0.030, rel=1e-4)


def test_the_tables_have_exactly_the_declared_columns(study: Path, tmp_path: Path) -> None:
    write_results(study, tmp_path)
    build_dataset(tmp_path)
    schemas = {
        "flows": columns.FLOWS,
        "achieved": columns.ACHIEVED,
        "sockets": columns.SOCKETS,
        "queues": columns.QUEUES,
        "outstanding": columns.OUTSTANDING,
        "throughput": columns.THROUGHPUT,
    }
    for name, schema in schemas.items():
        assert pq.read_schema(tmp_path / "dataset" / f"{name}.parquet").equals(schema), name
    runs = pq.read_schema(tmp_path / "dataset" / "runs.parquet")
    assert runs.names[-2:] == ["factor_algorithm", "factor_window"]
    assert runs.field("factor_window").type == "int64"


def test_equal_records_give_equal_bytes_whatever_the_wall_clock_said(study: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_results(study, first)
    write_results(study, second)
    build_dataset(first)
    build_dataset(second)
    assert bytes_of(first / "dataset") == bytes_of(second / "dataset")
    shutil.rmtree(first / "dataset")
    build_dataset(first)
    assert bytes_of(first / "dataset") == bytes_of(second / "dataset")


def test_a_run_that_was_not_made_is_missing_and_listed_among_the_exclusions(study: Path, tmp_path: Path) -> None:
    write_results(study, tmp_path, omit=lambda run: run.experiment == "one-drop")
    assert build_dataset(tmp_path) == DatasetSummary(ok=8, invalid=0, failed=0, missing=1)
    with (tmp_path / "dataset" / "exclusions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["scenario"], row["status"]) for row in rows] == [("one-drop", "missing")]
    assert "not run yet" in rows[0]["reason"]


def test_a_run_with_a_wrong_rate_is_invalid_but_its_flows_are_kept(study: Path, tmp_path: Path) -> None:
    def bend(run: PlannedRun, folder: Path) -> None:
        if run.experiment == "one-drop":
            change_json(folder / "achieved.json", lambda data: data["interfaces"][0].update(rate_bps=9))

    write_results(study, tmp_path, bend)
    assert build_dataset(tmp_path) == DatasetSummary(ok=8, invalid=1, failed=0, missing=0)
    dataset = load_dataset(tmp_path)
    bad = next(run for run in dataset.runs if run.status == "invalid")
    assert bad.reason == "rate_bps of client1-eth0 is 9 bit/s, declared 1000000000 bit/s"
    assert bad.run_id in dataset.flows


def test_what_was_read_back_of_each_interface_is_a_row_and_what_cannot_be_read_makes_the_run_invalid(
    study: Path, tmp_path: Path
) -> None:
    def bend(run: PlannedRun, folder: Path) -> None:
        if run.experiment == "one-drop":
            change_json(folder / "achieved.json", lambda data: data["interfaces"][0].update(drops="many"))

    write_results(study, tmp_path, bend)
    build_dataset(tmp_path)
    dataset = load_dataset(tmp_path)
    good, bad = (next(run for run in dataset.runs if run.status == status) for status in ("ok", "invalid"))
    shaped = [row for row in dataset.achieved[good.run_id] if row["rate_bps"]]
    assert next((row["interface"], row["rate_bps"], row["queue_kind"]) for row in shaped) == (
        "client1-eth0",
        1_000_000_000,
        "pfifo",
    )
    assert bad.reason is not None
    assert bad.reason.startswith("achieved.json: ")


def test_a_file_of_another_shape_makes_the_run_invalid_and_is_named(study: Path, tmp_path: Path) -> None:
    def bend(run: PlannedRun, folder: Path) -> None:
        if run.experiment == "one-drop":
            (folder / "sockets.csv").write_text("t_us,flow\n1,stream1\n", encoding="utf-8")

    write_results(study, tmp_path, bend)
    assert build_dataset(tmp_path).invalid == 1
    bad = next(run for run in load_dataset(tmp_path).runs if run.status == "invalid")
    assert bad.reason is not None
    assert bad.reason.startswith("sockets.csv: ")


def test_a_damaged_record_counts_as_missing(study: Path, tmp_path: Path) -> None:
    write_results(study, tmp_path)
    victim = next((tmp_path / "raw").glob("one-drop*"))
    (victim / "flows.json").write_text("[]", encoding="utf-8")
    assert build_dataset(tmp_path) == DatasetSummary(ok=8, invalid=0, failed=0, missing=1)


def test_two_entries_with_one_run_id_share_rows_but_are_two_runs(study: Path, tmp_path: Path) -> None:
    text = (study / "study.yaml").read_text(encoding="utf-8")
    start = text.index("  - id: one-drop")
    (study / "study.yaml").write_text(
        text + text[start:].replace("one-drop", "again").replace("fig-2", "fig-3"), encoding="utf-8"
    )
    write_results(study, tmp_path, omit=lambda run: run.experiment == "again")
    build_dataset(tmp_path)
    dataset = load_dataset(tmp_path)
    twins = [run for run in dataset.runs if run.experiment in ("one-drop", "again")]
    if twins[0].run_id == twins[1].run_id:
        assert len(dataset.flows[twins[0].run_id]) == 1
        assert [run.status for run in twins] == ["ok", "ok"]
    else:
        assert sorted(run.status for run in twins) == ["missing", "ok"]


def test_runs_in_which_the_same_was_measured_are_told_by_their_digests(study: Path, tmp_path: Path) -> None:
    def bend(run: PlannedRun, folder: Path) -> None:
        if run.experiment == "one-drop":
            return
        # As if the jitter had moved nothing in the first scenario; a program's text differs all the same.
        (folder / "iperf" / "stream1.client.txt").write_text(f"port {run.spec.seed}")
        if run.factors == {"algorithm": "standard", "window": 1 << 20}:
            for name in ("flows.json", "sockets.csv", "queues.csv", "counters.json"):
                (folder / name).write_text("[]" if name.endswith("json") else "t_us\n")

    write_results(study, tmp_path, bend, omit=lambda run: run.experiment == "one-drop")
    build_dataset(tmp_path)
    runs = load_dataset(tmp_path).runs
    found = {(run.scenario, run.repetition): run.measured for run in runs if run.experiment == "delay"}
    same = {found["delay.algorithm-standard.window-1mib", k] for k in (1, 2)}
    assert len(same) == 1
    assert len(set(found.values())) == len(found) - 1
    assert [run.measured for run in runs if run.experiment == "one-drop"] == [None]


@pytest.mark.parametrize("kernel", [KernelSource("6.12.117", True), KernelSource("6.12.999", False), None])
def test_runs_say_what_their_kernel_was_built_of(study: Path, tmp_path: Path, kernel: KernelSource | None) -> None:
    write_results(study, tmp_path, omit=lambda run: True, kernel=kernel)
    build_dataset(tmp_path)
    runs = pq.read_table(tmp_path / "dataset" / "runs.parquet")
    assert set(runs["kernel_version"].to_pylist()) == {kernel and kernel.version}
    assert set(runs["kernel_pinned"].to_pylist()) == {kernel and kernel.pinned}
    assert set(runs["kernel_sha256"].to_pylist()) == {kernel and "none"}


def test_a_missing_dataset_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="the dataset cannot be read"):
        load_dataset(tmp_path)
    with pytest.raises(RigError, match="no dataset"):
        dataset_digests(tmp_path)


def test_a_truncated_table_is_a_clear_error(study: Path, tmp_path: Path) -> None:
    write_results(study, tmp_path)
    build_dataset(tmp_path)
    path = tmp_path / "dataset" / "runs.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RecordError, match=re.escape(f"{path} (changed)")):
        load_dataset(tmp_path)


def test_series_of_a_captured_flow_read_back_in_time_order(study: Path, tmp_path: Path) -> None:
    write_results(study, tmp_path)
    build_dataset(tmp_path)
    dataset = load_dataset(tmp_path)
    run = next(run for run in dataset.runs if run.experiment == "one-drop")
    for read in (dataset.outstanding, dataset.throughput):
        series = read(run.run_id, "stream1")
        assert len(series.t_us) == 100  # one point each RTT of 30 ms in 3 s
        assert (series.t_us[1:] > series.t_us[:-1]).all()
        assert len(read(run.run_id, "stream9").t_us) == 0
    # Before the drop the flow sends at its goodput.
    goodput = dataset.flows[run.run_id][0]["goodput_bps"]
    assert series.values[series.t_us < 1_500_000].max() == pytest.approx(goodput / 8, abs=1)


def test_samples_of_sockets_read_back_by_column(study: Path, tmp_path: Path) -> None:
    write_results(study, tmp_path)
    build_dataset(tmp_path)
    dataset = load_dataset(tmp_path)
    run = next(run for run in dataset.runs if run.experiment == "one-drop")
    samples = dataset.sockets(run.run_id)
    assert tuple(samples) == SOCKET_COLUMNS
    assert samples["t_us"].tolist() == list(range(0, 3_000_000, 100_000))
    assert set(samples["flow"]) == {"stream1"}
    whole = [name for name in SOCKET_COLUMNS if name not in ("flow", "dwnd_segments")]
    assert {samples[name].dtype.name for name in whole} == {"int64"}
    assert np.isnan(samples["dwnd_segments"]).all()  # Reno has no delay part
    assert set(samples["ca_state"]) == {0}
    assert samples["cwnd_segments"].min() > 0
    assert samples["bytes_acked"][-1] > samples["bytes_acked"][1] > 0
    assert len(dataset.sockets(run.run_id, "stream1")["t_us"]) == 30
    assert len(dataset.sockets(run.run_id, "stream9")["t_us"]) == 0


def test_the_delay_window_of_an_algorithm_without_one_is_null(study: Path, tmp_path: Path) -> None:
    text = (study / "study.yaml").read_text(encoding="utf-8")
    (study / "study.yaml").write_text(text.replace("highspeed", "compound"), encoding="utf-8")
    write_results(study, tmp_path)
    assert build_dataset(tmp_path).ok == 9
    algorithms = {run.run_id: run.factors.get("algorithm") for run in load_dataset(tmp_path).runs}
    rows = pq.read_table(tmp_path / "dataset" / "sockets.parquet").to_pylist()
    compound = {row["dwnd_segments"] for row in rows if algorithms[row["run_id"]] == "compound"}
    others = {row["dwnd_segments"] for row in rows if algorithms[row["run_id"]] != "compound"}
    assert (compound, others) == ({0}, {None})


def with_columns_of_kernels(_run: PlannedRun, folder: Path) -> None:
    """From 1 s to 2 s the application gives nothing: the kernel's busy time stands still."""
    path = folder / "sockets.csv"
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    times = [int(row.split(",")[0]) for row in rows]
    busy = [min(t, 1_000_000) + max(0, t - 2_000_000) for t in times]
    head += "," + ",".join(OF_KERNELS[:-1])
    rows = [f"{row},,8000,0,{us},0,0,0,65535,0,0,0" for row, us in zip(rows, busy, strict=True)]
    path.write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    (folder / "cca_state.csv").write_text("t_us,flow,stream,name,value\n5,stream1,0,alpha,0.25\n", encoding="utf-8")


def test_the_time_that_the_application_limits_is_what_the_kernel_was_not_busy(study: Path, tmp_path: Path) -> None:
    write_results(study, tmp_path, bend=with_columns_of_kernels)
    assert build_dataset(tmp_path).ok == 9
    rows = pq.read_table(tmp_path / "dataset" / "sockets.parquet").to_pylist()
    limited = {row["t_us"]: row["app_limited_us"] for row in rows}
    assert [limited[t_us] for t_us in (900_000, 1_500_000, 2_900_000)] == [0, 500_000, 1_000_000]
    assert {(row["pacing_bps"], row["delivery_bps"]) for row in rows} == {(None, 8000)}
    states = pq.read_table(tmp_path / "dataset" / "cca_state.parquet").to_pylist()
    assert {(row["name"], row["value"]) for row in states} == {("alpha", 0.25)}


def test_a_simulator_has_no_columns_of_kernels_and_no_state(study: Path, tmp_path: Path) -> None:
    write_results(study, tmp_path)
    build_dataset(tmp_path)
    table = pq.read_table(tmp_path / "dataset" / "sockets.parquet")
    assert all(table[name].null_count == table.num_rows > 0 for name in OF_KERNELS)
    assert pq.read_table(tmp_path / "dataset" / "cca_state.parquet").num_rows == 0


def test_a_factor_of_numbers_and_texts_becomes_a_text_column() -> None:
    schema = columns.runs_schema([{"queue": 100, "on": True}, {"queue": "red", "on": False}])
    assert schema.field("factor_queue").type == "string"
    assert schema.field("factor_on").type == "bool"
    assert columns.factor_value(100, schema.field("factor_queue").type) == "100"
    assert columns.runs_schema([{"x": 1}, {"x": 0.5}]).field("factor_x").type == "double"
