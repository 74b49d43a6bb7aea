# SPDX-License-Identifier: Apache-2.0
"""Evidence: its rows, the verdicts from it, and the refusal or exclusion of unsound evidence."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from evidenced import add, change, evidence_in, file_of, files_of, git, printed, repository, with_evidence
from fabricated_results import CLAIMS, judge_study, write_results
from manifests import refused

from longfat.cli import evidence, rows
from longfat.data.study_folder import StudyFolder
from longfat.dataset.load import load_dataset
from longfat.evidence.rows import Row, ValueKey, merge
from longfat.evidence.store import Rows, read_rows, write_rows
from longfat.relations.evaluate import Grounds
from longfat.relations.judge import decide
from longfat.report.markdown import PAGE
from longfat.report.report import write_report
from longfat.study.load import load_study
from longfat.system.errors import StudyError
from longfat.system.locks import hold

ROOT = Path(__file__).parents[2]


def judged(study: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the verdicts by the evidence, and the exclusions."""
    found = evidence_in(study)
    return {item.verdict.claim: item.verdict.verdict for item in found.judged}, found.exclusions


def row(**changes: object) -> Row:
    data = {
        "made": "a" * 12,
        "measured": "b" * 64,
        "repetition": 1,
        "run": "c" * 64,
        "scenario": "one",
        "seconds": 1.5,
        "spec": "d" * 16,
        "values": {"goodput@00000000": 1.0},
    }
    return Row.read(data | changes)


def test_verdicts_from_evidence_alone_are_those_from_the_dataset(evidence_study: Path, tmp_path: Path) -> None:
    known = load_study(evidence_study / "study.yaml")
    grounds = Grounds(known, load_dataset(tmp_path / "results" / "small"))
    from_dataset = [decide(claim, grounds) for claim in StudyFolder(evidence_study).claims]
    shutil.rmtree(tmp_path / "results")
    found = evidence_in(evidence_study)
    assert found.runs == 9
    assert [item.verdict for item in found.judged] == from_dataset
    assert [item.profile for item in found.judged] == ["paper", "paper"]


def test_adding_twice_adds_nothing_and_changes_no_byte(evidence_study: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in files_of(evidence_study)}
    assert "0 runs added, 9 were there" in add(tmp_path / "results" / "small")
    assert {path: path.read_bytes() for path in files_of(evidence_study)} == before


def test_evidence_is_read_and_changed_by_one_process_at_a_time(
    evidence_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_alone(folder: Path, *more: str) -> Rows:
        with pytest.raises(BlockingIOError), hold(folder, wait=False, folder=True):
            pass
        return read_rows(folder, *more)

    monkeypatch.setattr(rows, "read_rows", read_alone)
    assert "9 were there" in add(tmp_path / "results" / "small") and "0 runs gained" in printed(evidence.merge)


def test_a_row_has_numbers_of_nine_digits_and_reads_back_as_it_was() -> None:
    one = row(values={"goodput@00000000": 941.123456789123, "drops@11111111[flow=f1,since=5000000.0]": "no drop"})
    again = Row.read(json.loads(one.line()))
    assert again.values == {"goodput@00000000": 941.123457, "drops@11111111[flow=f1,since=5000000.0]": "no drop"}
    assert again.line() == one.line()
    key = ValueKey.read("drops@11111111[flow=f1,since=5000000.0]")
    assert key == ValueKey("drops", "11111111", "f1", (("since", 5e6),))


def test_two_rows_of_one_run_are_merged_in_either_order() -> None:
    one, other = row(seconds=3.0), row(made="e" * 12, run="f" * 64, values={"drops@11111111": "no drop"})
    both = merge(one, other)
    assert both == merge(other, one)
    assert (both.seconds, both.made) == (1.5, "a" * 12)
    assert set(both.values) == {"goodput@00000000", "drops@11111111"}


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ('"repetition":1', '"repetition":0', 2),
        ('"repetition":1', '"repetition":true', 2),
        ('"seconds":0.0', '"seconds":NaN', 2),
        ('"seconds":0.0', '"seconds":0.0,"seconds":1.0', 2),
        ('"measured":"', '"measured":5,"reason":"', 2),
        ('"measured":"', '"measured":null,"reason":"', 2),  # with values
        ('"measured":"', '"measured":"","reason":"', 2),
        ('"values":{', '"values":{"goodput@00000000[]":1,', 2),  # a second spelling
        ('"values":{', '"values":{"goodput@00000000":1e999,', 2),
        ('"values":{', '"values":' + "[" * 20000 + "{", 2),
        ('"spec":', '"sepc":', 2),
        ('"seconds":0.0,', "", 2),
        ("goodput@", "goodput%", 2),
        ('"format":1', '"format":2', 1),
        ('"study":"small"', '"study":"big"', 1),
        ('"stack":"modern"', '"stack":"linux-2.4"', 1),
    ],
)
def test_a_damaged_foreign_or_future_file_is_an_error_with_its_place(
    evidence_study: Path, before: str, after: str, line: int
) -> None:
    change(file_of(evidence_study, "delay"), before, after)
    with pytest.raises(StudyError, match=rf"delay\.jsonl:{line}: "):
        read_rows(evidence_study, "small")


