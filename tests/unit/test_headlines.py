# SPDX-License-Identifier: Apache-2.0
"""Headlines: loading with all problems at once, and a verdict that follows from the claims behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidenced import evidence_in, printed
from fabricated_results import make_results, write_study
from manifests import refused

from longfat.cli import evidence
from longfat.cli.report import report as report_command
from longfat.cli.verdicts import verdicts
from longfat.data.study_folder import StudyFolder
from longfat.evidence.judged import without_runs
from longfat.relations.headlines import HEADLINE_WORDS, Headline, JudgedHeadline, word_of
from longfat.report.findings import headline_counts, headline_rows, sentence
from longfat.report.markdown import BEGIN, END
from longfat.report.report import write_report
from longfat.system.errors import StudyError

HEADLINES = """\
format: 2
study: small
question: Does a larger window help?
headlines:
  - id: more
    statement: A larger <window> gives more, and a loss halves it.
    paper: 940 Mb/s
    where: figure 1
    here: "${goodput[delay, standard, window=8 MiB]} Mb/s, ratio ${drop_ratio[one-drop, at=1500 ms]}"
    claims: ["win*", halves]
"""


def with_headlines(study: Path, text: str = HEADLINES) -> StudyFolder:
    (study / "headlines.yaml").write_text(text, encoding="utf-8")
    return StudyFolder(study)


@pytest.mark.parametrize(
    ("claims", "word"),
    [
        (["reproduced", "reproduced", "not testable"], "supported"),
        (["reproduced", "not reproduced"], "supported in part"),
        (["reproduced", "not reproduced", "undecided"], "supported in part"),
        (["compatible"], "supported in part"),
        (["compatible", "reproduced"], "supported in part"),
        (["reproduced", "scenario differs"], "supported in part"),
        (["not reproduced", "undecided"], "open"),
        (["reproduced", "undecided"], "open"),
        (["not testable", "scenario differs"], "scenario differs"),
        (["scenario differs", "undecided"], "open"),
        (["scenario differs", "not reproduced"], "contradicted"),
        ([], "open"),
    ],
)
def test_a_headline_has_the_verdict_of_the_rule(claims: list[str], word: str) -> None:
    assert word in HEADLINE_WORDS and word_of(claims) == word


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        (["reproduced, law", "not testable"], "supported (laws)"),
        (["reproduced, law", "reproduced"], "supported"),
        (["not reproduced, law"], "contradicted"),
        (["reproduced, law", "not reproduced"], "supported in part (laws)"),
    ],
)
def test_a_headline_that_only_laws_support_is_marked(claims: list[str], text: str) -> None:
    headline = Headline(id="a", statement="b", paper="c", where="d", here="e", claims=("*",))
    found = JudgedHeadline(headline, word_of(claims), dict(zip("abc", claims, strict=False)), "")
    assert found.text == text
    assert headline_counts([found]) == f"1 {text}"


def test_further_evidence_never_changes_a_verdict_that_is_not_open() -> None:
    decided = ("reproduced", "compatible", "not reproduced")
    for known in ([], ["reproduced"], ["compatible"], ["not reproduced"], ["reproduced", "not reproduced"]):
        now, later = word_of([*known, "undecided"]), {word_of([*known, word]) for word in decided}
        assert now == ("open" if len(later) > 1 else later.pop())


def test_all_problems_are_reported_at_once_with_file_line_and_key(tmp_path: Path) -> None:
    faulty = HEADLINES.replace("study: small", "study: tall").replace("halves]", "halfs]").replace("[delay,", "[dela,")
    faulty += "  - {id: more, statement: twice, paper: x, where: y, claims: [], verdict: supported}\n"
    without = with_headlines(write_study(tmp_path), faulty.replace("    where: figure 1\n", ""))
    problems = refused(lambda: without.headlines)
    found = {(problem.line, problem.key) for problem in problems}
    last = len(faulty.splitlines()) - 1  # a line was taken out
    assert {(last, "headlines[1].id"), (last, "headlines[1].verdict"), (last, "headlines[1].claims")} <= found
    assert any(key.startswith("headlines[0]") and line is not None and line < last for line, key in found)
    assert all(problem.file.endswith("headlines.yaml") for problem in problems)
    names = faulty.replace(faulty.splitlines()[-1] + "\n", "")
    misnamed = with_headlines(tmp_path / "experiments" / "small", names)
    assert {problem.key for problem in refused(lambda: misnamed.headlines)} == {
        "study",
        "headlines[0].claims[1]",
        "headlines[0].here",
    }
    for old, new, message in (
        ("1500 ms]}", "1500 ms]", "without its"),
        ("ratio", "ratio ${2 / 0}", "has no value"),
        ("ratio", "ratio ${9e200 * 9e200}", "no finite value"),
    ):
        with pytest.raises(StudyError, match=message):
            _ = with_headlines(tmp_path / "experiments" / "small", HEADLINES.replace(old, new)).headlines


def test_a_headline_without_any_run_is_open_and_has_no_number(tmp_path: Path) -> None:
    folder = with_headlines(write_study(tmp_path))
    ((_, _, here, word, _),) = headline_rows(without_runs(folder, "none").headlines)
    assert (here, word) == ("runs missing", "open")


def test_console_readme_page_report_and_findings_have_the_same_counts(evidence_study: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    pages = evidence_study / "README.md", tmp_path / "docs/findings.md"
    for page in pages:
        page.write_text(f"# small\n\n{BEGIN}{END}\n", encoding="utf-8")
    printed(evidence.merge)
    folder, found = StudyFolder(evidence_study), evidence_in(evidence_study)
    counts = sentence(found.counts)
    assert counts.startswith("Runs can decide ") and sum(found.counts["measured"].values()) > 0
    results = tmp_path / "results" / "none"
    make_results(evidence_study, results, omit=lambda run: True, reported=True)
    report = write_report(results, folder, found).read_text(encoding="utf-8")
    console = (lambda out: verdicts(out, ["small"]), lambda out: report_command(out, "small", results))
    texts = [report, *(printed(command) for command in console)]
    texts += [(evidence_study / name).read_text(encoding="utf-8") for name in ("README.md", "VERDICTS.md")]
    assert [counts in text for text in texts] == [True] * 5
    row = found.counts["measured"]
    numbers = [sum(row.values()) - row["not testable"], row["reproduced"], row["not reproduced"], row["undecided"]]
    assert f"| small | {' | '.join(map(str, numbers))} |" in pages[1].read_text(encoding="utf-8")
