# SPDX-License-Identifier: Apache-2.0
"""Conversion of claims: each kind of test becomes a relation, what repeats becomes a loop, comments stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from converting import study

from longfat.convert import converted_claims
from longfat.errors import StudyError
from longfat.manifest.source import read_source
from longfat.relations.claims import claims_of

HEAD = "format: 1\nstudy: small\nclaims:\n"
A_CLAIM = """\
  - id: {id}
    kind: numeric
    statement: It holds.
    paper: {{value: 1, where: table 1}}
    test: {test}
"""
FAST = "{metric: goodput, experiment: single, where: {algorithm: highspeed, window: 1 MiB}}"
SLOW = "{metric: goodput, experiment: single, where: {algorithm: standard, window: 1 MiB}}"


def converted(folder: Path, text: str) -> str:
    path = folder / "claims.yaml"
    path.write_text(text, encoding="utf-8")
    return converted_claims(path, study())


def relations(folder: Path, test: str) -> list[str]:
    """The relations of a claim with the test, as format 2 reads them."""
    new = converted(folder, HEAD + A_CLAIM.format(id="one", test=test))
    (folder / "claims.yaml").write_text(new, encoding="utf-8")
    (claim,) = claims_of(read_source(folder / "claims.yaml"), study())
    return [relation.text for relation in claim.relations]


@pytest.mark.parametrize(
    ("test", "relation"),
    [
        (
            f"{{kind: value, of: {FAST}, equals: 94}}",
            "goodput[single, highspeed, window=1 MiB] = 94",
        ),
        (
            f"{{kind: ratio, of: {FAST}, to: {SLOW}, above: 1}}",
            "goodput[highspeed] / goodput[standard] > 1 in single where window=1 MiB",
        ),
        (
            f"{{kind: gain, of: {FAST}, over: {SLOW}, above: 5}}",
            "gain(goodput[highspeed], goodput[standard]) > 5 in single where window=1 MiB",
        ),
        (
            f"{{kind: difference, of: {FAST}, minus: {SLOW}, above: 0}}",
            "goodput[highspeed] - goodput[standard] > 0 in single where window=1 MiB",
        ),
        (
            "{kind: order, of: {metric: goodput, experiment: single}, by: algorithm, "
            "descending: [highspeed, standard], for_each: window}",
            "goodput[highspeed] > goodput[standard] in single for window",
        ),
        (
            "{kind: order, of: {metric: goodput, experiment: pairs, flow: one}, "
            "minus: {metric: goodput, experiment: pairs, flow: two}, by: first, descending: [highspeed, standard]}",
            "goodput[first=highspeed, flow=one] - goodput[first=highspeed, flow=two] > "
            "goodput[first=standard, flow=one] - goodput[first=standard, flow=two] in pairs",
        ),
        (
            "{kind: order, of: {metric: goodput, experiment: single, where: {window: [64 KiB, 1 MiB]}}, "
            "by: algorithm, descending: [highspeed, standard], for_each: window}",
            "goodput[highspeed] > goodput[standard] in single for window where window=64 KiB | 1 MiB",
        ),
        (
            "{kind: equal, of: {metric: goodput, experiment: single}, across: algorithm, for_each: window}",
            "alike(goodput[single] over algorithm) for window",
        ),
        (
            "{kind: equal, of: {metric: goodput, experiment: single}, across: window, approximate: true}",
            "alike(goodput[single] over window, nearly)",
        ),
        (
            "{kind: rank, of: {metric: goodput, experiment: pairs}, "
            "then: {metric: goodput, experiment: pairs, flow: one}, by: first, value: standard, at_most: 1}",
            "rank(standard of first by goodput then goodput[flow=one]) <= 1 in pairs",
        ),
        (
            "{kind: rank, of: {metric: goodput, experiment: pairs}, then: {metric: goodput, experiment: pairs}, "
            "by: first, value: standard, equals: 2}",
            "rank(standard of first by goodput[pairs]) = 2",
        ),
        (
            "{kind: formula, formula: bandwidth_delay_product, arguments: {rate: 1 Gbit/s, rtt: 30 ms}, equals: 3.75}",
            "bandwidth_delay_product(rate=1 Gbit/s, rtt=30 ms) = 3.75",
        ),
    ],
)
def test_each_kind_of_test_becomes_a_relation(tmp_path: Path, test: str, relation: str) -> None:
    assert relations(tmp_path, test) == [relation]


@pytest.mark.parametrize(
    ("limit", "written"),
    [
        ("equals: 94", "= 94"),
        ("equals: 94, approximate: true", "~ 94"),
        ("equals: 94, plus_minus: 1.5", "= 94 \N{PLUS-MINUS SIGN} 1.5"),
        ("above: -1", "> -1"),
        ("below: 0.0000001", "< 1e-07"),
        ("at_least: 1", ">= 1"),
        ("at_most: 1", "<= 1"),
        ("between: [1, 7]", "in [1, 7]"),
    ],
)
def test_each_limit_has_its_sign(tmp_path: Path, limit: str, written: str) -> None:
    test = f"{{kind: value, of: {{metric: goodput, experiment: single}}, {limit}}}"
    assert relations(tmp_path, test) == [f"goodput[single] {written}"]


@pytest.mark.parametrize(
    ("where", "written"),
    [
        ('window: "> 64 KiB"', "window > 64 KiB"),
        ("window: [64 KiB, 1 MiB]", "window=64 KiB | 1 MiB"),
        ("window: 65536", "window=65536"),
        ("algorithm: scalable", "scalable"),
        ('algorithm: "!= scalable"', "algorithm != scalable"),
    ],
)
def test_conditions_are_written_as_items(tmp_path: Path, where: str, written: str) -> None:
    test = f"{{kind: value, of: {{metric: goodput, experiment: single, where: {{{where}}}}}, above: 1}}"
    assert relations(tmp_path, test) == [f"goodput[single, {written}] > 1"]


def test_a_value_of_two_factors_is_told_by_its_factor(tmp_path: Path) -> None:
    test = "{kind: value, of: {metric: goodput, experiment: pairs, where: {second: highspeed}, flow: two}, above: 1}"
    assert relations(tmp_path, test) == ["goodput[pairs, second=highspeed, flow=two] > 1"]


def ratio(window: str, algorithm: str = "highspeed", limit: str = "above: 1") -> str:
    sides = (f"{{metric: goodput, experiment: single, where: {{algorithm: {one}, window: {window}}}}}" for one in (
        algorithm, "standard"))  # fmt: skip
    return "{{kind: ratio, of: {}, to: {}, {}}}".format(*sides, limit)


def test_parts_that_differ_in_one_value_become_a_loop(tmp_path: Path) -> None:
    parts = [ratio("64 KiB"), ratio("1 MiB"), ratio("4 MiB", limit="above: 2")]
    assert relations(tmp_path, f"{{kind: all, tests: [{', '.join(parts)}]}}") == [
        "goodput[highspeed] / goodput[standard] > 1 in single for window in [64 KiB, 1 MiB] where window",
        "goodput[highspeed] / goodput[standard] > 2 in single where window=4 MiB",
    ]


def test_a_loop_along_values_of_one_side_leaves_the_other_as_it_is(tmp_path: Path) -> None:
    parts = [ratio("1 MiB", "highspeed"), ratio("1 MiB", "scalable")]
    assert relations(tmp_path, f"{{kind: all, tests: [{', '.join(parts)}]}}") == [
        "goodput[algorithm] / goodput[standard] > 1 in single for algorithm in [highspeed, scalable] where window=1 MiB"
    ]


def test_parts_that_differ_in_two_values_stay_apart(tmp_path: Path) -> None:
    parts = [ratio("64 KiB", "highspeed"), ratio("1 MiB", "scalable")]
    assert len(relations(tmp_path, f"{{kind: all, tests: [{', '.join(parts)}]}}")) == 2


FORMAT_1 = """\
# What the claims are.
format: 1
study: small
claims:
  # Above the first.
  - id: first
    artifact: fig-1
    also: [fig-2]
    kind: ratio
    statement: "HighSpeed TCP carries more, whatever the window: by a seventh."
    # As printed.
    paper: {value: [14, 15.5], unit: "%", where: "figure 11, left"}
    # What is called more.
    test:
      kind: all
      tests:
        - {kind: gain, of: {metric: goodput, experiment: single, where: {algorithm: highspeed}}, over: {metric: goodput, experiment: single, where: {algorithm: standard}}, equals: 14}
        - {kind: value, of: {metric: goodput, experiment: single, where: {algorithm: highspeed}}, above: 1}

  # A part of the file.

  - id: second
    kind: qualitative
    statement: >-
      The cards are of another make than those that this laboratory has, and what they do on their own is not known at
      all.
    paper: {where: section 2}
    test: {kind: not_testable, reason: There are no cards.}
  # The end.
