# SPDX-License-Identifier: Apache-2.0
"""The front page of the reports: every study with its runs, its coverage and its claims by verdict."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from evidenced import change, file_of
from fabricated_results import judge_study, make_results, write_study

from longfat.data.study_folder import studies_in
from longfat.evidence.baselines import FOLDER, Baseline, read_baselines
from longfat.report.front import write_front


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The original of ``root``."""
    folder = tmp_path_factory.mktemp("made")
    results = folder / "results" / "small"
    make_results(
        write_study(folder, repetitions=6), results, omit=lambda run: run.experiment == "one-drop", reported=True
    )
    return folder


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A checkout with one study, and results of it that are drawn and judged, without runs of one experiment."""
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def page_of(root: Path, baselines: Sequence[Baseline] = ()) -> str:
    return write_front(root / "results", studies_in(root / "experiments"), baselines).read_text(encoding="utf-8")


def sources_of(root: Path, baselines: Sequence[Baseline] = ()) -> list[str]:
    """The lines of all cards about evidence and results."""
    found = re.findall(r"(?s)<li>(.*?)</li>", page_of(root, baselines))
    texts = [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", one)).strip() for one in found]
    return [text for text in texts if "runs valid" in text]


def test_a_study_has_its_runs_its_coverage_and_its_claims_by_verdict(root: Path) -> None:
    assert sources_of(root) == ["results/small: 24 of 30 runs valid, paper, modern, fake"]
    page = page_of(root)
    assert '<a href="small/report.html">' in page
    assert "2 of the paper&#39;s 40 figures and tables" in page
    assert 'aria-label="1 reproduced, 1 undecided"' in page


def test_studies_with_results_come_first_then_the_gallery_with_its_pictures_then_tests(root: Path) -> None:
    for name in ("another", "gallery/path", "_probe"):
        shutil.copytree(root / "experiments" / "small", root / "experiments" / name)
        manifest = root / "experiments" / name / "study.yaml"
        manifest.write_text(manifest.read_text().replace("study: small", f"study: {Path(name).name}"))
    (root / "experiments" / "gallery" / "path" / "picture.png").write_bytes(b"")
    page = page_of(root)
    assert re.findall(r'<li class="panel card" id="(.*?)">', page) == ["small", "another", "path", "_probe"]
    assert 'src="../experiments/gallery/path/picture.png"' in page
    assert 'href="../experiments/gallery/path/study.yaml"' in page
    assert "./just reproduce gallery/path" in page


def test_all_evidence_of_a_study_comes_before_its_results(evidence_study: Path, tmp_path: Path) -> None:
    judge_study(tmp_path / "results" / "small", evidence_study)
    (baseline,) = baselines = read_baselines(tmp_path / FOLDER)
    assert sources_of(tmp_path, baselines) == [
        f"evidence of baseline {baseline.name}: 9 of 9 runs valid, paper, modern, fake",
        "results/small: 9 of 9 runs valid, paper, modern, fake",
    ]


def test_evidence_that_cannot_be_used_is_named_and_the_results_are_shown(evidence_study: Path, tmp_path: Path) -> None:
    judge_study(tmp_path / "results" / "small", evidence_study)
    change(file_of(evidence_study, "delay"), '"format":1', '"format":2')
    page = page_of(tmp_path, read_baselines(tmp_path / FOLDER))
    assert 'id="unread"' in page and "delay.jsonl" in page and "results/small" in page


def test_files_that_cannot_be_read_are_named_and_the_rest_is_shown(root: Path) -> None:
    other = root / "results" / "other"
    other.mkdir()
    (other / "lock.json").write_text("{", encoding="ascii")
    (root / "experiments" / "small" / "figures.yaml").write_text("paper: {artifacts: many, claims: 2}\n")
    page = page_of(root)
    assert f"{other / 'lock.json'}: the lock is damaged" in page
    assert "figures.yaml" in page
    assert "A &lt;small&gt; study" in page


def test_no_name_of_a_folder_is_an_address_of_its_own(root: Path) -> None:
    (root / "results" / "small").rename(root / "results" / "javascript:alert(1)")
    assert '<a href="javascript%3Aalert%281%29/report.html">' in page_of(root)
