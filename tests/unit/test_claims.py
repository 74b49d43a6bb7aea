# SPDX-License-Identifier: Apache-2.0
"""Claims: loading with all problems at once, and verdicts on known truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabricated_results import CLAIMS, change_json, judge_study, write_results, write_study
from own_metrics import own_metrics

from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.plan import PlannedRun
from longfat.relations.judge import Verdict, read_verdicts
from longfat.relations.limits import Limits
from longfat.system.errors import RigError, StudyError

ROOT = Path(__file__).parents[2]
HEAD = "format: 2\nstudy: small\nclaims:\n"


def claim(relation: str, name: str = "one") -> str:
    return (
        f"  - id: {name}\n    statement: Something.\n"
        f"    paper: {{value: 1, where: somewhere}}\n    relation: '{relation}'\n"
    )


def problems(tmp_path: Path, text: str) -> str:
    study = write_study(tmp_path, claims=text)
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(study).claims
    return str(caught.value)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")

    def bend(run: PlannedRun, record: Path) -> None:
        # HighSpeed gets 10 % less; repetitions differ by 0.1 %.
        factor = (0.9 if run.factors.get("algorithm") == "highspeed" else 1) * (1 - run.repetition / 1000)
        change_json(record / "flows.json", lambda data: data[0].update(goodput_bps=data[0]["goodput_bps"] * factor))

    write_results(write_study(folder, repetitions=4), folder, bend)
    build_dataset(folder)
    return folder


def verdict_on(results: Path, tmp_path: Path, relation: str) -> Verdict:
    study = write_study(tmp_path, claims=HEAD + claim(relation))
    return judge_study(results, study)[0]


STANDARD = "goodput[delay, standard, window > 1 MiB]"
HIGHSPEED = "goodput[delay, highspeed, window > 1 MiB]"
RANK = "of algorithm by goodput[delay, window=8 MiB] then goodput[delay, flow=stream1])"
own_metrics("sandia-2003")  # its `points` and `linear_growth`
SLOPE = "linear_growth[one-drop, since=1600 ms, until=3 s, segment=8948 B]"


@pytest.mark.parametrize(
    ("relation", "verdict"),
    [
        # The fake gives 990 Mb/s less 0.1 to 0.2 %, and HighSpeed 10 % less than that.
        ("goodput[delay, window=8 MiB] = 940", "reproduced"),
        ("goodput[delay, window=8 MiB] = 800", "not_reproduced"),
        ("goodput[delay, window=8 MiB] ~ 1020", "reproduced"),
        ("goodput[delay, window=8 MiB] > 938.7", "inconclusive"),
        ("goodput[standard] > goodput[highspeed] in delay where window=8 MiB", "reproduced"),
        ("goodput[highspeed] < goodput[standard] in delay where window=8 MiB", "reproduced"),
        ("goodput[highspeed] > goodput[standard] in delay where window=8 MiB", "not_reproduced"),
        ("goodput[algorithm] > 800 in delay for algorithm in [standard, highspeed] where window=8 MiB", "reproduced"),
        ("goodput[delay, window=8 MiB] > 950 for algorithm", "not_reproduced"),
        ("goodput[delay, window=8 MiB] > 950 for algorithm != highspeed", "reproduced"),
        ("goodput[x] > 950 in delay for x in [standard] where window=8 MiB", "reproduced"),
        ("alike(goodput[delay, window=8 MiB] over algorithm)", "not_reproduced"),
        ("alike(goodput[delay, standard, window=8 MiB | 1 MiB] over algorithm)", "not_measured"),
        # 8 MiB has 990 Mb/s; over the two algorithms, HighSpeed TCP has 890.
        ("count(goodput[delay, window=8 MiB] >= 950 for algorithm) = 1", "reproduced"),
        ("count(goodput[delay, window=8 MiB] >= 800 for algorithm) = 2", "reproduced"),
        ("count(goodput[delay, window=8 MiB] < 950 for algorithm) = 2", "not_reproduced"),
        (f"gain({STANDARD}, {HIGHSPEED}) in [9, 13]", "reproduced"),
        (f"gain({STANDARD}, {HIGHSPEED}) = 11 ± 3", "agrees"),
        (f"{STANDARD} / {HIGHSPEED} = 1.11", "reproduced"),
        (f"100 * ({STANDARD} / {HIGHSPEED} - 1) = 11 ± 3", "agrees"),
        (f"{STANDARD} = {HIGHSPEED}", "not_reproduced"),
        (f"{STANDARD} >= {HIGHSPEED}", "reproduced"),
        (f"{STANDARD} - {HIGHSPEED} > 80", "reproduced"),
        (f"{STANDARD} - {HIGHSPEED} > 98", "inconclusive"),
        ("max(goodput[delay, window=8 MiB] for algorithm) > 950", "reproduced"),
        ("min(goodput[delay, window=8 MiB] for algorithm) > 950", "not_reproduced"),
        ("min(goodput[delay, window=8 MiB] for algorithm != highspeed) > 950", "reproduced"),
        ("drop_ratio[one-drop, at=1500 ms] = 0.5", "reproduced"),
        ("drop_ratio[one-drop, at=1500 ms] = 0.6 ± 0.15", "agrees"),
        ("drop_ratio[one-drop, at=1500 ms] = 0.6 ± 0.01", "not_reproduced"),
        (f"{STANDARD} > 0.998 * {STANDARD}", "not_reproduced"),
        (f"{SLOPE} <= 1", "reproduced"),
        # Of the two windows that of 8 MiB reaches the level.
        ("reaches[delay, standard, level=800 Mbit/s] = 50", "reproduced"),
        ("reaches[delay, standard, level=1 Gbit/s] < 50", "reproduced"),
        ("cuts[one-drop] = 1", "reproduced"),
        ("cuts[one-drop, until=1500 ms] >= 1", "not_reproduced"),
        ("retransmissions[one-drop] = 1", "reproduced"),
        ("points[one-drop, since=1 s] > 9", "reproduced"),
        ("convergence[one-drop, part=0.5] > 9", "not_measured"),
        (f"rank(standard {RANK} = 1", "reproduced"),
        (f"rank(highspeed {RANK} = 2", "reproduced"),
        (f"rank(highspeed {RANK} <= 1", "not_reproduced"),
        ("quotient(numerator=3 s, denominator=2 s) = 1.5", "reproduced"),
        ("quotient(numerator=3 s, denominator=2 s) < 1.5", "not_reproduced"),
        ("quotient(numerator=3, denominator=2) = 3 / 2", "reproduced"),
    ],
)
def test_a_verdict_follows_from_known_truth(results: Path, tmp_path: Path, relation: str, verdict: str) -> None:
    found = verdict_on(results, tmp_path, relation)
    assert found.verdict == verdict, found.evidence


def test_a_loop_holds_a_factor_at_each_value_that_a_condition_on_it_leaves(results: Path, tmp_path: Path) -> None:
    relation = "goodput[delay, algorithm=standard | highspeed, window=8 MiB] > 950 for algorithm"
    highspeed, standard = sorted(verdict_on(results, tmp_path, relation).evidence, key=lambda one: one.mean or 0)
    assert (highspeed.outcome, standard.outcome) == ("fails", "holds")
    assert "algorithm standard window 8 MiB" in standard.what


def test_of_several_relations_each_must_hold(results: Path, tmp_path: Path) -> None:
    holds, fails = "quotient(numerator=3, denominator=2) = 1.5", "quotient(numerator=3, denominator=2) > 2"
    for second, verdict in ((holds, "reproduced"), (fails, "not_reproduced")):
        text = HEAD + claim("X").replace("'X'", f"['{holds}', '{second}']")
        (found,) = judge_study(results, write_study(tmp_path / verdict, claims=text))
        assert found.verdict == verdict
        assert len(found.evidence) == 2


def test_a_chain_compares_each_with_the_next(results: Path, tmp_path: Path) -> None:
    chain = "1100 > goodput[standard] > goodput[highspeed] > 800 in delay where window=8 MiB"
    found = verdict_on(results, tmp_path, chain.removeprefix("1100 > "))
    assert [item.outcome for item in found.evidence] == ["holds", "holds"]


def test_evidence_has_mean_spread_n_and_limit(results: Path, tmp_path: Path) -> None:
    found = verdict_on(results, tmp_path, f"{STANDARD} = 990").evidence[0]
    assert (found.n, found.runs) == (4, 4)
    assert found.limit == "940.5 to 1,039.5 Mb/s"
    assert found.what == "goodput of delay algorithm standard window > 1 MiB"
    assert found.mean is not None
    assert found.mean == pytest.approx(990.04 * 0.9975, rel=1e-3)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.mean < found.high
    every = verdict_on(results, tmp_path, "goodput[delay] > 1").evidence[0]
    assert (every.n, every.runs) == (4, 16)


def test_a_difference_that_is_only_rounding_is_no_order(results: Path, tmp_path: Path) -> None:
    growth = "linear_growth[one-drop, since={} ms, until={} ms, segment=8948 B]"
    same = f"{growth.format(1600, 2700)} - {growth.format(1800, 2500)} > 0"
    assert verdict_on(results, tmp_path, same).verdict == "not_reproduced"


def test_the_evidence_of_a_rank_names_value_and_both_quantities(results: Path, tmp_path: Path) -> None:
    found = verdict_on(results, tmp_path, f"rank(highspeed {RANK} = 2").evidence[0]
    first, second = "goodput of delay window 8 MiB", "goodput of delay flow stream1"
    assert found.what == f"rank of algorithm highspeed by {first}, where equal by {second}"
    assert (found.mean, found.n, found.low, found.high, found.limit) == (2, 4, 2, 2, "1.9 to 2.1")


def test_a_claim_that_says_so_is_not_testable_with_its_reason(results: Path, tmp_path: Path) -> None:
    text = HEAD + claim("X").replace("relation: 'X'", "not_testable: no capture unit")
    (found,) = judge_study(results, write_study(tmp_path, claims=text))
    assert (found.verdict, found.reason, found.evidence) == ("not_testable", "no capture unit", ())


def test_a_claim_whose_runs_are_missing_is_not_measured_and_says_which(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    write_results(study, tmp_path, omit=lambda run: run.experiment == "one-drop" or run.repetition == 2)
    build_dataset(tmp_path)
    verdicts = {verdict.claim: verdict for verdict in judge_study(tmp_path, study)}
    assert verdicts["halves"].verdict == "not_measured"
    assert "0 of 1 repetitions are valid, at least 2 are needed: run missing (1 x)" in str(verdicts["halves"].reason)
    assert verdicts["window-limits"].verdict == "not_measured"
    assert "1 of 2 repetitions are valid, at least 2 are needed" in str(verdicts["window-limits"].reason)


def test_a_claim_on_an_experiment_outside_the_lock_is_not_measured(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    write_results(study, tmp_path)
    text = (study / "study.yaml").read_text(encoding="utf-8").replace("id: one-drop", "id: renamed")
    (study / "study.yaml").write_text(text, encoding="utf-8")
    (study / "claims.yaml").write_text(CLAIMS.replace("one-drop", "renamed"), encoding="utf-8")
    build_dataset(tmp_path)
    last = judge_study(tmp_path, study)[-1]
    assert (last.verdict, last.reason) == (
        "not_measured",
        "outstanding data after over before the drop of renamed: the lock has no such run of experiment 'renamed'",
    )


def test_judging_twice_gives_the_same_bytes_and_reads_back(results: Path, tmp_path: Path) -> None:
    study = write_study(tmp_path)
    given = judge_study(results, study)
    before = (results / "verdicts.json").read_bytes()
    assert read_verdicts(results) == given
    judge_study(results, study)
    assert (results / "verdicts.json").read_bytes() == before
    assert json.loads(before)["verdicts"][0]["claim"] == "window-limits"
    assert not list(results.glob(".verdicts*"))


def test_damaged_verdicts_are_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "verdicts.json").write_text('{"verdicts": [{}]}', encoding="ascii")
    with pytest.raises(RigError, match="the verdicts cannot be read"):
        read_verdicts(tmp_path)


def test_two_claims_of_one_name_are_an_error_with_file_and_line(tmp_path: Path) -> None:
    text = problems(tmp_path, HEAD + claim("goodput[delay] > 1") * 2)
    assert "claims.yaml:8: claims[1].id: claim 'one' is given twice; names are unique" in text


def test_all_problems_are_reported_at_once_with_line_column_and_nearest_match(tmp_path: Path) -> None:
    text = problems(
        tmp_path,
        HEAD
        + claim("goodput[delay] ? 1", "a")
        + claim("goodput[delay] = ", "b")
        + claim("X", "c").replace("relation", "relatoin"),
    )
    assert "claims.yaml has 3 problems" in text
    assert "claims.yaml:7: claims[0].relation[0]: column 16 of 'goodput[delay] ? 1': '?' was not expected here" in text
    assert "one of < <= > >= = ~" in text
    assert "column 18 of 'goodput[delay] = ': " in text
    assert "claims.yaml:15: claims[2].relatoin: unknown key 'relatoin'" in text


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ("goodput[delay, since=0.5 us] > 1", "'0.5 us' is not a whole number of us"),
        ("goodput[delay, since=99999999999999999999 s] > 1", "more digits than a quantity may have"),
        ("goodput[delay] > 1e400", "column 18 of"),
        (f"goodput[delay] > {'9' * 5000}", "number out of range"),
        ("goodput[delay] > -1e400", "number out of range"),
        ("godput[delay] = 1", "unknown metric 'godput'"),
        ("quotiend(numerator=1, denominator=2) = 1", "unknown formula 'quotiend'"),
        ("goodput[dely] = 1", "column 9 of 'goodput[dely] = 1': unknown experiment 'dely'"),
        ("goodput = 1", "goodput names no experiment; allowed: delay, one-drop"),
        ("goodput[delay, windwo=1 MiB] = 1", "unknown name for goodput[delay] 'windwo'"),
        ("goodput[delay, window=7 MiB] = 1", "no run of experiment 'delay' meets these conditions"),
        ("goodput[delay, flow=stream2] = 1", "unknown flow 'stream2'"),
        ("goodput[delay, flow > stream1] = 1", "a flow is named by `flow=NAME`"),
        ("goodput[delay, cubic] > 1", "unknown value of a factor of 'delay' 'cubic'"),
        ("goodput[delay, standard, algorithm=highspeed] > 1", "'algorithm' is given twice"),
        ("goodput[delay, x] > 1 for x in [standard, cubic]", "unknown value of a factor of 'delay' 'cubic'"),
        ("goodput[delay] > 1 for speed", "'speed' is not a factor of these metrics"),
        (
            "goodput[delay, window=8 MiB] > goodput[delay, window] for window != 8 MiB",
            "there is no value for window among the runs of the relation's first metric that has it",
        ),
        ("alike(goodput[delay] over algoritm)", "unknown factor 'algoritm'"),
        ("drop_ratio[one-drop] = 0.5", "metric 'drop_ratio' needs at"),
        ("goodput[delay, at=1 s] = 1", "unknown name for goodput[delay] 'at'"),
        ("plateau[one-drop, since=2 s, until=1 s] = 1", "the window of 'plateau' from 2 s to 1 s is empty"),
        ("convergence[delay, part=0.5, flow=stream1] = 1", "metric 'convergence' takes no flow"),
        ("reaches[delay] = 1", "metric 'reaches' needs level"),
        ("reaches[delay, level=800] = 50", "level is '800'; allowed: a rate"),
        ("points[one-drop, since > 1 s] = 50", "'since' is a parameter: write since=VALUE"),
        (f"rank(cubic {RANK} = 1", "unknown algorithm 'cubic'"),
        (f"rank(standard {RANK} = 1".replace("of algorithm", "of algorithmr"), "unknown factor 'algorithmr'"),
        (
            "rank(standard of algorithm by goodput[delay] then goodput[one-drop]) = 1",
            "the ranked metrics are of experiments 'delay' and 'one-drop'",
        ),
        (f"rank(highspeed of algorithm by {STANDARD}) = 1", "unknown algorithm 'highspeed'; allowed: standard"),
        ("quotient(numerator=1) = 1", "needs denominator"),
        ("quotient(numerator=1, denominator=0) = 1", "argument denominator is '0'; allowed: a number or a quantity"),
        ("quotient = 1", "quotient is a formula; write its arguments in parentheses"),
        ("goodput[delay] = 0", "0 has no relative tolerance"),
        ("goodput[delay] in [3, 2]", "between 3 and 2"),
        ("count(goodput[delay, standard] = 500 for window) = 1", "column 32 of"),
        ("count(goodput[delay, standard] = 500 for window) = 1", "count has =; allowed: >=, <=, > or <"),
        ("count(goodput[delay, cubic] > 500 for window) = 1", "unknown value of a factor of 'delay' 'cubic'"),
    ],
)
def test_a_faulty_relation_is_refused_with_its_reason(tmp_path: Path, relation: str, message: str) -> None:
    assert message in problems(tmp_path, HEAD + claim(relation))


def test_a_claim_needs_a_relation_or_a_reason_for_none(tmp_path: Path) -> None:
    text = HEAD + claim("X").replace("    relation: 'X'\n", "")
    assert "give either `relation`" in problems(tmp_path, text)


def test_a_claim_of_a_paper_says_what_the_paper_states(tmp_path: Path) -> None:
    text = HEAD + claim("goodput[delay] > 1").replace("    paper: {value: 1, where: somewhere}\n", "")
    assert "claim 'one' lacks the statement of the paper (give `paper`" in problems(tmp_path, text)


CELLS = "claim,window,value,error,n\nsmall,1 MiB,280,10,4\nlarge,8 MiB,940,,4\n"
TABLE = """\
format: 2
study: small
tables:
  - file: goodput.csv
    artifact: tab-1
    unit: Mb/s
    where: table 1
    statement: A window of ${window} gives ${value} Mb/s.
    relation: goodput[delay, standard, window=${window}] = ${value}
