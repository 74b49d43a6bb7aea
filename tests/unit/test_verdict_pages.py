# SPDX-License-Identifier: Apache-2.0
"""VERDICTS.md, README.md and docs/findings.md: that no number in them is another than the evidence's."""

from __future__ import annotations

import fnmatch
import functools
import re
from pathlib import Path

import pytest
from evidenced import printed
from rich.console import Console

from longfat.cli import evidence
from longfat.cli.rows import evidenced_papers
from longfat.cli.verdicts import verdicts
from longfat.data.study_folder import HEADLINES, NOTES, README, SIMULATED, StudyFolder
from longfat.evidence.baselines import FOLDER, read_baselines
from longfat.evidence.judged import Evidenced, evidence_of, without_runs
from longfat.evidence.store import EVIDENCE
from longfat.report.findings import MODERN
from longfat.report.forest import by_section, forest
from longfat.report.markdown import (
    BEGIN,
    END,
    FINDINGS,
    PAGE,
    between,
    findings_page,
    renewed,
    studies_table,
    verdicts_page,
)
from longfat.report.readme import quoted
from longfat.system.errors import StudyError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
STUDIES = sorted(path.parent for path in (ROOT / "experiments").glob(f"*/{EVIDENCE}"))
PAGES = sorted({*STUDIES, *(path.parent for path in (ROOT / "experiments").glob(f"*/{HEADLINES}"))})


@functools.cache
def papers() -> list[Evidenced]:
    return evidenced_papers(Console())


@functools.cache
def evidence_in(folder: Path) -> Evidenced:
    known = read_baselines(ROOT / FOLDER)
    paper = next((one for one in papers() if one.folder.name == folder.name), None)
    return paper or evidence_of(StudyFolder(folder), known) or without_runs(StudyFolder(folder), known[-1].name)


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_the_committed_page_is_that_of_the_committed_evidence(folder: Path) -> None:
    found = evidence_in(folder)
    assert (folder / PAGE).read_text(encoding="utf-8") == verdicts_page(found), "./just evidence merge writes it anew"


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_each_decided_claim_is_counted_with_the_profile_of_its_runs(folder: Path) -> None:
    row = evidence_in(folder).counts["measured"]
    decided = sum(row[word] for word in ("reproduced", "not reproduced", "compatible"))
    assert sum(evidence_in(folder).decided_by.values()) == decided


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_the_sign_of_a_claim_agrees_with_the_band_in_its_picture(folder: Path) -> None:
    found = evidence_in(folder)
    for row in (row for part in forest(by_section(one.verdict for one in found.judged)) for row in part.rows):
        if row.dot is not None and row.band is not None:
            near = row.band[0] <= row.dot <= row.band[1]  # an end of the band may belong to it or not
            inside = near and row.dot not in row.band
            assert near or row.word != "reproduced", row
            assert not inside or row.word != "not reproduced", row


@pytest.mark.parametrize("folder", PAGES, ids=lambda folder: folder.name)
def test_readme_and_notes_have_the_numbers_of_the_committed_evidence(folder: Path) -> None:
    found = evidence_in(folder)
    others = read_baselines(ROOT / FOLDER)
    today = evidence_of(StudyFolder(folder), others, stack=MODERN) if found.stack != MODERN else None
    for page in (folder / name for name in (README, NOTES) if (folder / name).exists()):
        text = page.read_text(encoding="utf-8")
        assert text == renewed(text, found, today, page.name), "./just evidence merge writes it again"


def test_the_pages_over_all_studies_are_those_of_the_committed_evidence() -> None:
    findings, readme = ((ROOT / page).read_text(encoding="utf-8") for page in (FINDINGS, README))
    assert findings == findings_page(findings, papers()), "./just evidence merge writes it again"
    assert readme == between(readme, studies_table(papers())), "./just evidence merge writes it again"