def test_a_file_without_its_heading_or_in_another_folder_is_an_error(evidence_study: Path) -> None:
    path = file_of(evidence_study, "one-drop")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    (evidence_study / "evidence" / "stray.jsonl").write_text("")
    path.with_suffix(".jsonl.orig").write_text("")
    found = [problem.file.rpartition("/")[2] for problem in refused(lambda: read_rows(evidence_study, "small"))]
    assert sorted(found) == ["one-drop.jsonl", "one-drop.jsonl.orig", "stray.jsonl"]


def test_a_line_that_is_there_twice_counts_once_and_one_that_contradicts_it_is_an_error(evidence_study: Path) -> None:
    path = file_of(evidence_study, "delay")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[::-1], lines[1]]))
    assert sum(map(len, read_rows(evidence_study, "small").values())) == 9
    path.write_text("".join([*lines, lines[1].replace("279.", "280.")]))
    with pytest.raises(StudyError, match=r"delay\.jsonl:10: .*two outcomes of one run, here and in line 2: goodput@"):
        read_rows(evidence_study, "small")


def test_git_merges_the_evidence_of_two_people_without_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = repository(tmp_path, monkeypatch)
    shutil.copy(ROOT / ".gitattributes", tmp_path)
    results = tmp_path / "results" / "small"
    (tmp_path / ".gitignore").write_text("results/\ncache/\n")
    git(tmp_path, "init")
    write_results(study, results, omit=lambda run: run.scenario != "one-drop")
    add(results)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "base")
    for name, wanted in (("mine", "highspeed"), ("theirs", "standard")):
        git(tmp_path, "checkout", "-b", name, "main")
        shutil.rmtree(results)
        write_results(study, results, omit=lambda run, wanted=wanted: wanted not in run.scenario)
        assert "4 runs added" in add(results)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-m", name)
    git(tmp_path, "merge", "mine")
    assert judged(study)[1] == ()
    assert sum(map(len, read_rows(study, "small").values())) == 9
    printed(evidence.merge)
    assert (study / PAGE).read_text(encoding="utf-8").count("| `halves` |") == 1
    lines = file_of(study, "delay").read_text().splitlines()
    assert len(lines) == 9 and lines[1:] == sorted(lines[1:], key=lambda line: Row.read(json.loads(line)).key)


