# SPDX-License-Identifier: Apache-2.0
"""VERDICTS.md: that no number in it is another than the evidence's."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidenced import copied, printed, with_evidence

from longfat.evidence.epochs import FOLDER, read_epochs
from longfat.evidence.judged import evidence_of
from longfat.evidence.page import PAGE, verdicts_page
from longfat.evidence.store import EVIDENCE
from longfat.studies import StudyFolder
from longfat.verbs import evidence

ROOT = Path(__file__).parents[2]
STUDIES = sorted(path.parent for path in (ROOT / "experiments").glob(f"*/{EVIDENCE}"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the evidence of a small study."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        with_evidence(root, patch)
    return root


@pytest.fixture
def study(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its study's folder, in a copy."""
    return copied(made, tmp_path, monkeypatch)


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_the_committed_page_is_that_of_the_committed_evidence(folder: Path) -> None:
    found = evidence_of(StudyFolder(folder), read_epochs(ROOT / FOLDER))
    assert found is not None
    assert (folder / PAGE).read_text(encoding="utf-8") == verdicts_page(found), "./just evidence merge writes it anew"


def test_adding_evidence_writes_the_page(study: Path) -> None:
    text = (study / PAGE).read_text(encoding="utf-8")
    assert text.startswith("# Verdicts of small\n")
    for claim in StudyFolder(study).claims:
        assert text.count(f"| `{claim.id}` |") == 1


def test_a_page_says_what_was_measured_and_what_is_allowed(study: Path) -> None:
    (row,) = (line for line in (study / PAGE).read_text(encoding="utf-8").splitlines() if "| `halves` |" in line)
    assert "| A drop halves the window. |" in row
    assert "| 0.5024, allowed 0.475 to 0.525 | 1 |" in row


def test_merging_writes_a_page_that_was_edited_anew(study: Path) -> None:
    before = (study / PAGE).read_text(encoding="utf-8")
    (study / PAGE).write_text(before.replace("0.5", "0.6"), encoding="utf-8")
    printed(lambda console: evidence.merge((), console))
    assert (study / PAGE).read_text(encoding="utf-8") == before
