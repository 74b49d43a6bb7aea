# SPDX-License-Identifier: Apache-2.0
"""A study without a paper: claims and figures may be absent, claims are hypotheses, and nothing counts a paper's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fabricated_results import FIGURES, MANIFEST
from typer.testing import CliRunner

from longfat.cli import app
from longfat.data.study_folder import StudyFolder
from longfat.system.errors import StudyError

OWN = re.sub(r"paper: .*\n", "", MANIFEST)
HYPOTHESES = """\
format: 2
study: small
claims:
  - id: window-limits
    statement: A larger window gives more.
    relation: goodput[delay, window=8 MiB] > goodput[delay, window=1 MiB] for algorithm
"""
EXPECTED = """\
format: 2
study: small
figures:
  - bars: goodput
    title: goodput
    of: goodput[delay]
    x: window in MiB
    series: algorithm
    hypothesis: The link is full.
    marks: [{value: 940, label: rate of the link}]
  - timeseries: one-drop
    title: one drop
    runs: one-drop
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose only study is a study.yaml without a paper."""
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    folder = tmp_path / "experiments" / "small"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(OWN, encoding="utf-8")
    return folder


def call(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    return result.output


def read(study: Path, name: str) -> str:
    """The text of a page of the results, without its markup."""
    page = (study.parents[1] / "results" / name).read_text(encoding="utf-8").split("</style>")[1]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_a_manifest_alone_goes_from_check_to_the_report(study: Path) -> None:
    assert "0 hypotheses" in call("check", "small")
    assert "the study states no hypothesis" in call("reproduce", "small", "--backend", "fake", "--profile", "paper")
    report = read(study, "small/report.html")
    assert "no hypothesis" in report and "no figure" in report
    assert "are defined in" not in report
    assert "paper&#39;s" not in report
    assert "Coverage" not in report
    call("evidence", "reference", "small")
    assert "reference: identical" in call("reproduce", "small", "--backend", "fake", "--profile", "paper")
    call("report")
    assert "9 of 9 0 0 hypotheses" in read(study, "index.html")


def test_its_claims_are_called_hypotheses_and_need_no_paper(study: Path) -> None:
    (study / "claims.yaml").write_text(HYPOTHESES, encoding="utf-8")
    (study / "figures.yaml").write_text(EXPECTED, encoding="utf-8")
    assert "1 hypothesis" in call("check", "small")
    output = call("reproduce", "small", "--backend", "fake", "--profile", "paper")
    assert "1 hypothesis: 1 reproduced" in output
    report = read(study, "small/report.html")
    assert "Hypotheses and verdicts" in report
    assert "goodput: goodput" in report and "The link is full." in report
    assert "one-drop: one drop" in report
    assert "The paper states" not in report
    assert "experiments/small/claims.yaml" in report and "experiments/small/figures.yaml" in report
    assert "2 1 hypothesis" in read(study, "index.html")
    drawn = (study.parents[1] / "results" / "small" / "figures" / "goodput.svg").read_text(encoding="utf-8")
    assert "by hypothesis" in drawn
    assert "stated by the paper" not in drawn


def test_a_source_outside_any_paper_is_shown_as_such(study: Path) -> None:
    text = f"{HYPOTHESES}    paper: {{value: 1 MiB < 8 MiB, where: a textbook}}\n"
    (study / "claims.yaml").write_text(text, encoding="utf-8")
    call("reproduce", "small", "--backend", "fake")
    assert "Source: 1 MiB &lt; 8 MiB (a textbook)" in read(study, "small/report.html")


def test_the_size_of_a_paper_needs_a_paper(study: Path) -> None:
    (study / "figures.yaml").write_text(FIGURES, encoding="utf-8")
    with pytest.raises(StudyError, match="no paper"):
        _ = StudyFolder(study).figures
