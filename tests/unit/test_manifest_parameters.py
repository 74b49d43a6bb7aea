# SPDX-License-Identifier: Apache-2.0
"""Parameters of congestion controls in a manifest: numbers and words, refused before anything boots."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifests import problems_of, study_of

from longfat.study.traffic.algorithm import Algorithm

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


def text(*, first: str, second: str = "{cca: reno}", used: str = "first", sweep: str = "") -> str:
    return STUDY.format(first=first, second=second, used=used, sweep=sweep)


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        ("{cca: scalable, a: 0.01, b: 0.125, lwnd: 16}", {"a": 0.01, "b": 0.125, "lwnd": 16}),
        ("{cca: highspeed, high_window: 8.3, high_p: 1e-7}", {"high_window": 8.3, "high_p": 1e-7}),
        ("{cca: fast, alpha: 20, gamma: 1}", {"alpha": 20, "gamma": 1}),
        ("{cca: compound, burst: muted, autotune: off}", {"burst": "muted", "autotune": "off"}),
    ],
)
def test_parameters_are_numbers_and_words(tmp_path: Path, given: str, parameters: dict[str, float | str]) -> None:
    assert study_of(tmp_path, text(first=given)).algorithm("first").parameters == parameters


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("{cca: reno, a: 0}", "a"),
        ("{cca: reno, b: 1}", "b"),
        ("{cca: reno, lwnd: 16}", "lwnd"),
        ("{cca: cubic, a: 1}", "a"),
        ("{cca: highspeed, hi_window: 9}", "hi_window"),
        ("{cca: highspeed, high_window: 2000001}", "high_window"),
        ("{cca: highspeed, high_p: 1e-10}", "high_p"),
        ("{cca: highspeed, high_window: 8.0001}", "high_window"),
        ("{cca: fast, alpha: 20.5}", "alpha"),
        ("{cca: fast, alpha: many}", "alpha"),
        ("{cca: fast, alpha: true}", "alpha"),
        ("{cca: fast, alpha: [1]}", "alpha"),
        ("{cca: compound, burst: mutd}", "burst"),
        ("{cca: compound, burst: 1}", "burst"),
        ("{cca: reno, local_congestion: quarter}", "local_congestion"),
    ],
)
def test_a_wrong_parameter_is_named_with_its_place(tmp_path: Path, given: str, key: str) -> None:
    assert refused(tmp_path, first=given) == [(5, f"algorithms.first.{key}")]


def refused(tmp_path: Path, **parts: str) -> list[tuple[int | None, str | None]]:
    """Line and key of each problem."""
    return [(problem.line, problem.key) for problem in problems_of(tmp_path, text(**parts))]


def test_a_parameter_may_be_a_word_of_the_sweep(tmp_path: Path) -> None:
    used, sweep = '{cca: compound, burst: "${burst}"}', "sweep: {product: {burst: [plain, muted]}}"
    (experiment,) = study_of(tmp_path, text(first="{cca: reno}", used=used, sweep=sweep)).experiments
    algorithms = [point.experiment.flows[0].algorithm for point in experiment.points]
    assert [a.parameters for a in algorithms if isinstance(a, Algorithm)] == [{"burst": "plain"}, {"burst": "muted"}]

    loud = refused(tmp_path, first="{cca: reno}", used=used, sweep=sweep.replace("muted", "loud"))
    assert loud == [(12, "experiments[0].sweep.product.burst[1]")]


def test_the_reaction_to_a_full_local_queue_is_a_parameter_of_every_algorithm(
    tmp_path: Path,
) -> None:
    sysctl = "net.ipv4.tcp_local_congestion"
    study = study_of(tmp_path, text(first="{cca: scalable, local_congestion: half}"))
    told = {name: one.sysctls for name, one in study.header.algorithms.items()}
    assert told["first"][sysctl] == "1"
    assert sysctl not in told["second"]