"""


WIDE = "claim,window,standard,highspeed\nsmall,1 MiB,280,290\n,4 MiB,600,610\nlarge,8 MiB,940,950\n"
SEVERAL = """\
format: 2
study: small
tables:
  - file: goodput.csv
    artifact: tab-1
    unit: Mb/s
    where: table 1
    statement: A window of ${window} gives either about the same.
    paper: ${standard} and ${highspeed}
    relation:
      - goodput[delay, standard, window=${window}] = ${standard}
      - goodput[delay, highspeed, window=${window}] = ${highspeed}
"""


def with_table(tmp_path: Path, cells: str = CELLS, document: str = TABLE) -> Path:
    study = write_study(tmp_path, claims=document)
    (study / "goodput.csv").write_text(cells, encoding="utf-8")
    return study


def test_the_cells_of_a_table_are_claims(results: Path, tmp_path: Path) -> None:
    small, large = judge_study(results, with_table(tmp_path))
    assert (small.claim, small.paper, small.where) == ("small", "280 ± 10 Mb/s", "table 1")
    assert (large.statement, large.verdict) == ("A window of 8 MiB gives 940 Mb/s.", "inconclusive")
    assert small.evidence[0].limit == "280 ± 10 Mb/s"
    assert large.evidence[0].limit == "893 to 987 Mb/s"


@pytest.mark.parametrize(
    ("cells", "document", "message"),
    [
        (CELLS.replace("940", "many"), TABLE, "goodput.csv, line 3: value is 'many', not a number"),
        (CELLS.replace("claim,", "clam,"), TABLE, "goodput.csv has no column claim"),
        (CELLS + "huge,9 MiB\n", TABLE, "goodput.csv, line 4: 5 columns are named, the row has others"),
        (CELLS.replace("8 MiB", "9 MiB"), TABLE, "goodput.csv, line 3: column 1 of"),
        (CELLS, TABLE.replace("${window} g", "${windwo} g"), "the table has no column 'windwo'"),
        (CELLS, TABLE.replace("goodput.csv", "other.csv"), "other.csv cannot be read"),
        (WIDE, SEVERAL.replace("= ${highspeed}", "= ${hihgspeed}"), "tables[0].relation[1]: "),
        (WIDE, SEVERAL.replace("    paper: ${standard} and ${highspeed}\n", ""), "tables[0].file: has no column value"),
        (WIDE, SEVERAL.replace("paper: ${standard}", "paper: ${standrad}"), "tables[0].paper: "),
    ],
)
def test_a_faulty_table_is_refused_with_file_and_line(tmp_path: Path, cells: str, document: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(with_table(tmp_path, cells, document)).claims
    assert message in str(caught.value)


def test_limits_are_those_of_the_policy() -> None:
    assert Limits.of("=", 100) == Limits(95, 105, True)
    assert Limits.of("~", 100) == Limits(90, 110, True)
    assert Limits.of("=", 100, 1) == Limits(99, 101, True)
    assert Limits.of("=", -1) == Limits(-1.05, -0.95, True)
    assert Limits.of("<=", 100).high == 105
    assert Limits.of(">=", 100).low == 95
    assert Limits.of(">", 100) == Limits(100, float("inf"), False)


@pytest.mark.parametrize("study", ["sandia-2003", "kelly-2003", "trinh-2004", "slac-2003", "vista-2006", "_smoke"])
def test_the_claims_of_the_studies_that_ship_agree_with_their_manifests(study: str) -> None:
    claims = StudyFolder(ROOT / "experiments" / study).claims
    assert len({claim.id for claim in claims}) == len(claims) > 0


def test_a_row_of_several_numbers_is_a_claim_and_one_without_a_claim_is_none(tmp_path: Path) -> None:
    small, large = StudyFolder(with_table(tmp_path, WIDE, SEVERAL)).claims
    assert (small.id, large.id) == ("small", "large")
    assert (small.statement, small.paper) == ("A window of 1 MiB gives either about the same.", "280 and 290 Mb/s")
    assert [relation.text for relation in large.relations] == [
        "goodput[delay, standard, window=8 MiB] = 940",
        "goodput[delay, highspeed, window=8 MiB] = 950",
    ]
