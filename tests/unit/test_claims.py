# SPDX-License-Identifier: Apache-2.0
"""Claims: loading with all problems at once, and verdicts on known truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabricated_results import CLAIMS, change_json, write_results, write_study

from longfat.analysis.claims import load_claims
from longfat.analysis.expressions import Limits
from longfat.analysis.judge import Verdict, judge, read_verdicts
from longfat.dataset.build import build_dataset
from longfat.errors import RigError, StudyError
from longfat.plan import PlannedRun

ROOT = Path(__file__).parents[2]
HEAD = "format: 1\nstudy: small\nclaims:\n"


def claim(test: str, name: str = "one") -> str:
    return (
        f"  - id: {name}\n    kind: numeric\n    statement: Something.\n"
        f"    paper: {{value: 1, where: somewhere}}\n    test: {test}\n"
    )


def problems(tmp_path: Path, text: str) -> str:
    study = write_study(tmp_path, claims=text)
    with pytest.raises(StudyError) as caught:
        load_claims(study / "claims.yaml")
    return str(caught.value)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")

    def bend(run: PlannedRun, record: Path) -> None:
        # HighSpeed gets 10 % less; repetitions differ by 0.1 %.
        factor = (0.9 if run.factors.get("algorithm") == "highspeed" else 1) * (1 - run.repetition / 1000)
        change_json(record / "flows.json", lambda data: data[0].update(goodput_bps=data[0]["goodput_bps"] * factor))

    write_results(write_study(folder), folder, bend)
    build_dataset(folder)
    return folder


def verdict_on(results: Path, tmp_path: Path, test: str) -> Verdict:
    study = write_study(tmp_path, claims=HEAD + claim(test))
    return judge(results, study)[0]


WIDE = "{metric: goodput, experiment: delay, where: {window: 8 MiB}}"
STANDARD = "{metric: goodput, experiment: delay, where: {algorithm: standard, window: '> 1 MiB'}}"
HIGHSPEED = "{metric: goodput, experiment: delay, where: {algorithm: highspeed, window: '> 1 MiB'}}"
SLOPE = "{metric: linear_growth, experiment: one-drop, since: 1600 ms, until: 3 s, segment: 8948 B}"
LEVEL = "metric: reaches, experiment: delay, where: {algorithm: standard}"
RANK = f"kind: rank, of: {WIDE}, then: {{metric: goodput, experiment: delay, flow: stream1}}, by: algorithm"
QUOTIENT = "kind: formula, formula: quotient, arguments: {numerator: 3 s, denominator: 2 s}"


@pytest.mark.parametrize(
    ("test", "verdict"),
    [
        # The fake gives 990 Mb/s less 0.1 to 0.2 %, and HighSpeed 10 % less than that.
        (f"{{kind: value, of: {WIDE}, equals: 940}}", "reproduced"),
        (f"{{kind: value, of: {WIDE}, equals: 800}}", "not_reproduced"),
        (f"{{kind: value, of: {WIDE}, equals: 1020, approximate: true}}", "reproduced"),
        (f"{{kind: value, of: {WIDE}, above: 938.7}}", "inconclusive"),
        (f"{{kind: order, of: {WIDE}, by: algorithm, descending: [standard, highspeed]}}", "reproduced"),
        (f"{{kind: order, of: {WIDE}, by: algorithm, descending: [highspeed, standard]}}", "not_reproduced"),
        (f"{{kind: equal, of: {WIDE}, across: algorithm}}", "not_reproduced"),
        (f"{{kind: gain, of: {STANDARD}, over: {HIGHSPEED}, between: [9, 13]}}", "reproduced"),
        (f"{{kind: ratio, of: {STANDARD}, to: {HIGHSPEED}, equals: 1.11}}", "reproduced"),
        (f"{{kind: difference, of: {STANDARD}, minus: {HIGHSPEED}, above: 80}}", "reproduced"),
        (f"{{kind: difference, of: {STANDARD}, minus: {HIGHSPEED}, above: 98}}", "inconclusive"),
        (
            "{kind: value, of: {metric: drop_ratio, experiment: one-drop, at: 1500 ms}, equals: 0.5}",
            "reproduced",
        ),
        (f"{{kind: value, of: {SLOPE}, at_most: 1}}", "reproduced"),
        # Of the two windows that of 8 MiB reaches the level.
        (f"{{kind: value, of: {{{LEVEL}, level: 800 Mbit/s}}, equals: 50}}", "reproduced"),
        (f"{{kind: value, of: {{{LEVEL}, level: 1 Gbit/s}}, below: 50}}", "reproduced"),
        ("{kind: value, of: {metric: cuts, experiment: one-drop}, equals: 1}", "reproduced"),
        ("{kind: value, of: {metric: cuts, experiment: one-drop, until: 1500 ms}, at_least: 1}", "not_reproduced"),
        ("{kind: value, of: {metric: retransmissions, experiment: one-drop}, equals: 1}", "reproduced"),
        ("{kind: value, of: {metric: points, experiment: one-drop, since: 1 s}, above: 9}", "reproduced"),
        ("{kind: value, of: {metric: lead_changes, experiment: one-drop, interval: 1 s}, above: 9}", "inconclusive"),
        (f"{{{RANK}, value: standard, equals: 1}}", "reproduced"),
        (f"{{{RANK}, value: highspeed, equals: 2}}", "reproduced"),
        (f"{{{RANK}, value: highspeed, at_most: 1}}", "not_reproduced"),
        (f"{{{QUOTIENT}, equals: 1.5}}", "reproduced"),
        (f"{{{QUOTIENT}, below: 1.5}}", "not_reproduced"),
        (
            f"{{kind: all, tests: [{{{QUOTIENT}, equals: 1.5}}, {{{QUOTIENT}, above: 2}}]}}",
            "not_reproduced",
        ),
        (f"{{kind: all, tests: [{{{QUOTIENT}, equals: 1.5}}, {{{QUOTIENT}, above: 1}}]}}", "reproduced"),
    ],
)
def test_a_verdict_follows_from_known_truth(results: Path, tmp_path: Path, test: str, verdict: str) -> None:
    found = verdict_on(results, tmp_path, test)
    assert found.verdict == verdict, found.evidence


def test_evidence_has_mean_spread_n_and_limit(results: Path, tmp_path: Path) -> None:
    found = verdict_on(results, tmp_path, f"{{kind: value, of: {STANDARD}, equals: 990}}").evidence[0]
    assert found.n == 2
    assert found.limit == "940.5 to 1,039.5 Mb/s"
    assert found.what == "goodput of delay algorithm standard window > 1 MiB"
    assert found.mean is not None
    assert found.mean == pytest.approx(990.04 * 0.9985, rel=1e-3)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.mean < found.high


def test_the_scenarios_are_averaged_within_each_repetition(results: Path, tmp_path: Path) -> None:
    both = "{kind: value, of: {metric: goodput, experiment: delay}, above: 1}"
    assert verdict_on(results, tmp_path, both).evidence[0].n == 2


def test_a_difference_that_is_only_rounding_is_no_order(results: Path, tmp_path: Path) -> None:
    same = (
        "{kind: difference, of: {metric: linear_growth, experiment: one-drop, since: 1600 ms, until: 2700 ms,"
        " segment: 8948 B}, minus:"
        " {metric: linear_growth, experiment: one-drop, since: 1800 ms, until: 2500 ms,"
        " segment: 8948 B}, above: 0}"
    )
    assert verdict_on(results, tmp_path, same).verdict == "not_reproduced"


def test_the_evidence_of_a_rank_names_value_and_both_quantities(results: Path, tmp_path: Path) -> None:
    found = verdict_on(results, tmp_path, f"{{{RANK}, value: highspeed, equals: 2}}").evidence[0]
    first, second = "goodput of delay window 8 MiB", "goodput of delay flow stream1"
    assert found.what == f"rank of algorithm highspeed by {first}, where alike by {second}"
    assert (found.mean, found.n, found.low, found.high, found.limit) == (2, 2, 2, 2, "1.9 to 2.1")


def test_a_claim_that_says_so_is_not_testable_with_its_reason(results: Path, tmp_path: Path) -> None:
    found = verdict_on(results, tmp_path, "{kind: not_testable, reason: no capture unit}")
    assert (found.verdict, found.reason, found.evidence) == ("not_testable", "no capture unit", ())


def test_a_missing_run_leaves_one_repetition_and_the_claim_open(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    write_results(study, tmp_path, omit=lambda run: run.experiment == "one-drop" or run.repetition == 2)
    build_dataset(tmp_path)
    verdicts = {verdict.claim: verdict for verdict in judge(tmp_path, study)}
    assert verdicts["halves"].verdict == "inconclusive"
    assert verdicts["halves"].reason == "0 of 1 repetitions are complete, at least 1 are needed: run missing (1 x)"
    assert verdicts["window-limits"].verdict == "inconclusive"
    assert "1 of 2 repetitions are complete, at least 2 are needed" in str(verdicts["window-limits"].reason)


def test_a_claim_on_an_experiment_outside_the_lock_is_inconclusive(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    write_results(study, tmp_path)
    text = (study / "study.yaml").read_text(encoding="utf-8").replace("id: one-drop", "id: renamed")
    (study / "study.yaml").write_text(text, encoding="utf-8")
    (study / "claims.yaml").write_text(CLAIMS.replace("one-drop", "renamed"), encoding="utf-8")
    build_dataset(tmp_path)
    last = judge(tmp_path, study)[-1]
    assert (last.verdict, last.reason) == (
        "inconclusive",
        "the lock has no such run of experiment 'renamed'",
    )


def test_judging_twice_gives_the_same_bytes_and_reads_back(results: Path, tmp_path: Path) -> None:
    study = write_study(tmp_path)
    given = judge(results, study)
    before = (results / "verdicts.json").read_bytes()
    assert read_verdicts(results) == given
    judge(results, study)
    assert (results / "verdicts.json").read_bytes() == before
    assert json.loads(before)["verdicts"][0]["claim"] == "window-limits"
    assert not list(results.glob(".verdicts*"))


def test_damaged_verdicts_are_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "verdicts.json").write_text('{"verdicts": [{}]}', encoding="ascii")
    with pytest.raises(RigError, match="the verdicts cannot be read"):
        read_verdicts(tmp_path)


def test_two_claims_of_one_name_are_an_error_with_file_and_line(tmp_path: Path) -> None:
    test = "{kind: not_testable, reason: x}"
    text = problems(tmp_path, HEAD + claim(test) + claim(test))
    assert "claims.yaml:9: claims[1].id: claim 'one' is given twice; names are unique" in text


def test_all_problems_are_reported_at_once_with_line_and_nearest_match(tmp_path: Path) -> None:
    text = problems(
        tmp_path,
        HEAD
        + claim("{kind: vlaue, of: {metric: goodput, experiment: delay}, equals: 1}", "a")
        + claim("{kind: value, of: {metric: godput, experiment: delay}, equals: 1}", "b")
        + claim("{kind: formula, formula: quotiend, equals: 1}", "c")
        + claim("{kind: value, of: {metric: goodput, experiment: delay, wehre: {}}, equals: 1}", "d")
        + claim("{kind: value, of: {metric: goodput, experiment: delay}}", "e"),
    )
    assert "claims.yaml has 5 problems" in text
    assert "claims.yaml:8: claims[0].test: unknown kind of test 'vlaue'" in text
    assert "did you mean 'value'?" in text
    assert "claims.yaml:13: claims[1].test.of.metric: unknown metric 'godput'" in text
    assert "did you mean 'goodput'?" in text
    assert "claims.yaml:18: claims[2].test.formula: unknown formula 'quotiend'" in text
    assert "claims.yaml:23: claims[3].test.of.wehre: unknown key 'wehre'" in text
    assert "exactly one of equals, above, below, at_least, at_most, between; given: none" in text


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("{kind: value, of: {metric: goodput, experiment: dely}, equals: 1}", "unknown experiment 'dely'"),
        (
            "{kind: value, of: {metric: goodput, experiment: delay, where: {windwo: 1 MiB}}, equals: 1}",
            "unknown factor 'windwo'",
        ),
        (
            "{kind: value, of: {metric: goodput, experiment: delay, where: {window: 7 MiB}}, equals: 1}",
            "no run of experiment 'delay' meets these conditions",
        ),
        (
            "{kind: value, of: {metric: goodput, experiment: delay, flow: stream2}, equals: 1}",
            "unknown flow 'stream2'",
        ),
        (
            f"{{kind: order, of: {WIDE}, by: algorithm, descending: [standard, cubic]}}",
            "unknown algorithm 'cubic'",
        ),
        (
            "{kind: equal, of: {metric: goodput, experiment: delay}, across: algoritm}",
            "unknown factor 'algoritm'",
        ),
        (
            "{kind: value, of: {metric: drop_ratio, experiment: one-drop}, equals: 0.5}",
            "metric 'drop_ratio' needs at",
        ),
        (
            "{kind: value, of: {metric: goodput, experiment: delay, at: 1 s}, equals: 1}",
            "metric 'goodput' takes no at",
        ),
        (
            "{kind: value, of: {metric: plateau, experiment: one-drop, since: 2 s, until: 1 s}, equals: 1}",
            "the window from 2 s to 1 s is empty",
        ),
        (
            "{kind: value, of: {metric: lead_changes, experiment: delay, interval: 1 s, flow: stream1}, equals: 1}",
            "metric 'lead_changes' takes no flow",
        ),
        ("{kind: value, of: {metric: reaches, experiment: delay}, equals: 1}", "metric 'reaches' needs level"),
        (f"{{kind: value, of: {{{LEVEL}, level: 800}}, equals: 50}}", "800 has no unit; a rate needs one"),
        (f"{{{RANK}, value: cubic, equals: 1}}", "claims[0].test.value: unknown algorithm 'cubic'"),
        (f"{{{RANK}r, value: standard, equals: 1}}", "claims[0].test.by: unknown factor 'algorithmr'"),
        (f"{{{RANK}, value: standard}}", "exactly one of equals, above, below"),
        (
            f"{{{RANK}, value: standard, equals: 1}}".replace("experiment: delay, flow", "experiment: one-drop, flow"),
            "of and then are of experiments 'delay' and 'one-drop'",
        ),
        (
            f"{{kind: rank, of: {STANDARD}, then: {WIDE}, by: algorithm, value: highspeed, equals: 1}}",
            "the conditions on 'algorithm' leave out 'highspeed'",
        ),
        (
            f"{{{RANK}, value: standard, equals: 1}}".replace("flow: stream1", "flow: stream2"),
            "claims[0].test.then.flow: unknown flow 'stream2'",
        ),
        ("{kind: formula, formula: quotient, arguments: {numerator: 1}, equals: 1}", "needs denominator"),
        (
            "{kind: formula, formula: quotient, arguments: {numerator: 1, denominator: 0}, equals: 1}",
            "argument denominator is 0; allowed: a number or a quantity above 0",
        ),
        (
            "{kind: value, of: {metric: goodput, experiment: delay}, above: 1, approximate: true}",
            "approximate and plus_minus belong to equals",
        ),
    ],
)
def test_a_faulty_test_is_refused_with_its_reason(tmp_path: Path, test: str, message: str) -> None:
    assert message in problems(tmp_path, HEAD + claim(test))


def test_limits_are_those_of_the_policy() -> None:
    assert Limits(equals=100).bounds() == (95, 105, True)
    assert Limits(equals=100, approximate=True).bounds() == (90, 110, True)
    assert Limits(equals=100, plus_minus=1).bounds() == (99, 101, True)
    assert Limits(equals=-1).bounds() == (-1.05, -0.95, True)
    assert Limits(at_most=100).bounds()[1] == 105
    assert Limits(at_least=100).bounds()[0] == 95
    assert Limits(above=100).bounds() == (100, float("inf"), False)


@pytest.mark.parametrize("study", ["sandia-2003", "kelly-2003", "trinh-2004", "slac-2003", "vista-2006", "_smoke"])
def test_the_claims_of_the_studies_that_ship_agree_with_their_manifests(study: str) -> None:
    claims = load_claims(ROOT / "experiments" / study / "claims.yaml")
    assert len({claim.id for claim in claims}) == len(claims) > 0
