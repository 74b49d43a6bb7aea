# SPDX-License-Identifier: Apache-2.0
"""What evidence lacks and costs, and how the report shows what all evidence says beside the runs made here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from evidenced import copied, file_of, printed, with_evidence
from fabricated_results import CLAIMS, judge_study

from longfat.evidence.costs import Costs
from longfat.evidence.epochs import FOLDER, read_epochs
from longfat.evidence.judged import Evidenced, Judged, evidence_of
from longfat.plan.estimate import run_seconds
from longfat.report.report import write_report
from longfat.studies import StudyFolder
from longfat.verbs.verdicts import verdicts


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a study whose nine runs are in its evidence, made once."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        with_evidence(root, patch)
    return root


@pytest.fixture
def study(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The study in a copy of that repository."""
    return copied(made, tmp_path, monkeypatch)


def evidenced(root: Path, study: Path) -> Evidenced:
    found = evidence_of(StudyFolder(study), read_epochs(root / FOLDER))
    assert found is not None
    return found


def judged(root: Path, study: Path, claim: str) -> Judged:
    (found,) = (item for item in evidenced(root, study).judged if item.verdict.claim == claim)
    return found


def keep(study: Path, experiment: str, lines: int, seconds: float = 6.0) -> None:
    """Leave so many rows of an experiment, of runs that took so long."""
    path = file_of(study, experiment)
    kept = path.read_text(encoding="ascii").splitlines(keepends=True)[: lines + 1]
    path.write_text("".join(re.sub(r'"seconds":[0-9.]+', f'"seconds":{seconds}', line) for line in kept))


def test_a_claim_that_is_measured_lacks_nothing_and_says_how_many_runs_it_rests_on(tmp_path: Path, study: Path) -> None:
    found = judged(tmp_path, study, "window-limits")
    assert (found.verdict.verdict, found.n, found.profile, found.lack) == ("reproduced", "2", "paper", None)
    assert found.reason == ""


def test_a_claim_that_is_not_measured_lacks_three_runs_of_each_scenario_at_the_price_of_those_that_are_there(
    tmp_path: Path, study: Path
) -> None:
    keep(study, "one-drop", 1)
    keep(study, "delay", 4)  # both repetitions of two scenarios
    found = judged(tmp_path, study, "window-limits")
    assert (found.verdict.verdict, judged(tmp_path, study, "halves").lack) == ("not_measured", None)
    assert found.lack is not None and (found.lack.profile, found.lack.runs) == ("paper", 2 * 1 + 2 * 3)
    (ground,) = evidenced(tmp_path, study).grounds
    costs = [Costs(ground).of_run(name) for name in ground.planned.scenarios if name.startswith("delay")]
    assert sorted(costs)[2:] == [6.0, 6.0] and all(cost > 0 for cost in costs)
    assert found.lack.seconds == pytest.approx(2 * 6.0 + 3 * sum(sorted(costs)[:2]))
    assert found.reason == f"{found.verdict.reason}; {found.lack}"
    assert str(found.lack).startswith("lacks 8 runs of profile paper, about 0.")


def test_what_no_run_tells_of_a_scenario_is_told_by_the_reference_of_the_study(tmp_path: Path, study: Path) -> None:
    keep(study, "delay", 0)
    (study / "reference").mkdir()
    for number, pace in enumerate(({"delay": 7.0}, {"one-drop": 9.0}, {})):
        told = {"profile": ("paper", "quick", "paper")[number], "stack": "modern", "pace": pace}
        (study / f"reference/{number}.json").write_text(json.dumps(told))
    (ground,) = evidenced(tmp_path, study).grounds
    found = {name: Costs(ground).of_run(name) for name in ground.planned.scenarios if name.startswith("delay")}
    assert found == {name: pytest.approx(7 * run_seconds(ground.planned.scenarios[name].spec)) for name in found}


def test_a_claim_that_needs_more_runs_lacks_as_many(tmp_path: Path, study: Path) -> None:
    (study / "claims.yaml").write_text(CLAIMS + "    needs: {at_least_n: 5}\n")
    found = judged(tmp_path, study, "halves")
    assert found.verdict.verdict == "not_measured"
    assert found.lack is not None and found.lack.runs == 4


def test_a_profile_whose_runs_are_too_short_is_not_what_a_claim_lacks(tmp_path: Path, study: Path) -> None:
    (study / "claims.yaml").write_text(CLAIMS + "    needs: {lasts: 240 s}\n")
    found = judged(tmp_path, study, "halves")
    assert (found.verdict.verdict, found.lack) == ("not_measured", None)
    assert "must be at least 240 s" in found.reason


def test_runs_that_several_claims_lack_are_counted_once(tmp_path: Path, study: Path) -> None:
    keep(study, "delay", 0)
    more = "id: more, statement: More., paper: {value: 1, where: somewhere}, relation: 'goodput[delay] > 1'"
    (study / "claims.yaml").write_text(f"{CLAIMS}  - {{{more}}}\n")
    found = evidenced(tmp_path, study)
    assert [item.lack.runs for item in found.judged if item.lack] == [12, 12]
    assert [lack.runs for lack in found.lacks] == [12]
    text = printed(lambda console: verdicts(["small"], None, console, as_json=False))
    assert re.search(r"it lacks 12 runs of profile \w+, about \d+\.\d min of CPU", text)


def test_people_and_programs_are_told_what_is_lacking(
    tmp_path: Path, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(study, "delay", 0)
    text = printed(lambda console: verdicts(["small"], None, console, as_json=False))
    assert re.search(r"not measured .*; lacks 12 runs of profile \w+, about \d+\.\d min of CPU", text)
    printed(lambda console: verdicts([], None, console, as_json=True))
    (one,) = json.loads(capsys.readouterr().out)["studies"]
    lacks = {claim["id"]: claim["lacks"] for claim in one["claims"]}
    assert lacks["halves"] is None
    assert lacks["window-limits"]["runs"] == 12 and lacks["window-limits"]["cpu_minutes"] > 0


def test_the_report_has_the_verdict_by_all_evidence_first_and_says_which_is_which(tmp_path: Path, study: Path) -> None:
    results = tmp_path / "results" / "small"
    judge_study(results, study)
    keep(study, "delay", 0)
    found = evidenced(tmp_path, study)
    page = write_report(results, StudyFolder(study), found).read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("</style>")[1]))
    assert f"1 committed runs of epoch {found.epoch}, stack modern, backend fake" in text
    assert "Of 2 claims that only runs can decide, 1 is reproduced and 1 is not measured." in text
    row = page.split('<article class="claim is-not_measured" id="claim-window-limits">')[1].split("</article>")[0]
    by_evidence, by_runs = row.split("By the runs of this report alone")
    assert "not measured" in by_evidence and "lacks 12 runs" in by_evidence
    assert "reproduced" in by_runs
    halves = page.split('<article class="claim is-reproduced" id="claim-halves">')[1].split("</article>")[0]
    assert "n = 1" in halves and "profile paper" in halves
    assert 'href="#only-not_measured">\N{EN DASH} 1 not measured</a>' in page
    plain = write_report(results, StudyFolder(study)).read_text(encoding="utf-8")
    assert "vidence" not in plain.split("</style>")[1].split("<footer>")[0]