def test_numbers_in_findings_are_of_the_study_to_which_their_item_links() -> None:
    page = (ROOT / FINDINGS).read_text(encoding="utf-8")
    falsified = re.sub(r"\d(?=<!-- )", lambda digit: str((int(digit[0]) + 3) % 10), page)
    assert falsified != page == findings_page(falsified, papers())


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_the_causes_are_of_all_claims_that_differ_and_of_no_reproduced_one(folder: Path) -> None:
    found = evidence_in(folder)
    words = {item.verdict.claim: item.verdict.verdict for item in found.judged}
    section = (folder / README).read_text("utf-8").partition("## What differs")[2].partition("\n## ")[0]
    # Rows about another backend, which has no evidence, are by its references.
    rows = [line.split(" | ")[1] for line in section.splitlines() if re.match(r"\| (?!ns-2)", line)]
    patterns = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    named = {name: fnmatch.filter(words, name) for name in patterns}
    assert all(named.values()), "no claim has such a name"
    every = {claim for claims in named.values() for claim in claims}
    assert [claim for claim in sorted(every) if words[claim] == "reproduced"] == []
    assert [claim for claim, word in words.items() if word == "not reproduced" and claim not in every] == []


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_the_report_quotes_each_row_of_what_differs_that_is_not_open(folder: Path) -> None:
    study = StudyFolder(folder)
    section = (folder / README).read_text("utf-8").partition("## What differs")[2].partition("\n## ")[0]
    states = [line.rstrip(" |").rpartition(" | ")[2] for line in section.splitlines() if line.startswith("| ")][1:]
    causes = quoted(study, [claim.id for claim in study.claims]).causes
    rows = [cause for cause in causes if re.search(r"\):</strong>", cause.text)]
    assert len(rows) == len([state for state in states if state != "open"])


def test_a_number_in_a_readme_is_renewed_and_one_without_evidence_is_unknown(evidence_study: Path) -> None:
    written = "It has 1.0<!-- drop_ratio[one-drop, at=1500 ms] --> and 9.0<!-- goodput[delay, window > 1 MiB] --> Mb/s."
    (evidence_study / "README.md").write_text(f"# small\n\n{written}\n{BEGIN}stale text{END}\n", encoding="utf-8")
    printed(evidence.merge)
    text = (evidence_study / "README.md").read_text(encoding="utf-8")
    assert "It has 0.5<!-- drop_ratio[one-drop, at=1500 ms] --> and " in text and "stale" not in text
    assert re.search(r" and \d+\.\d<!-- goodput\[delay, window > 1 MiB\] --> Mb/s", text)
    assert "Runs can decide" in text and f"--stack {MODERN}" not in text
    for path in (evidence_study / EVIDENCE).rglob("delay.jsonl"):
        path.unlink()
    printed(evidence.merge)
    text = (evidence_study / "README.md").read_text(encoding="utf-8")
    assert " and ?.?<!-- goodput[delay, window > 1 MiB] --> Mb/s" in text


def test_an_expression_in_a_readme_that_there_is_not_is_refused(evidence_study: Path) -> None:
    (evidence_study / "README.md").write_text("# small\n\n7<!-- goodput[relay] -->\n", encoding="utf-8")
    with pytest.raises(StudyError, match="relay"):
        printed(evidence.merge)


@pytest.mark.parametrize("text", [b"format: [", b"\xff\xfe", b"format: 2\nstudy: other\n"])
def test_a_draft_that_cannot_be_read_is_named_and_all_else_is_done(evidence_study: Path, text: bytes) -> None:
    (evidence_study.parent / "a-draft").mkdir()
    (evidence_study.parent / "a-draft/study.yaml").write_bytes(text)
    (evidence_study / PAGE).unlink()
    assert "a-draft" in printed(evidence.merge)
    assert (evidence_study / PAGE).exists()
    output = printed(verdicts)
    assert "a-draft is left out" in output and "window-limits" not in output
    assert "window-limits" in printed(lambda out: verdicts(out, every=True))
    (evidence_study.parent / "a-draft" / HEADLINES).write_text("[", encoding="utf-8")
    (evidence_study / PAGE).unlink()
    with pytest.raises(StudyError, match="a-draft"):
        printed(evidence.merge)
    assert (evidence_study / PAGE).exists()


def test_verdicts_of_ns2_are_a_column_and_a_damaged_file_is_named(tmp_path: Path) -> None:
    folder = StudyFolder(ROOT / "experiments/trinh-2004")
    column, words = next(iter(folder.simulated.items()))
    assert words.keys() == {claim.id for claim in folder.claims if claim.not_testable is None}
    assert f" | {column} |" in verdicts_page(without_runs(folder, ""))
    (tmp_path / SIMULATED).write_text('{"key": {}}', encoding="utf-8")
    with pytest.raises(StudyError, match=SIMULATED):
        _ = StudyFolder(tmp_path).simulated
