# SPDX-License-Identifier: Apache-2.0
"""Gates of claims: the paper's own numbers, exclusions, identical tests, needs; and how verdicts are counted."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import get_args

import pytest
from evidenced import change
from fabricated_results import judge_study, write_study
from test_claims import HEAD, claim, problems
from test_claims import results as results

from longfat.data.study_folder import StudyFolder
from longfat.metrics import METRICS
from longfat.relations.claims import Claim
from longfat.relations.counting import Counted, Share, shares, tally
from longfat.relations.firsts import changes, keep_first
from longfat.relations.headlines import claim_words
from longfat.relations.judge import judge, read_origin, read_verdicts
from longfat.relations.limits import Limits, holm
from longfat.relations.outcomes import Word
from longfat.system.errors import RecordError, RigError

FAST, SLOW = "goodput[delay, highspeed, window=8 MiB]", "goodput[delay, standard, window=8 MiB]"
CRITERION = claim("a", f"{FAST} > 1", "kind: law")
NUMBERS = ("oracle:", f"  {FAST}: 900", f"  {SLOW}: 950")


def claims_of(tmp_path: Path, *claims: str, head: str = HEAD) -> tuple[Claim, ...]:
    return StudyFolder(write_study(tmp_path, claims=head + "".join(claims))).claims


def test_a_test_that_the_papers_own_numbers_fail_is_an_error_with_file_line_and_both_numbers(tmp_path: Path) -> None:
    text = problems(tmp_path, claim("a", f"{FAST} / {SLOW} ~ 1.1", *NUMBERS))
    assert "claims.yaml:4: claims[0]: claim 'a'" in text and "0.947368" in text and "0.99 to 1.21" in text


def test_a_test_that_they_meet_and_one_that_is_marked_pass(tmp_path: Path) -> None:
    marked = "inconsistent: {where: table 2, reason: the table has 900 and 950}"
    met = claim("a", f"{SLOW} > {FAST}", *NUMBERS)
    assert len(claims_of(tmp_path, met, claim("b", f"{FAST} > {SLOW}", *NUMBERS, marked))) == 2


@pytest.mark.parametrize(("stated", "needed"), [(8, None), (7, None), (6, 7), (3, 7)])
def test_repetitions_whose_medians_cannot_contradict_a_claim_are_a_warning(
    tmp_path: Path, stated: int, needed: int | None
) -> None:
    three = (
        claim("a", "share[delay, window, standard, flow=stream1] > 50 for window")
        + "      - 'share[one-drop, flow=stream1] > 1'\n"
    )
    study = write_study(tmp_path, claims=HEAD + three.replace("relation: ", "relation:\n      - "), repetitions=2)
    change(study / "study.yaml", "experiments:", f"stated_repetitions: {stated}\nexperiments:")
    found = [one for one in StudyFolder(study).warnings if "cannot contradict" in one.message]
    assert len(found) == (2 if needed else 0)
    assert all(f"`repetitions: {needed}`" in (one.hint or "") for one in found)


def test_of_a_metric_that_is_printed_twice_the_number_of_the_claims_own_figure_counts(tmp_path: Path) -> None:
    contradicting = (
        claim("one", f"{FAST} = 900", artifact="tab-1"),
        claim("other", f"{FAST} = 1000", artifact="tab-2"),
        claim("slow", f"{SLOW} = 950", artifact="tab-3"),
    )
    assert len(claims_of(tmp_path, *contradicting, claim("order", f"{FAST} > {SLOW}", artifact="tab-2"))) == 4
    text = problems(tmp_path, *contradicting, claim("order", f"{FAST} > {SLOW}", artifact="tab-1"))
    assert "claim 'order' does not hold" in text


def test_claims_that_exclude_each_other_and_tests_that_occur_twice_are_found(tmp_path: Path) -> None:
    written = "goodput[delay, window=8 MiB, algorithm=highspeed] = 900"
    texts = claim("a", f"{FAST} = 900"), claim("b", written), claim("c", f"{FAST} = 1000"), claim("d", f"{FAST} > 800")
    found = claims_of(tmp_path, *texts)
    assert [one.same_as for one in found] == [None, "a", None, None]
    assert [one.contradicts for one in found] == [("c",), ("c",), ("a", "b"), ()]


@pytest.mark.parametrize(
    ("key", "verdict", "carries"),
    [
        ("needs: {lasts: 1 s}", "reproduced", "reproduced"),
        ("needs: {lasts: 240 s}", "undecided", "undecided"),
        ("needs: {lasts: {one-drop: 240 s}}", "reproduced", "reproduced"),
        ('needs: {lasts: {delay: 1 s, "*": 240 s}}', "reproduced", "reproduced"),
        ('needs: {lasts: {"*": 1 s, d*: 240 s}}', "undecided", "undecided"),
        ("scenario_differs: another card", "not testable", "scenario differs"),
        ("scenario_differs: another card\n    needs: {lasts: 240 s}", "undecided", "scenario differs"),
        ("kind: construction", "reproduced", "by construction"),
        ("calibrated_on: the card", "reproduced", "calibrated"),
    ],
)
def test_a_claim_without_the_runs_or_the_scenario_that_it_needs_is_not_reproduced(
    results: Path, tmp_path: Path, key: str, verdict: str, carries: str
) -> None:
    study = write_study(tmp_path, claims=HEAD + claim("a", f"{SLOW} > 100", key))
    (found,) = judge_study(results, study)
    assert (found.verdict, bool(found.reason)) == (verdict, verdict != "reproduced")
    assert claim_words([found], StudyFolder(study).claims) == {"a": carries}, "to a headline"


def test_needs_above_all_claims_are_those_of_claims_that_have_none(tmp_path: Path) -> None:
    head = HEAD.replace("claims:\n", "needs: {lasts: 240 s}\nclaims:\n")
    own = {"100": ["needs: {lasts: 1 s}"], "200": ["needs: {}"], "300": []}
    written = [claim(f"above-{limit}", f"{SLOW} > {limit}", *needs) for limit, needs in own.items()]
    claims = claims_of(tmp_path, *written, head=head)
    assert [one.needs.lasts_in("delay") for one in claims if one.needs] == [1, 0, 240]


def test_a_retest_widens_a_margin_which_another_may_exclude() -> None:
    assert Limits.within_error(100, 10, retest=25).hold(150)
    assert Limits.within_error(100, 10).excludes(Limits(120, 130, True))


def test_holm_confirms_a_part_only_at_its_share_of_the_level() -> None:
    assert holm([0.04]) == [0.05]
    assert holm([0.04, 1.0]) == [0.025, 0.025]
    assert holm([0.04, 0.02]) == [0.05, 0.025]
    assert holm([0.001, 0.03, 1.0]) == [0.05 / 3, 0.025, 0.025]


def row(name: str, word: Word, category: str = "measured", same_as: str | None = None, *group: str) -> Counted:
    return Counted(name, word, category, same_as, group)


def test_the_shares_are_of_what_can_be_tested_and_was_not_chosen_by() -> None:
    rows = [row(word, word) for word in get_args(Word)]
    rows += [row("l", "reproduced", "law"), row("c", "reproduced", "calibrated")]
    rows += [row("i", "undecided", "inconsistent")]
    assert list(shares(tally(rows)).values()) == [Share(4, 3, 1), Share(6, 4, 2), Share(5, 4, 2)]


def test_one_test_counts_once_and_of_a_group_the_first_claim_whatever_its_verdict() -> None:
    same = [row("a", "reproduced"), row("b", "reproduced", "measured", "a")]
    assert tally(same)["measured"]["reproduced"] == 1
    group = [row("a", "not reproduced", "measured", None, "b"), row("b", "compatible", "measured", None, "a")]
    counts = tally(group)["measured"]
    assert (counts["compatible"], counts["not reproduced"]) == (0, 1)
    both = [row("a", "compatible", "measured", None, "b"), row("b", "compatible", "measured", None, "a")]
    assert tally(both)["measured"]["compatible"] == 1
    chain = [row("a", "reproduced", "measured", None, "b"), row("b", "not reproduced", "measured", None, "a", "c")]
    counts = tally([*chain, row("c", "not reproduced", "measured", None, "b")])["measured"]
    assert (counts["reproduced"], counts["not reproduced"]) == (1, 1), "of what excludes only what does not count"


def test_the_first_claims_stay_for_ever_and_each_part_of_them_that_has_changed_since_is_named(tmp_path: Path) -> None:
    known = claims_of(tmp_path, claim("a", f"{FAST} = 900", "kind: law"), claim("b", f"{SLOW} > 1"))
    first = keep_first(tmp_path, known, before_runs=True)
    changed = claim("a", f"{FAST} = 990", "kind: construction").replace("value: 1,", "value: 100,")
    now = claims_of(tmp_path, changed.replace("Something.", "Nothing."), claim("c", f"{SLOW} > 1"))
    assert keep_first(tmp_path, now, before_runs=False) == first
    found = [line.partition(": was ")[0] for line in changes(first, now)]
    assert found == ["a, kind", "a, paper", "a, relation", "a, statement", "b: removed", "c: added"]


def test_another_definition_of_a_metric_is_another_criterion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = claims_of(tmp_path, CRITERION)
    first = keep_first(tmp_path, claims, before_runs=True)
    another = dataclasses.replace(METRICS["goodput"], function=lambda flows: 0.001)
    monkeypatch.setitem(METRICS, "goodput", another)
    (change,) = changes(first, claims)
    assert change.startswith("a, metrics: was goodput@")


def test_keys_that_an_older_version_did_not_record_are_not_compared(tmp_path: Path) -> None:
    claims = claims_of(tmp_path, CRITERION)
    first = keep_first(tmp_path, claims, before_runs=True)
    older = {name: {"relation": one["relation"]} for name, one in first.claims.items()}
    assert list(changes(dataclasses.replace(first, claims=older), claims)) == []


def test_damaged_first_claims_are_an_error(tmp_path: Path) -> None:
    keep_first(tmp_path, known := claims_of(tmp_path, claim("a", f"{FAST} = 900")), before_runs=True)
    whole = (path := tmp_path / "claims-first.json").read_text(encoding="ascii")
    turns = (("= 900", "= 990"), (r"\+00:00", ""), ("T..:", "T01z"), ("true", "2"), ("(?s).+", "[" * 5000), ("}", ""))
    for damaged in (re.sub(*turn, whole) for turn in turns):
        path.write_text(damaged, encoding="ascii")
        with pytest.raises(RigError, match=r"claims-first\.json"):
            keep_first(tmp_path, known, False)


def test_criteria_are_from_before_the_runs_only_if_no_recorded_run_is_older(results: Path, tmp_path: Path) -> None:
    study = write_study(tmp_path, claims=HEAD + CRITERION)
    path = results / "claims-first.json"
    path.unlink(missing_ok=True)
    keep_first(results, StudyFolder(study).claims, before_runs=True)
    first = json.loads(path.read_text(encoding="ascii"))
    for year, before in (("2000", True), ("2999", False)):
        path.write_text(json.dumps(first | {"time": f"{year}-01-01T00:00:00+00:00"}), encoding="ascii")
        judge_study(results, study)
        origin = read_origin(results)
        assert origin.before_runs is before and ("after the runs" in origin.sentence) is not before


def test_verdicts_are_sealed_with_the_claims_by_which_they_were_judged(results: Path, tmp_path: Path) -> None:
    folder = StudyFolder(write_study(tmp_path, claims=HEAD + claim("a", f"{SLOW} > 100")))
    read = folder.study, folder.claims, folder.judged_by
    write_study(tmp_path, claims=HEAD + claim("a", f"{SLOW} > 900"))  # while the command runs
    judge(results, *read)
    with pytest.raises(RecordError, match=r"claims\.yaml \(changed\)"):
        read_verdicts(results, folder.path)


def test_verdicts_hold_the_digest_of_the_claims_that_gave_them(results: Path, tmp_path: Path) -> None:
    (results / "claims-first.json").unlink(missing_ok=True)
    study = write_study(tmp_path, claims=HEAD + claim("a", f"{SLOW} > 100"))
    judge_study(results, study)
    before = read_origin(results)
    assert (before.claims_sha256, before.changes) == (before.first_sha256, ())
    write_study(tmp_path, claims=HEAD + claim("a", f"{SLOW} > 200"))
    judge_study(results, study)
    assert (after := read_origin(results)).first_sha256 == before.first_sha256 != after.claims_sha256
    assert after.sentence.endswith("and have changed since")
