# SPDX-License-Identifier: Apache-2.0
"""Claims: loading with all problems at once, and verdicts on known truth."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from evidenced import change
from fabricated_results import change_json, judge_study, make_results, write_study
from manifests import refused
from own_metrics import own_metrics

from longfat.data.study_folder import StudyFolder
from longfat.plan import PlannedRun
from longfat.relations.judge import Verdict, read_verdicts
from longfat.relations.syntax import parse
from longfat.system.errors import StudyError

HEAD = "format: 2\nstudy: small\nclaims:\n"


def claim(name: str, relation: str, *fields: str, artifact: str = "fig-1") -> str:
    lines = [
        f"  - id: {name}",
        f"    artifact: {artifact}",
        "    statement: Something.",
        "    paper: {value: 1, where: somewhere}",
        *(f"    {line}" for line in fields),
        f"    relation: '{relation}'",
    ]
    return "\n".join(lines) + "\n"


def problems(tmp_path: Path, *claims: str) -> str:
    study = write_study(tmp_path, claims=HEAD + "".join(claims))
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

    make_results(write_study(folder, repetitions=6), folder, bend)
    return folder


def verdict_on(results: Path, tmp_path: Path, relation: str) -> Verdict:
    study = write_study(tmp_path, claims=HEAD + claim("one", relation))
    return judge_study(results, study)[0]


STANDARD = "goodput[delay, standard, window > 1 MiB]"
HIGHSPEED = "goodput[delay, highspeed, window > 1 MiB]"
RANK = "of algorithm by goodput[delay, window=8 MiB] then goodput[delay, flow=stream1])"
own_metrics("sandia-2003")  # its `points` and `linear_growth`
GROWTH = "linear_growth[one-drop, since={} ms, until={} ms, segment=8948 B]"


VERDICTS = {
    # The fake gives 990 Mb/s less 0.1 to 0.6 %, and HighSpeed 10 % less than that.
    "goodput[delay, window=8 MiB] = 940": "reproduced",
    "goodput[delay, window=8 MiB] = 800": "not reproduced",
    "goodput[delay, window=8 MiB] ~ 1020": "reproduced",
    "goodput[delay, window=8 MiB] > 938.7": "undecided",
    "(goodput[delay, window=8 MiB] - 938.7) / 2 > 0": "undecided",
    f"900 < {STANDARD} < 995": "reproduced",
    "goodput[one-drop] = 2 * 400": "not reproduced",
    "goodput[standard] > goodput[highspeed] in delay where window=8 MiB": "reproduced",
    "goodput[highspeed] > goodput[standard] in delay where window=8 MiB": "not reproduced",
    "goodput[standard] > goodput[highspeed] > 800 in delay where window=8 MiB": "reproduced",
    "goodput[standard] > goodput[highspeed] > 950 in delay where window=8 MiB": "not reproduced",
    "goodput[algorithm] > 800 in delay for algorithm in [standard, highspeed] where window=8 MiB": "reproduced",
    "goodput[delay, window=8 MiB] > 950 for algorithm": "not reproduced",
    "alike(goodput[delay, window=8 MiB] over algorithm)": "not reproduced",
    # 8 MiB has 990 Mb/s; over the two algorithms, HighSpeed TCP has 890.
    "count(goodput[delay, window=8 MiB] >= 950 for algorithm) = 1": "reproduced",
    "count(goodput[delay, window=8 MiB] < 950 for algorithm) = 2": "not reproduced",
    f"gain({STANDARD}, {HIGHSPEED}) in [9, 13]": "reproduced",
    f"gain({STANDARD}, {HIGHSPEED}) = 11 ± 3": "compatible",
    f"100 * ({STANDARD} / {HIGHSPEED} - 1) = 11 ± 3": "compatible",
    f"{STANDARD} >= {HIGHSPEED}": "reproduced",
    f"{STANDARD} - {HIGHSPEED} > 80": "reproduced",
    "max(goodput[delay, window=8 MiB] for algorithm) > 950": "reproduced",
    "min(goodput[delay, window=8 MiB] for algorithm != highspeed) > 950": "reproduced",
    "drop_ratio[one-drop, at=1500 ms] = 0.5": "reproduced",
    "drop_ratio[one-drop, at=1500 ms] = 0.6 ± 0.01": "not reproduced",
    f"{STANDARD} > 0.998 * {STANDARD}": "not reproduced",
    f"{GROWTH.format(1600, 3000)} <= 1": "reproduced",
    f"{GROWTH.format(1600, 2700)} - {GROWTH.format(1800, 2500)} > 0": "not reproduced",  # the difference is rounding
    "reaches[delay, standard, level=800 Mbit/s] = 50": "reproduced",
    "cuts[one-drop] = 1": "reproduced",
    "cuts[one-drop, since=100 ms] >= 1.4": "not reproduced",
    "retransmissions[delay, standard] = retransmissions[delay, highspeed]": "reproduced",  # none
    "retransmissions[one-drop] = 1": "reproduced",
    "convergence[one-drop, part=0.5] > 9": "undecided",
    f"rank(highspeed {RANK} = 2": "reproduced",
    f"rank(highspeed {RANK} <= 1": "not reproduced",
    f"rank(standard {RANK} <= 1": "reproduced",
    "quotient(numerator=3 s, denominator=2 s) = 1.5": "reproduced",
}


def test_a_verdict_follows_from_known_truth(results: Path, tmp_path: Path) -> None:
    text = HEAD + "".join(claim(f"c{number}", relation) for number, relation in enumerate(VERDICTS))
    found = judge_study(results, write_study(tmp_path, claims=text))
    assert dict(zip(VERDICTS, (one.verdict for one in found), strict=True)) == VERDICTS
    assert read_verdicts(results) == found


@pytest.mark.parametrize("level", ["= 1", ">= 1", "< 3"])
def test_a_count_is_open_while_values_of_the_study_have_no_runs(level: str, results: Path, tmp_path: Path) -> None:
    relation = f"count(goodput[delay, standard] >= 950 for window) {level}"
    study = write_study(tmp_path, claims=HEAD + claim("one", relation))
    change(study / "study.yaml", "[1 MiB, 8 MiB]", "[1 MiB, 8 MiB, 16 MiB]")
    (found,) = judge_study(results, study)
    assert found.verdict == "undecided"


def test_evidence_has_mean_spread_n_and_limit(results: Path, tmp_path: Path) -> None:
    found = verdict_on(results, tmp_path, f"{STANDARD} = 990").evidence[0]
    assert (found.n, found.runs) == (6, 6)
    assert found.limit == "940.5 to 1,039.5 Mb/s"
    assert found.mean == pytest.approx(990.04 * 0.9965, rel=1e-3)
    assert float(found.low or 0) < float(found.mean or 0) < float(found.high or 0)
    every = verdict_on(results, tmp_path, "goodput[delay] > 1").evidence[0]
    assert (every.n, every.runs) == (6, 24)


@pytest.mark.parametrize(("limits", "needed"), [("[938.6, 938.8]", True), ("[938.7, 970]", False)])
def test_an_undecided_verdict_names_the_repetitions_that_it_needs_if_they_are_more(
    limits: str, needed: bool, results: Path, tmp_path: Path
) -> None:
    found = verdict_on(results, tmp_path, f"goodput[delay, window=8 MiB] in {limits}")
    (one,) = found.evidence
    assert found.why == "too few runs" and one.needed and (one.needed > 6) == needed
    assert ("repetitions needed" in (found.reason or ""), found.explained.endswith(" needed")) == (needed, needed)


def test_all_problems_are_reported_at_once_with_line_column_and_nearest_match(tmp_path: Path) -> None:
    text = problems(
        tmp_path,
        claim("a", "goodput[delay] ? 1"),
        claim("b", "goodput[delay] = "),
        claim("c", "X").replace("relation", "relatoin"),
        claim("d", "goodput[delay] > 1", "needs: {lasts: 5}"),
    )
    assert "claims.yaml has 4 problems" in text and "claims[3].needs.lasts: 5 has no unit" in text
    assert "claims.yaml:8: claims[0].relation[0]: column 16 of 'goodput[delay] ? 1'" in text
    assert "claims.yaml:18: claims[2].relatoin: " in text


def test_each_error_in_a_relation_is_named(tmp_path: Path) -> None:
    relation = "godput[delay] + goodput[delay, speed=1, cubic] > rtt[one-drp]"
    text = problems(tmp_path, claim("one", relation))
    columns = [1 + relation.index(word) for word in ("godput", "speed", "cubic", "one-drp")]
    assert "4 problems" in text and all(f"column {column} of" in text for column in columns)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("deviation: {reason: known, relation: []}", "claims[0].deviation.relation: is empty; give at least one"),
        ("retest: {deviation: -3, where: table 2}", "claims[0].retest.deviation: -3.0 is out of range"),
        ("oracle: {'goodput[delay]': 2, 'goodput[ delay ]': 3}", "this number is given twice"),
    ],
)
def test_a_key_of_a_claim_is_refused_with_its_reason(tmp_path: Path, field: str, message: str) -> None:
    assert message in problems(tmp_path, claim("a", "goodput[delay] > 1", field))


MALFORMED = {
    "goodput[delay, since=0.5 us] > 1": "0.5 us",
    "goodput[delay, since=99999999999999999999 s] > 1": "digits",
    "goodput[delay] > 7 Gbit/s": "write 7",
    "goodput[delay] =< 7": "write <=",
    "goodput[delay] > 1e400": "1e400 is out of range",
    "goodput[delay] = 521 ± 15 %": "write the number alone",
    "goodput[delay] = 0": "relative tolerance",
    "goodput[delay] >= 500 ± 10": "follows = or ~",
    "goodput[delay] = 500 ± 0": "above 0",
    "goodput[delay] in [3, 2]": "between 3 and 2",
    "count(goodput[delay, standard] = 500 for window) = 1": "column 32",
}
UNFITTING = {
    "godput[delay] = 1": "'godput'",
    "quotiend(numerator=1, denominator=2) = 1": "'quotiend'",
    "goodput[dely] = 1": "column 9",
    "goodput = 1": "delay, one-drop",
    "goodput[standard] > 1 in one-drp": "unknown experiment 'one-drp'",
    "goodput[speed, standard] > 1 for speed in [dely]": "unknown experiment 'dely'",
    "goodput[highspeed] > 1": "names no experiment",
    "goodput[delay, windwo=1 MiB] = 1": "'windwo'",
    "goodput[delay, window=7 MiB] = 1": "unknown window '7 MiB'",
    "goodput[delay, window=1048576] = 1": "unknown window '1048576'",
    "goodput[delay, window != 8388608 us] = 1": "unknown window '8388608 us'",
    "goodput[delay, window > 3] = 1": "like 1 MiB",
    "goodput[delay, algorithm >= standard] = 1": "words have no order",
    "goodput[delay] > 1 where since=2 s": "of no metric",
    "cuts[one-drop, since=400 s] < 1": "these runs end",
    "goodput[delay, flow=stream2] = 1": "'stream2'",
    "goodput[delay, flow > stream1] = 1": "flow=NAME",
    "goodput[delay, cubic] > 1": "'cubic'",
    "goodput[delay, standard, algorithm=highspeed] > 1": "twice",
    "goodput[delay, flow=stream1, flow=stream1] > 1": "'flow' is given twice",
    "cuts[one-drop, since=100 ms] < 1 where since=200 ms": "'since' is given twice",
    "rtt[delay] > 31": "have no ping",
    "alike(goodput[delay, window=1 MiB] over window)": "leave one",
    "goodput[delay] > 1 for speed": "'speed'",
    "count(goodput[delay, standard] >= 4 for windw in [1 MiB, 8 MiB]) >= 2": "no metric uses 'windw'",
    "goodput[delay] > 1 for algorithm != cubic": "'cubic'",
    "goodput[delay, window=8 MiB] > goodput[delay, window] for window != 8 MiB": "no value for window",
    "drop_ratio[one-drop] = 0.5": "needs at",
    "plateau[one-drop, since=2 s, until=1 s] = 1": "empty",
    "stability[one-drop, interval=0 s] > 2": "no length",
    "convergence[delay, part=0.5, flow=stream1] = 1": "no flow",
    "reaches[delay, level=800] = 50": "a rate",
    "points[one-drop, since > 1 s] = 50": "since=VALUE",
    f"rank(cubic {RANK} = 1": "'cubic'",
    f"rank(standard {RANK} = 1".replace("of algorithm", "of algorithmr"): "'algorithmr'",
    "rank(standard of algorithm by goodput[delay] then goodput[one-drop]) = 1": "'one-drop'",
    "rank(standard of algorithm by goodput[delay, standard]) = 1": "leave one",
    "share[delay, flow=stream1] < jain[delay]": "% and a number without unit",
    "max(goodput[delay, window] for window) = drop_ratio[one-drop, at=2 s]": "Mb/s and a number without unit",
    "goodput[delay] - retransmissions[delay] > 7": "Mb/s and segments",
    "gain(cuts[one-drop], goodput[one-drop]) > 5": "cuts and Mb/s",
    "goodput[delay] >= 0": "always holds: goodput goes from 0 Mb/s",
    "max(utilisation[delay, window, since=0.1 s] for window) > 100": "never holds: utilisation goes from 0 to 100 %",
    "-2 <= share[delay, flow=stream1] <= 300": "always holds: share goes from 0 to 100 %",
    "goodput[delay] in [-5, -1]": "never holds: goodput goes from 0 Mb/s",
    "max(utilisation[delay, window, since=0.1 s] for window) in [-1, 120]": "always holds: utilisation goes from 0",
    "jain[delay] = 7 ± 0.5": "never holds: jain goes from 0 to 1",
    f"rank(standard {RANK} <= 2": "always holds: the place goes from 1 to 2",
    "count(goodput[delay, standard] >= 4 for window) > 2": "never holds: the count goes from 0 to 2",
    "quotient(numerator=1, denominator=2, numerator=3) = 1": "numerator is given twice",
    "path_segments(rate=1 Gbit/s, rtt=9 B, size=1500 B) = 1": "argument rtt is '9 B'; allowed: a length of time",
    "quotient(numerator=1) = 1": "denominator",
    "quotient(numerator=1, denominator=0) = 1": "denominator",
    "quotient(numerator=1 %, denominator=2) = 1": "a part as 0.01",
}


@pytest.mark.parametrize("faulty", [MALFORMED, UNFITTING])
def test_each_faulty_relation_is_refused_with_its_reason(tmp_path: Path, faulty: dict[str, str]) -> None:
    text = HEAD + "".join(claim(f"c{number}", relation) for number, relation in enumerate(faulty))
    study = StudyFolder(write_study(tmp_path, claims=text))
    found = {str(one.key).partition(".")[0]: f"{one.message} ({one.hint})" for one in refused(lambda: study.claims)}
    assert len(found) == len(faulty)
    assert all(text in found[f"claims[{number}]"] for number, text in enumerate(faulty.values())), found


@pytest.mark.parametrize("key", ["relation", "paper"])
def test_a_claim_needs_a_relation_and_the_paper_s_statement(tmp_path: Path, key: str) -> None:
    lines = claim("one", "goodput[delay] > 1").splitlines(keepends=True)
    assert "claims.yaml:4" in problems(tmp_path, *(line for line in lines if f"{key}:" not in line))


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


def with_table(tmp_path: Path, cells: str = CELLS, document: str = TABLE) -> Path:
    study = write_study(tmp_path, claims=document)
    (study / "goodput.csv").write_text(cells, encoding="utf-8")
    return study


def test_the_cells_of_a_table_are_claims(results: Path, tmp_path: Path) -> None:
    small, large = judge_study(results, with_table(tmp_path))
    assert (small.claim, small.paper, small.where) == ("small", "280 ± 10 Mb/s", "table 1")
    assert (large.statement, large.verdict) == ("A window of 8 MiB gives 940 Mb/s.", "undecided")
    assert small.evidence[0].limit == "260.4 to 299.6 Mb/s, the paper's 280 ± 10"
    assert large.evidence[0].limit == "893 to 987 Mb/s"


RETESTED = CELLS.replace("error,n", "error,retest").replace("10,4", "10,{}").replace(",4\n", ",\n")
REPEATED = TABLE + "    retest: {deviation: 20, where: table 2}\n"


@pytest.mark.parametrize(("given", "deviations"), [("yes", [20, None]), ("3.5", [3.5, None]), ("", [None, None])])
def test_a_row_has_no_retest_the_tables_or_its_own(tmp_path: Path, given: str, deviations: list[float | None]) -> None:
    claims = StudyFolder(with_table(tmp_path, "\ufeff" + RETESTED.format(given), REPEATED)).claims
    assert [retest.deviation if retest else None for one in claims for retest in one.retests] == deviations


@pytest.mark.parametrize(
    ("cells", "document", "message"),
    [
        (RETESTED.format("no"), REPEATED, "goodput.csv, line 2: retest: 'no' is neither yes nor a number"),
        (RETESTED.format("yes"), TABLE, "goodput.csv: the column retest needs the key `retest`"),
        (CELLS, REPEATED, "goodput.csv: the column retest is missing, and the key `retest` needs it"),
        (CELLS.replace("940", "x").replace("280", "y"), TABLE, "line 2: value is 'y', not a number; line 3: value is"),
        (CELLS.replace("claim,", "clam,"), TABLE, "goodput.csv has no column claim"),
        (CELLS.replace("8 MiB", "9 MiB"), TABLE, "unknown window '9 MiB'"),
        (CELLS.replace("10,4", "-10,4"), TABLE, "goodput.csv, line 2: error is '-10', not"),
        (RETESTED.format("inf"), REPEATED, "goodput.csv, line 2: retest: 'inf' is neither"),
        (CELLS.replace("large", "../b"), TABLE, "goodput.csv, line 3: claim '../b' is not a name"),
        (CELLS, TABLE.replace("${window} g", "${windwo} g"), "the table has no column 'windwo'"),
    ],
)
def test_a_faulty_table_is_refused_with_file_and_line(tmp_path: Path, cells: str, document: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(with_table(tmp_path, cells, document)).claims
    assert message in str(caught.value)


LIMITS = {
    "goodput[a] = 100": (95, 105),
    "goodput[a] ~ 100": (90, 110),
    "goodput[a] - goodput[b] = -1.5": (-1.55, -1.45),
    "goodput[a] - goodput[b] ~ 70": (65, 75),
    "gain(goodput[a], goodput[b]) ~ 8": (7.5, 8.5),
    "goodput[a] >= 100": (100, math.inf),
    "goodput[a] / goodput[b] <= 1": (-math.inf, 1.01),
    "goodput[a] >= goodput[b]": (0.99, math.inf),
    # Half of a small difference of two printed numbers, and 5 % of a large one.
    "goodput[a] / goodput[b] = 886 / 897": ((886 - 5.5) / 897, (886 + 5.5) / 897),
    "goodput[a] / goodput[b] = 600 / 300": (1.9, 2.1),
    # A share of 90 % leaves 10 %.
    "share[a] = 90": (89.5, 90.5),
    "share[a] = 30": (28.5, 31.5),
    # The coefficient of variation of two flows is 1/3, and 5 % may be added or taken away.
    "jain[a] = 0.9": (1 / (1 + (1 / 3 + 0.05) ** 2), 1 / (1 + (1 / 3 - 0.05) ** 2)),
    "min(jain[a, x] for x) = 1": (1 / 1.0025, 1),
    "cuts[a] = 1": (0.5, 1.5),
    "transfers[a] = 7": (6, 8),
    "transfers[a] = 140": (133, 147),
    "cuts[a] >= 2": (1.5, math.inf),
    "cuts[a] <= 0": (-math.inf, 0),
    "retransmissions[a] = 4": (3, 5),
}


@pytest.mark.parametrize("relation", LIMITS)
def test_limits_are_those_of_the_kind_of_quantity(relation: str) -> None:
    (one,) = parse(relation).comparisons
    assert (one.limits.low, one.limits.high) == pytest.approx(LIMITS[relation])