def test_evidence_of_another_checkout_is_merged_and_a_contradiction_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = with_evidence(tmp_path / "ours", monkeypatch)
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "ours", other, ignore=shutil.ignore_patterns("results", "cache"))
    path = file_of(study, "delay")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    before = path.read_bytes()
    theirs = file_of(other / "experiments" / "small", "delay")
    change(theirs, '"measured":"', '"measured":"x')
    with pytest.raises(StudyError, match="two outcomes of one run: measured"):
        printed(lambda console: evidence.merge(console, [other]))
    assert path.read_bytes() == before
    change(theirs, '"measured":"x', '"measured":"')
    merged = printed(lambda console: evidence.merge(console, [other]), as_json=True)
    assert "small: 5 runs gained, 1 files written" in merged
    assert json.loads(capsys.readouterr().out) == {"format": 1, "gained": {"small": 5}}
    assert path.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize(
    ("depth", "after", "reason"),
    [(2, "3000-late", "no folder has the baseline 3000-late"), (0, "steady", "two outcomes of one run: measured")],
    ids=["unknown baseline", "another profile"],
)
def test_a_folder_whose_rows_would_hide_or_contradict_the_rows_here_is_not_merged(
    evidence_study: Path, tmp_path: Path, depth: int, after: str, reason: str
) -> None:
    theirs = tmp_path / "theirs"
    shutil.copytree(evidence_study, theirs)
    home = file_of(theirs, "delay").parents[depth]
    for path in home.rglob("*.jsonl"):
        change(path, f'"{home.name}"', f'"{after}"')
        change(path, '"measured":"', '"measured":"e')
    home.rename(home.with_name(after))
    kept = file_of(evidence_study, "delay").read_bytes()
    with pytest.raises(StudyError, match=reason):
        printed(lambda console: evidence.merge(console, [theirs]))
    assert file_of(evidence_study, "delay").read_bytes() == kept
    assert judged(evidence_study)[1] == ()


@pytest.mark.parametrize(
    ("before", "after", "exclusion"),
    [
        (r'"made":"', '"made":"0', r"1 x paper: runs of a combination \(0\w+\) that the baseline does not list"),
        (r"drop_ratio@\w{8}", "drop_ratio@00000000", r"1 x values of metric drop_ratio by another definition \(0+\)"),
        (r"drop_ratio@", "fall_ratio@", "1 x values of metric fall_ratio, which does not exist"),
        (r"(drop_ratio@[^:]*:)[\d.]+", r"\1-9", "1 x values of metric drop_ratio outside its bounds"),
    ],
)
def test_rows_and_values_that_do_not_count_are_left_out_by_name(
    evidence_study: Path, tmp_path: Path, before: str, after: str, exclusion: str
) -> None:
    path = file_of(evidence_study, "one-drop")
    path.write_text(re.sub(before, after, path.read_text(), count=1))
    words, exclusions = judged(evidence_study)
    assert len(exclusions) == 1 and re.fullmatch(exclusion, exclusions[0])
    assert words["halves"] not in ("reproduced", "not reproduced") and words["window-limits"] == "reproduced"


def test_rows_of_equal_measurements_with_different_values_do_not_count(evidence_study: Path, tmp_path: Path) -> None:
    path = file_of(evidence_study, "delay")
    text = re.sub(r'"measured":"\w+"', '"measured":"00"', path.read_text())
    path.write_text(text.replace("279.620264", "279.6", 1))
    words, exclusions = judged(evidence_study)
    assert words["window-limits"] == "undecided" and "equal measurements have different values" in exclusions[0]


def test_runs_of_scenarios_that_the_study_has_changed_or_dropped_are_left_out_by_name(
    evidence_study: Path, tmp_path: Path
) -> None:
    manifest = evidence_study / "study.yaml"
    manifest.write_text(manifest.read_text().replace("[1 MiB, 8 MiB]", "[4 MiB, 8 MiB]").replace("3 s}", "4 s}"))
    (evidence_study / "claims.yaml").write_text(CLAIMS.replace("1 MiB", "4 MiB"))
    (evidence_study / "figures.yaml").unlink()
    _, exclusions = judged(evidence_study)
    assert exclusions == (
        "4 x paper: runs of scenarios that the study does not have",
        "1 x paper: runs of scenarios that were changed since",
    )


def test_a_run_that_lies_with_another_experiment_too_counts_once_and_is_named(
    evidence_study: Path, tmp_path: Path
) -> None:
    row = file_of(evidence_study, "one-drop").read_text().splitlines(keepends=True)[1]
    with file_of(evidence_study, "delay").open("a") as other:
        other.write(row)
    belongs = "1 x paper: runs in the file of experiment delay that belong to another"
    assert judged(evidence_study) == ({"window-limits": "reproduced", "halves": "reproduced"}, (belongs,))
    assert evidence_in(evidence_study).runs == 9


