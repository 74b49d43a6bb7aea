# SPDX-License-Identifier: Apache-2.0
"""Checksums from raw records to report: a file changed after it was made is refused by name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evidenced import change
from fabricated_results import CLAIMS, MANIFEST, make_results, write_study
from tiny_study import call


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a study and its results, reported."""
    root = tmp_path_factory.mktemp("whole")
    make_results(write_study(root), root / "results" / "small", reported=True)
    return root


@pytest.fixture
def results(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of them."""
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path / "copy"))
    return shutil.copytree(whole, tmp_path / "copy", symlinks=True) / "results" / "small"


def edit_goodput(path: Path) -> None:
    """Say that every flow had 1 Mbit/s."""
    table = pq.read_table(path)
    place = table.schema.get_field_index("goodput_bps")
    pq.write_table(table.set_column(place, "goodput_bps", pa.array([1e6] * len(table))), path)


def edit_verdict(path: Path) -> None:
    change(path, '"verdict": "reproduced"', '"verdict": "not reproduced"')


def edit_text(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


OF_RUNS = {"dataset/flows.parquet": edit_goodput, "dataset/counters.parquet": Path.unlink}
OF_CLAIMS = {"verdicts.json": edit_verdict, "figures/fig-1.csv": edit_text, "claims-first.json": edit_text}


@pytest.mark.parametrize("edits", [OF_RUNS, OF_CLAIMS])
def test_a_package_refuses_an_edited_file_by_name_and_report_rebuilds_it(
    results: Path, edits: Mapping[str, Callable[[Path], None]]
) -> None:
    for file, edit in edits.items():
        content = (results / file).read_bytes()
        edit(results / file)
        refused = call("package", "small")
        assert refused.exit_code == 3, refused.output
        assert f"{results / file} (" in refused.stderr
        assert "`./just report STUDY`" in refused.stderr
        (results / file).write_bytes(content)
    for file, edit in edits.items():
        edit(results / file)
    assert call("report", "small").exit_code == 0
    assert call("package", "small").exit_code == 0


@pytest.mark.parametrize(("file", "text", "then"), [("claims.yaml", CLAIMS, 0), ("study.yaml", MANIFEST, 2)])
def test_no_package_is_made_from_verdicts_and_figures_of_another_study_file(
    results: Path, file: str, text: str, then: int
) -> None:
    path = results.parents[1] / "experiments/small" / file
    path.write_text(text + "# another\n", encoding="utf-8")
    refused = call("package", "small")
    assert (refused.exit_code, f"{path} (changed)" in refused.stderr) == (3, True), refused.output
    assert call("report", "small").exit_code == 0
    assert call("package", "small").exit_code == then, "of another manifest are the runs, too"


def test_an_edited_lock_makes_no_dataset(results: Path) -> None:
    lock = results / "lock.json"
    change(lock, '"window":1048576', '"window":1048577')
    refused = call("report", "small")
    assert (refused.exit_code, f"{lock} (changed)" in refused.stderr) == (3, True)


def test_a_dataset_can_be_judged_without_raw_records(results: Path) -> None:
    before = (results / "verdicts.json").read_bytes()
    shutil.rmtree(results / "raw")
    assert call("report", "small").exit_code == 0
    assert (results / "verdicts.json").read_bytes() == before


def test_an_edited_report_is_named_on_the_front_page_and_not_linked(results: Path) -> None:
    front = results.parent / "index.html"
    assert call("report").exit_code == 0
    assert 'href="small/report.html"' in front.read_text(encoding="utf-8")
    edit_text(results / "report.html")
    assert call("report").exit_code == 0
    page = front.read_text(encoding="utf-8")
    assert 'href="small/report.html"' not in page
    assert f"{results / 'report.html'} (changed)" in page


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"format": 1, "results": 7, "study": {}}', "[" * 9999])
def test_checksums_that_cannot_be_read_is_refused(results: Path, text: str) -> None:
    (results / "checksums/dataset.json").write_text(text, encoding="ascii")
    refused = call("package", "small")
    assert refused.exit_code == 3, refused.output
    assert f"{results}/checksums/dataset.json: the checksums cannot be read" in refused.stderr
