# SPDX-License-Identifier: Apache-2.0
"""Tables of figures.yaml: what a CSV file shows as it is, filled into expressions, and beside further rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import write_results, write_study

from longfat.data.opened import OpenedStudy
from longfat.dataset.build import build_dataset
from longfat.errors import StudyError
from longfat.studies import StudyFolder

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
      window: {of: "window_of_path(rate=${rate} Mbit/s, rtt=30 ms, mtu=1500 B)", digits: 0}
      goodput: {of: "goodput[delay, ${algorithm}]", digits: 0}
    rows: [[elsewhere, 7, {of: "goodput[delay, highspeed]", digits: 0}]]
    paper: two algorithms
  - table: other
    like: filled
    title: another file
    file: others.csv
    paper: one algorithm
  - cells: beside
    title: with the paper's
    file: cells.csv
    of: goodput[delay, ${algorithm}]
    rows: "${algorithm}"
    heading: TCP
    columns: "${cell} by table 1"
    paper: as there
"""
FILES = {
    "rates.csv": "algorithm,rate\nstandard,10\nhighspeed,100\n,1000\n",
    "others.csv": "algorithm,rate\nhighspeed,20\n",
    "cells.csv": "claim,algorithm,cell,value\none,standard,Mb/s,280\n",
}


def write(folder: Path, figures: str = FIGURES, **files: str) -> Path:
    study = write_study(folder, "format: 2\nstudy: small\nclaims: []\n", figures)
    for name, text in {**FILES, **{f"{name}.csv": text for name, text in files.items()}}.items():
        (study / name).write_text(text, encoding="utf-8")
    return study


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedStudy:
    folder = tmp_path_factory.mktemp("tables")
    study = write(folder)
    write_results(study, folder)
    build_dataset(folder)
    return OpenedStudy(folder, StudyFolder(study))


def test_a_file_alone_is_the_table(opened: OpenedStudy) -> None:
    data = opened.show("written").data
    assert data.columns == ("algorithm", "rate")
    assert data.rows == (("standard", "10"), ("highspeed", "100"), ("", "1000"))


def test_each_row_of_the_file_fills_what_stands_below_the_headings(opened: OpenedStudy) -> None:
    data = opened.show("filled").data
    assert data.columns == ("by", "window", "goodput")
    assert [row[0] for row in data.rows] == ["standard, 10 Mb/s", "highspeed, 100 Mb/s", ", 1000 Mb/s", "elsewhere"]
    assert [row[1] for row in data.rows[:3]] == ["25", "250", "2500"]
    assert data.rows[1][2] == data.rows[3][2]
    assert "(n = 2)" in str(data.rows[1][2])


def test_an_expression_without_its_field_is_a_dash(opened: OpenedStudy) -> None:
    assert opened.show("filled").data.rows[2][2] == "-"


def test_a_table_like_another_has_its_columns_and_a_file_of_its_own(opened: OpenedStudy) -> None:
    data = opened.show("other").data
    assert [row[:2] for row in data.rows] == [("highspeed, 20 Mb/s", "50"), ("elsewhere", 7)]


def test_a_papers_table_is_named_by_what_its_cells_have(opened: OpenedStudy) -> None:
    data = opened.show("beside").data
    assert data.columns == ("TCP", "Mb/s by table 1", "paper")
    assert (data.rows[0][0], data.rows[0][2]) == ("standard", "280")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("file: rates.csv\n    paper", "file: rats.csv\n    paper", "figures[0].file: rats.csv cannot be read"),
        ("${algorithm}, ${rate}", "${tcp}", "figures[1].columns.by: the table has no column 'tcp'; it has algorithm"),
        ('delay, ${algorithm}]"', 'delay, ${rate}]"', "figures[1].columns.goodput.of: rates.csv, line 2: column 16"),
        ("[[elsewhere, 7,", "[[elsewhere,", "figures[1].rows[0]: has 2 cells, the table has 3 columns"),
        ("    file: rates.csv\n    paper", "    paper", "figures[0].columns: without `file` it has to be a list"),
        ("    file: rates.csv\n    paper", "    columns: [a]\n    paper", "figures[0].table: needs `rows`, or a "),
        ("rates.csv\n    paper", "rates.csv\n    columns: [a]\n    paper", "needs what stands below it, as HEADING"),
    ],
)
def test_a_faulty_table_is_refused_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FIGURES
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(write(tmp_path, FIGURES.replace(old, new))).figures
    assert message in str(caught.value)
    assert "figures.yaml:" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "rates.csv has no row below its headings"),
        ("algorithm,rate\n", "rates.csv has no row below its headings"),
        ("algorithm,rate,rate\nstandard,1,1\n", "rates.csv has two columns 'rate'; names are unique"),
        ("algorithm,rate\nstandard\n", "rates.csv, line 2: 2 columns are named, the row has others"),
    ],
)
def test_a_faulty_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(write(tmp_path, rates=text)).figures
    assert message in str(caught.value)
