# SPDX-License-Identifier: Apache-2.0
"""A study's results as frames, and the description of its dataset."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from fabricated_results import make_results, write_study
from frictionless import Package

import longfat
from longfat.data.opened import RESULTS_VARIABLE, STUDY_VARIABLE, OpenedStudy, open_study
from longfat.dataset.columns import SCHEMAS
from longfat.plan.model import PlannedRun

NO_THRESHOLD = 0x7FFFFFFF


def first_sample(run: PlannedRun, folder: Path) -> None:
    """Before the first sample the kernel has measured nothing, and has cut nothing."""
    path = folder / "sockets.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0] |= {"ssthresh_segments": str(NO_THRESHOLD), "srtt_us": "0", "min_rtt_us": str(0xFFFFFFFF)}
    rows[0] |= {"state": "2", "ca_state": "0"}
    if run.experiment == "delay":
        rows = [row | {"min_rtt_us": str(0xFFFFFFFF)} for row in rows]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> OpenedStudy:
    folder = tmp_path_factory.mktemp("data")
    return make_results(write_study(folder), folder, bend=first_sample, judged=True)


def test_a_study_is_opened_by_name_from_the_folders_that_are_given_or_found(
    study: OpenedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study.folder.path)
    assert open_study("small").folder.path == study.folder.path
    assert open_study("small").results == study.folder.path.parents[1] / "results" / "small"
    monkeypatch.setenv(RESULTS_VARIABLE, str(study.results))
    monkeypatch.setenv(STUDY_VARIABLE, str(study.folder.path))
    assert open_study("small").frame("runs").height == study.frame("runs").height


@pytest.mark.parametrize("name", ["r[1]", "r*?", "a b"])
def test_a_results_folder_of_any_name_is_read(study: OpenedStudy, tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(study.results)
    assert OpenedStudy(tmp_path / name, study.folder).frame("flows").equals(study.frame("flows"))


def test_every_row_has_the_factors_of_its_run_and_only_those_of_the_experiment(study: OpenedStudy) -> None:
    flows = study.frame("flows", "delay")
    assert set(flows["experiment"]) == {"delay"}
    assert set(flows["factor_window"]) == {1 << 20, 8 << 20}
    assert not [name for name in study.frame("flows", "one-drop").columns if name.startswith("factor_")]
    assert study.frame("flows").height == flows.height + study.frame("flows", "one-drop").height


def test_what_the_kernel_does_not_know_is_null_and_its_states_have_names(study: OpenedStudy) -> None:
    first = study.frame("sockets").group_by("run_id", maintain_order=True).first().row(0, named=True)
    assert (first["ssthresh_segments"], first["srtt_us"], first["min_rtt_us"]) == (None, None, None)
    assert (first["state"], first["ca_state"]) == ("syn-sent", "open")
    assert study.frame("sockets")["ssthresh_segments"].max() < NO_THRESHOLD


def test_each_comparison_of_a_claim_is_a_row_with_its_numbers(study: OpenedStudy) -> None:
    rows = study.frame("verdicts")
    assert set(rows["claim"]) == {"window-limits", "halves"}
    halves = rows.row(by_predicate=pl.col("claim") == "halves", named=True)
    assert halves["measured"] == pytest.approx(0.5, rel=0.05)
    assert halves["allowed"] and halves["comparison"] == 1


@pytest.mark.parametrize("table", [*SCHEMAS, "verdicts"])
def test_every_column_of_a_frame_has_a_meaning_and_a_factor_has_its_unit(study: OpenedStudy, table: str) -> None:
    found = study.columns(table)
    assert found["column"].to_list() == study.frame(table).columns
    assert found["meaning"].str.len_chars().min() > 0
    if "factor_window" in found["column"]:
        units = dict(zip(found["column"], found["unit"], strict=True))
        assert (units["factor_window"], units["factor_algorithm"]) == ("bytes", "")


def test_the_dataset_is_a_valid_data_package_of_all_its_tables(study: OpenedStudy) -> None:
    path = study.results / "dataset" / "datapackage.json"
    package = Package(str(path))
    assert {one.name for one in package.resources} == set(SCHEMAS)
    assert not list(Package.metadata_validate(json.loads(path.read_text(encoding="ascii"))))
    for one in package.resources:
        content = (path.parent / str(one.path)).read_bytes()
        assert (one.bytes, one.hash) == (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")
        assert one.schema.field_names == pl.read_parquet_schema(path.parent / str(one.path)).names()


def test_an_interrupt_ends_what_waits_also_where_frames_were_imported() -> None:
    code = f"""
import os, subprocess, threading, longfat.data.frames
threading.Timer(0.5, os.kill, (os.getpid(), {signal.SIGINT.value})).start()
subprocess.run(["sleep", "60"])
"""
    environment = os.environ | {"PYTHONPATH": str(Path(longfat.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=30)
    assert "KeyboardInterrupt" in done.stderr