"""  # noqa: E501

FORMAT_2 = """\
# What the claims are.
format: 2
study: small
claims:
  # Above the first.
  # What is called more.
  - id: first
    artifact: fig-1
    also: [fig-2]
    statement: "HighSpeed TCP carries more, whatever the window: by a seventh."
    # As printed.
    paper: {value: [14, 15.5], unit: "%", where: "figure 11, left"}
    relation:
      - gain(goodput[highspeed], goodput[standard]) = 14 in single
      - goodput[single, highspeed] > 1

  # A part of the file.
  - id: second
    statement: >-
      The cards are of another make than those that this laboratory has, and what they do on their own is not known at
      all.
    paper: {where: section 2}
    not_testable: There are no cards.
  # The end.
"""


def test_comments_and_all_else_of_a_claim_stay(tmp_path: Path) -> None:
    assert converted(tmp_path, FORMAT_1) == FORMAT_2


def test_a_file_without_claims_stays_one(tmp_path: Path) -> None:
    assert converted(tmp_path, HEAD.replace("claims:", "claims: []")) == "format: 2\nstudy: small\nclaims: []\n"


def refused(folder: Path, *tests: str) -> list[str]:
    """The problems of claims with these tests, called a, b and so on."""
    claims = [A_CLAIM.format(id=name, test=test) for name, test in zip("abc", tests, strict=False)]
    with pytest.raises(StudyError) as caught:
        converted(folder, HEAD + "".join(claims))
    return [str(problem) for problem in caught.value.problems]


def test_a_factor_that_has_gone_is_named_with_its_claim_and_what_to_do(tmp_path: Path) -> None:
    gone = "{kind: value, of: {metric: goodput, experiment: single, where: {streams: 16}}, above: 1}"
    across = "{kind: equal, of: {metric: goodput, experiment: single}, across: streams}"
    first, second = refused(tmp_path, gone, across)
    assert first.endswith(
        "claims.yaml:8: claims[0].test.of.where.streams: claim 'a': 'streams' is no factor of 'single' in the "
        "converted study; factors there: algorithm, window (choose the runs by one of these, or give 'streams' in "
        "the sweep of 'single' again)"
    )
    assert "claims[1].test.across: claim 'b': 'streams' is no factor" in second


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("{kind: guess}", "unknown kind of test 'guess'"),
        ("{kind: value, of: {metric: goodput, experiment: single}}", "give exactly one of equals, above"),
        ("{kind: value, of: {metric: goodput, experiment: none}, above: 1}", "claim 'a': unknown experiment 'none'"),
        ("{kind: value, of: {metric: goodpt, experiment: single}, above: 1}", "claim 'a': column 1 of 'goodpt[single]"),
        ("{kind: all, tests: [{kind: not_testable, reason: No.}]}", "say it of the whole claim"),
    ],
)
def test_a_faulty_test_is_refused(tmp_path: Path, test: str, message: str) -> None:
    (problem,) = refused(tmp_path, test)
    assert message in problem
