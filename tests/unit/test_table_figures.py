# SPDX-License-Identifier: Apache-2.0
"""Tables of figures.yaml from CSV files, and curves from the samples of sockets: acknowledged rate and windows."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from fabricated_results import DRAWN, EXACT, MANIFEST, make_results, write_study
from manifests import refused
from tables_in_memory import run, tables

from longfat.data.opened import OpenedStudy
from longfat.data.study_folder import StudyFolder
from longfat.figures.base import Sources
from longfat.figures.timeseries import TimeSeries
from longfat.relations.evaluate import Grounds

FIGURES = """\
format: 2
study: small
figures:
  - table: written
    title: as it is
    file: rates.csv
    paper: three rates
  - table: filled
    title: a row for each
    file: rates.csv
    columns:
      by: "${algorithm}, ${rate} Mb/s"
      window: {of: "path_segments(rate=${rate} Mbit/s, rtt=30 ms, size=1500 B)", digits: 0}
      goodput: {of: "goodput[delay, ${algorithm}]", digits: 0}
      share: {of: "share[delay, ${algorithm}, flow=stream1]"}
    rows: [[elsewhere, 7, {of: "goodput[delay, highspeed]", digits: 0}, 8]]
    paper: two algorithms
  - cells: compared
    title: with the paper's
    file: cells.csv
    of: goodput[delay, ${algorithm}]
    rows: "${algorithm}"
    heading: TCP
    columns: "${cell} by table 1"
    paper: as there
  - {timeseries: rates, title: acknowledged rate of a flow, runs: one-drop, what: acknowledged_rate, interval: 100 ms,
     flows: {stream1: Standard TCP}, paper: no number stated}
  - {timeseries: windows, title: windows of one flow, runs: "delay, window=8 MiB", what: cwnd, also: [ssthresh, dwnd],
     panels: algorithm, paper: no number stated}
"""
FILES = {
    "rates.csv": "algorithm,rate\nstandard,10\nhighspeed,100\n,1000\n",
    "cells.csv": "claim,algorithm,cell,value\none,standard,Mb/s,280\n",
}


def write(folder: Path, figures: str = FIGURES, **files: str) -> Path:
    study = write_study(folder, "format: 2\nstudy: small\nclaims: []\n", figures)
    manifest = MANIFEST.replace(EXACT, DRAWN).replace("cca: highspeed", "cca: compound")
    (study / "study.yaml").write_text(manifest, encoding="utf-8")
    for name, text in {**FILES, **{f"{name}.csv": text for name, text in files.items()}}.items():
        (study / name).write_text(text, encoding="utf-8")
    return study


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedStudy:
    folder = tmp_path_factory.mktemp("tables")
    return make_results(write(folder), folder)


def test_a_file_alone_is_the_table(opened: OpenedStudy) -> None:
    data = opened.show("written").data
    assert data.columns == ("algorithm", "rate")
    assert data.rows == (("standard", "10"), ("highspeed", "100"), ("", "1000"))


def test_each_row_of_the_file_fills_the_templates_of_the_headings(opened: OpenedStudy) -> None:
    data = opened.show("filled").data
    assert data.columns == ("by", "window", "goodput", "share")
    assert [row[0] for row in data.rows] == ["standard, 10 Mb/s", "highspeed, 100 Mb/s", ", 1000 Mb/s", "elsewhere"]
    assert [row[1] for row in data.rows[:3]] == ["25", "250", "2500"]
    assert data.rows[1][2] == data.rows[3][2]
    assert data.rows[2][2] == "-", "an expression without its field"
    assert data.rows[0][3] == "median 100.0 (n = 2)"


def test_a_table_of_the_paper_has_names_from_its_cells(opened: OpenedStudy) -> None:
    data = opened.show("compared").data
    assert data.columns == ("TCP", "Mb/s by table 1", "paper")
    assert (data.rows[0][0], data.rows[0][2]) == ("standard", "280")


def test_the_acknowledged_rate_is_a_mean_over_each_interval(opened: OpenedStudy) -> None:
    drawing = opened.show("rates")
    assert drawing.data.columns == ("scenario", "repetition", "run_id", "flow", "t_s", "acknowledged_mbps")
    # The last of thirty intervals is left out: the socket was not sampled up to its end.
    assert [row[4] for row in drawing.data.rows] == pytest.approx([0.05 + 0.1 * place for place in range(29)])
    assert 0 < max(row[-1] for row in drawing.data.rows) < 1000


def test_each_window_has_its_curve_and_only_compound_has_a_delay_window(opened: OpenedStudy) -> None:
    drawing = opened.show("windows")
    assert drawing.data.columns[3:] == ("algorithm", "window", "t_s", "segments")
    found = {(row[3], row[4]) for row in drawing.data.rows}
    assert {("standard", "cwnd"), ("highspeed", "cwnd"), ("highspeed", "dwnd")} <= found
    assert ("standard", "dwnd") not in found
    names = {text.get_text() for text in drawing.figure.legends[0].get_texts()}
    assert {"congestion window", "delay window"} <= names


@pytest.mark.parametrize("flow", ["", ", flow=stream1"])
def test_the_sample_of_a_closing_socket_is_not_drawn(opened: OpenedStudy, flow: str) -> None:
    samples = [(k * 1_000_000, "stream1", 0, 0, 100, 50, 0) for k in range(1, 11)]
    closed = dataclasses.replace(run("a", algorithm="standard", window=8 << 20), experiment="delay")
    dataset = tables([closed], {"a": {"stream1": 100.0}}, {"a": [*samples, (10_400_000, "stream1", 0, 0, 2, 2, 0)]})
    figure = TimeSeries(timeseries="one", title="t", paper="none", runs=f"delay{flow}", what="cwnd")
    rows = figure.data(Sources(Grounds(opened.folder.study, dataset), opened.plan)).rows
    assert [row[-2:] for row in rows] == [(float(k), 100.0) for k in range(1, 11)]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("file: rates.csv\n    paper", "file: rats.csv\n    paper", "figures[0].file"),
        ('delay, ${algorithm}]"', 'delay, ${rate}]"', "figures[1].columns.goodput.of"),
        ("[[elsewhere, 7,", "[[elsewhere,", "figures[1].rows[0]"),
        ("    file: rates.csv\n    paper", "    columns: [a]\n    paper", "figures[0].table"),
        ("rates.csv\n    paper", "rates.csv\n    columns: [a]\n    paper", "figures[0].columns"),
    ],
)
def test_a_faulty_table_is_refused_with_its_place(tmp_path: Path, old: str, new: str, key: str) -> None:
    assert old in FIGURES
    faulty = StudyFolder(write(tmp_path, FIGURES.replace(old, new)))
    assert key in {problem.key for problem in refused(lambda: faulty.figures)}


@pytest.mark.parametrize(
    "text", ["", "algorithm,rate\n", "algorithm,rate,rate\nstandard,1,1\n", "algorithm,rate\nstandard\n"]
)
def test_a_faulty_file_is_refused(tmp_path: Path, text: str) -> None:
    faulty = StudyFolder(write(tmp_path, rates=text))
    assert "figures[0].file" in {problem.key for problem in refused(lambda: faulty.figures)}
