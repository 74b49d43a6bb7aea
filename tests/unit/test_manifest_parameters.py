# SPDX-License-Identifier: Apache-2.0
"""Parameters of congestion controls in a manifest: numbers and words, refused before anything boots."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.study.traffic.algorithm import Algorithm
from longfat.system.errors import Problem, StudyError

STUDY = """\
format: 2
study: example
title: An example
algorithms:
  first: {first}
  second: {second}
experiments:
  # One flow.
  - id: one
    topology: {{kind: direct, rate: 1 Gbit/s}}
    flows: [{{name: f1, from: client1, to: server, duration: 1 s, algorithm: {used}}}]
    {sweep}
"""


def load(tmp_path: Path, *, first: str, second: str = "{cca: reno}", used: str = "first", sweep: str = "") -> Study:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(first=first, second=second, used=used, sweep=sweep), encoding="utf-8")
    return load_study(path)


def problems(tmp_path: Path, **parts: str) -> tuple[Problem, ...]:
    with pytest.raises(StudyError) as caught:
        load(tmp_path, **parts)
    return caught.value.problems


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        ("{cca: reno, a: 1000, b: 0.25}", {"a": 1000, "b": 0.25}),
        ("{cca: scalable, a: 0.01, b: 0.125, lwnd: 16}", {"a": 0.01, "b": 0.125, "lwnd": 16}),
        ("{cca: highspeed, high_window: 8.3, high_p: 1e-7}", {"high_window": 8.3, "high_p": 1e-7}),
        ("{cca: fast, alpha: 20, gamma: 1}", {"alpha": 20, "gamma": 1}),
        ("{cca: hstcp_lp, delta: 0.25, inference_rtts: 1}", {"delta": 0.25, "inference_rtts": 1}),
        ("{cca: compound, burst: muted, autotune: off}", {"burst": "muted", "autotune": "off"}),
    ],
)
def test_parameters_are_numbers_and_words(tmp_path: Path, given: str, parameters: dict[str, float | str]) -> None:
    assert load(tmp_path, first=given).algorithm("first").parameters == parameters


@pytest.mark.parametrize(
    ("given", "key", "message", "hint"),
    [
        ("{cca: reno, a: 0}", "a", "0 is out of range; allowed: 0.000001 to 1000", None),
        ("{cca: reno, b: 1}", "b", "1 is out of range; allowed: 0.000001 to 0.999999", None),
        ("{cca: reno, lwnd: 16}", "lwnd", "unknown parameter of reno 'lwnd'; allowed: a, b, local_congestion", None),
        ("{cca: cubic, a: 1}", "a", "unknown parameter of cubic 'a'; allowed: local_congestion", None),
        (
            "{cca: highspeed, hi_window: 9}",
            "hi_window",
            "unknown parameter of highspeed 'hi_window'; allowed: low_window, high_window, high_p, high_decrease, "
            "current_window, count_segments, local_congestion",
            "did you mean 'high_window'?",
        ),
        (
            "{cca: highspeed, high_window: 2000001}",
            "high_window",
            "2000001 is out of range; allowed: 0.001 to 2000000",
            None,
        ),
        (
            "{cca: highspeed, high_p: 1e-10}",
            "high_p",
            "0.0000000001 is out of range; allowed: 0.000000001 to 0.001",
            None,
        ),
        (
            "{cca: highspeed, high_window: 8.0001}",
            "high_window",
            "8.0001 is not a multiple of 1/1000; values are never rounded",
            None,
        ),
        ("{cca: fast, alpha: 20.5}", "alpha", "20.5 is not a whole number; values are never rounded", None),
        ("{cca: fast, alpha: many}", "alpha", "'many' is not a number; allowed: 1 to 100000", None),
        ("{cca: fast, alpha: true}", "alpha", "true is not a number", None),
        ("{cca: fast, alpha: [1]}", "alpha", "[1] is not a number", None),
        (
            "{cca: compound, burst: mutd}",
            "burst",
            "'mutd' is not allowed; allowed: plain, muted, partial",
            "did you mean 'muted'?",
        ),
        ("{cca: compound, burst: 1}", "burst", "1 is not allowed; allowed: plain, muted, partial", None),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_allowed(
    tmp_path: Path, given: str, key: str, message: str, hint: str | None
) -> None:
    (problem,) = problems(tmp_path, first=given)
    assert (problem.line, problem.key) == (5, f"algorithms.first.{key}")
    assert (problem.message, problem.hint) == (message, hint)


def test_all_wrong_parameters_are_reported_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        first="{cca: compound, alpha: 0, gamma: many, burst: loud, delta: 1, k: 0.5}",
        second="{cca: scalable, a: 2, lwnd: -1}",
    )
    assert [f"{problem.line} {problem.key}" for problem in found] == [
        "5 algorithms.first.alpha",
        "5 algorithms.first.gamma",
        "5 algorithms.first.burst",
        "5 algorithms.first.delta",
        "6 algorithms.second.a",
        "6 algorithms.second.lwnd",
    ]


def test_a_parameter_may_be_a_word_of_the_sweep(tmp_path: Path) -> None:
    used, sweep = '{cca: compound, burst: "${burst}"}', "sweep: {product: {burst: [plain, muted]}}"
    (experiment,) = load(tmp_path, first="{cca: reno}", used=used, sweep=sweep).experiments
    algorithms = [point.experiment.flows[0].algorithm for point in experiment.points]
    assert [a.parameters for a in algorithms if isinstance(a, Algorithm)] == [{"burst": "plain"}, {"burst": "muted"}]


def test_a_wrong_word_of_the_sweep_is_reported_where_the_sweep_lists_it(tmp_path: Path) -> None:
    used, sweep = '{cca: compound, burst: "${burst}"}', "sweep: {product: {burst: [plain, loud]}}"
    (problem,) = problems(tmp_path, first="{cca: reno}", used=used, sweep=sweep)
    assert (problem.line, problem.key) == (12, "experiments[0].sweep.product.burst[1]")
    assert problem.message == ("as flows[0].algorithm.burst: 'loud' is not allowed; allowed: plain, muted, partial")


def test_what_a_full_local_queue_does_is_a_parameter_of_every_algorithm_and_set_only_where_it_is_given(
    tmp_path: Path,
) -> None:
    sysctl = "net.ipv4.tcp_local_congestion"
    study = load(tmp_path, first="{cca: scalable, local_congestion: half}", second="{cca: reno}")
    told = {name: one.sysctls for name, one in study.header.algorithms.items()}
    assert told["first"][sysctl] == "1"
    assert sysctl not in told["second"]
    (problem,) = problems(tmp_path, first="{cca: reno, local_congestion: quarter}")
    assert problem.message == "'quarter' is not allowed; allowed: as_loss, half, ignored"


def test_it_is_given_by_the_algorithm_or_by_the_hosts_and_alike_for_all_that_leaves_a_host(tmp_path: Path) -> None:
    half = "{cca: scalable, local_congestion: half}"
    (problem,) = problems(tmp_path, first=half, sweep="hosts: {sysctls: {net.ipv4.tcp_local_congestion: 2}}")
    assert "which the hosts' sysctls set to 2" in problem.message
    further = (
        "requests: [{name: ask, from: client1, to: server, algorithm: second, users: 1, response: 1 kB, duration: 1 s}]"
    )
    (problem,) = problems(tmp_path, first=half, second="{cca: scalable}", sweep=further)
    assert "needs net.ipv4.tcp_local_congestion = the stack's own on 'client1', where 'f1' needs 1" in problem.message
