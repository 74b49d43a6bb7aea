# SPDX-License-Identifier: Apache-2.0
"""Criteria of claims, recorded when runs become evidence: each later change is listed by its author or named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import evidence_study
from evidenced import add, change, evidence_in, file_of, printed
from fabricated_results import CLAIMS

from longfat.cli import evidence
from longfat.cli.verdicts import verdicts
from longfat.data.study_folder import StudyFolder
from longfat.evidence.criteria import read_criteria, with_present, write_criteria
from longfat.system.errors import StudyError

CHANGE = """changes:
  - {claims: [window-*], date: 2999-01-01, old: a, new: b, reason: c, was: d, became: e}
"""


study = evidence_study


def criteria(study: Path) -> Path:
    return study / "criteria.jsonl"


def younger(study: Path) -> tuple[str, ...]:
    return evidence_in(study).younger


def edit(study: Path, before: str, after: str, changes: str = "") -> None:
    assert before in CLAIMS
    text = CLAIMS.replace(before, after, 1).replace("claims:\n", f"{changes}claims:\n", 1)
    (study / "claims.yaml").write_text(text, encoding="utf-8")


def test_the_criteria_are_recorded_with_the_first_runs(study: Path) -> None:
    records = [json.loads(line) for line in criteria(study).read_text(encoding="ascii").splitlines()]
    assert {one["claim"]: one["rows"] for one in records} == {"window-limits": 0, "halves": 0}
    assert younger(study) == ()


@pytest.mark.parametrize(
    ("before", "after", "key"), [("=8 MiB]", "=8 MiB] * 2", "relation"), ("statement: ", "statement: No ", "statement")]
)
def test_a_later_change_is_named_unless_the_study_lists_it(study: Path, before: str, after: str, key: str) -> None:
    edit(study, before, after)
    (line,) = younger(study)
    assert line.startswith(f"window-limits, {key}: was ")
    assert line in printed(lambda out: verdicts(out, ["small"]))
    edit(study, before, after, CHANGE)
    assert younger(study) == ()


@pytest.mark.parametrize("word", ["No", "Not", "Never", "Nowhere"])
def test_a_change_that_is_recorded_with_as_many_runs_is_named(study: Path, word: str) -> None:
    edit(study, "statement: ", f"statement: {word} ")
    named, folder = younger(study), StudyFolder(study)
    write_criteria(study, with_present(read_criteria(study), folder.claims, folder.study, {}, "2999-01-01"))
    assert len(criteria(study).read_text(encoding="ascii").splitlines()) == 3
    assert younger(study) == named


def test_each_change_needs_its_own_entry(study: Path) -> None:
    results = study.parents[1] / "results" / "small"
    edit(study, "statement: ", "statement: No ", CHANGE)
    path = file_of(study, "delay")
    path.write_text("".join(path.read_text(encoding="ascii").splitlines(keepends=True)[:-1]), encoding="ascii")
    add(results)
    assert [one.rows for one in read_criteria(study)["window-limits"]] == [0, 7]
    assert younger(study) == ()
    edit(study, "statement: ", "statement: Not ", CHANGE)
    assert younger(study)


def test_a_new_claim_on_old_runs_is_named(study: Path) -> None:
    edit(study, "id: halves", "id: halves-again")
    (line,) = younger(study)
    assert line.startswith("halves-again: no criterion was recorded before 1 ")


def test_criteria_that_were_removed_come_back_as_young_as_they_are(study: Path) -> None:
    criteria(study).unlink()
    assert len(younger(study)) == 2
    printed(evidence.merge)
    assert min(one.rows for of in read_criteria(study).values() for one in of) > 0


def test_the_records_of_two_checkouts_are_merged_and_the_earliest_counts(study: Path, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "experiments", tmp_path / "theirs/experiments")
    theirs = criteria(tmp_path / "theirs/experiments/small")
    whole = theirs.read_text(encoding="ascii")
    theirs.write_text(whole.replace('"rows":0', '"rows":5'), encoding="ascii")
    criteria(study).write_text(criteria(study).read_text(encoding="ascii").splitlines()[0] + "\n", encoding="ascii")
    printed(lambda out: evidence.merge(out, [tmp_path / "theirs"]))
    assert sorted(of[0].rows for of in read_criteria(study).values()) == [0, 5]


@pytest.mark.parametrize(
    ("before", "after"), [("1 MiB", "8 MiB"), ('"rows":0', '"rows":-3'), ('"rows":0', '"rows":1e999')]
)
def test_a_damaged_record_is_an_error_with_its_line(study: Path, before: str, after: str) -> None:
    change(criteria(study), before, after)
    with pytest.raises(StudyError, match=r"criteria\.jsonl:\d: "):
        younger(study)