def test_results_of_another_study_or_seed_are_refused_and_missing_runs_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = repository(tmp_path, monkeypatch)
    results = tmp_path / "results" / "small"
    write_results(study, results, omit=lambda run: run.repetition == 2)
    assert "left out: 4 runs that are missing" in add(results)
    manifest = study / "study.yaml"
    manifest.write_text(manifest.read_text() + "seed: 7\n")
    with pytest.raises(StudyError, match="seed 1"):
        add(results)
    for name in ("study", "claims", "figures"):
        path = study / f"{name}.yaml"
        path.write_text(path.read_text().replace("study: small", "study: another").replace("seed: 7\n", ""))
    with pytest.raises(StudyError, match="'another'"):
        add(results)


def test_the_report_has_the_verdict_by_all_evidence_first(evidence_study: Path, tmp_path: Path) -> None:
    results = tmp_path / "results" / "small"
    judge_study(results, evidence_study)
    path = file_of(evidence_study, "delay")
    path.write_text(path.read_text(encoding="ascii").splitlines(keepends=True)[0], encoding="ascii")
    page = write_report(results, StudyFolder(evidence_study), evidence_in(evidence_study)).read_text(encoding="utf-8")
    row = page.split('<article class="claim is-undecided" id="claim-window-limits">')[1].split("</article>")[0]
    by_evidence, by_runs = row.split("By the runs of this report alone")
    assert "run missing" in by_evidence and "reproduced" in by_runs


def test_a_run_that_two_experiments_need_is_evidence_for_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = repository(tmp_path, monkeypatch)
    more = "  - {id: again, like: delay, pairs_with: delay}\n"
    change(study / "study.yaml", "  - id: one-drop\n", f"{more}  - id: one-drop\n")
    write_results(study, tmp_path / "results" / "small")
    assert "17 runs added" in add(tmp_path / "results" / "small")
    found = [row.run_id for own in read_rows(study, "small").values() for row in own.values()]
    assert len(found) == 17 and len({*found}) == 9


def test_a_run_of_one_profile_counts_in_another_that_has_it_too(evidence_study: Path, tmp_path: Path) -> None:
    change(evidence_study / "study.yaml", "study: small\n", "study: small\nprofiles: {quick: {repetitions: 3}}\n")
    path = file_of(evidence_study, "delay")
    change(path, '"profile":"paper"', '"profile":"quick"')
    (path.parents[1] / "quick").mkdir()
    elsewhere = path.rename(path.parents[1] / "quick" / path.name)
    found = evidence_in(evidence_study)
    assert found.runs == 9 and not found.exclusions
    assert [(item.verdict.verdict, item.profile) for item in found.judged] == [("reproduced", "paper")] * 2
    path.write_text(elsewhere.read_text().replace("quick", "paper").replace('"measured":"', '"measured":"0', 1))
    with pytest.raises(StudyError, match="contradicts itself"):
        judged(evidence_study)


def test_a_missing_repetition_is_named_and_its_claims_are_undecided(evidence_study: Path) -> None:
    path = file_of(evidence_study, "delay")
    gone = next(line for line in path.read_text().splitlines() if '"repetition":1,' in line)
    change(path, f"{gone}\n", "")
    words, exclusions = judged(evidence_study)
    assert words["window-limits"] == "undecided"
    assert json.loads(gone)["scenario"] in " ".join(exclusions) and "repetition 1" in " ".join(exclusions)


def test_a_withdrawn_row_does_not_come_back(evidence_study: Path) -> None:
    path = file_of(evidence_study, "one-drop")
    text = path.read_text(encoding="ascii")
    wrong = text.splitlines()[1]
    withdrawal = json.dumps({**json.loads(wrong), "values": {}, "withdrawn": "a wrong clock"})
    path.write_text(f"{text}{withdrawal}\n{wrong}\n", encoding="ascii")
    (kept,) = (of for place, of in read_rows(evidence_study, "small").items() if place.experiment == "one-drop")
    assert [row.withdrawn for row in kept.values()] == ["a wrong clock"]
    assert "a wrong clock" in " ".join(judged(evidence_study)[1])
    write_rows(evidence_study, "small", read_rows(evidence_study, "small"))
    assert "a wrong clock" in path.read_text(encoding="ascii") and wrong not in path.read_text(encoding="ascii")
