# SPDX-License-Identifier: Apache-2.0
"""Unknowns of a study: assumptions where its paper is silent, and where claims hold along other values."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifests import problems_of

from longfat.evidence.sensitivity import At, regions, values_in
from longfat.spec.runspec import Scalar
from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.study.unknowns import Unknown
from longfat.system.errors import StudyError

MANIFEST = """\
format: 2
study: buffers
title: A switch whose buffer nobody wrote down
algorithms: {standard: {cca: reno}}
hosts: {txqueuelen: "${queue}"}
paths:
  two: {kind: dumbbell, rate: 100 Mbit/s, rtt: "${delay}", senders: 2, bottleneck_queue: {limit: "${switch}"}}
unknowns:
  switch: {what: frames, default: 100, between: [20, 400], source: port buffers of the time}
  delay: {what: way there and back, default: 70 ms, between: [1 ms, 0.2 s], source: a map}
  queue: {what: packets, default: 100, among: [100, 1000], source: two releases of Linux}
experiments:
  - id: buffer
    path: two
    flows:
      - {name: stream, from: client1, to: server, algorithm: standard, duration: "${length}"}
    sweep: {product: {length: [10 s, 20 s]}}
"""


def study(folder: Path, **given: Scalar) -> Study:
    (folder / "study.yaml").write_text(MANIFEST, encoding="utf-8")
    return load_study(folder / "study.yaml", given)


def limits(of: Study) -> set[int]:
    return {point.experiment.topology.bottleneck_queue.limit for point in of.experiments[0].points}


def test_an_unknown_has_its_default_or_a_given_value_and_scenarios_keep_their_names(tmp_path: Path) -> None:
    default, other = study(tmp_path), study(tmp_path, switch=75, queue=1000)
    assert (limits(default), limits(other)) == ({100}, {75})
    assert [one.header.hosts.txqueuelen for one in (default, other)] == [100, 1000]
    assert str(default.experiments[0].points[0].experiment.topology.rtt) == "70 ms"
    labels = [[point.labels for point in one.experiments[0].points] for one in (default, other)]
    assert labels[0] == labels[1] == [{"length": "10 s"}, {"length": "20 s"}]


@pytest.mark.parametrize(
    "given", [{"switch": 500}, {"switch": "75 ms"}, {"delay": "1 s"}, {"queue": 500}, {"swich": 75}]
)
def test_an_implausible_value_is_refused(tmp_path: Path, given: dict[str, Scalar]) -> None:
    (name,) = given
    with pytest.raises(StudyError, match=name):
        study(tmp_path, **given)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("between: [20, 400]", "between: [400, 20]"),
        ("between: [20, 400]", "between: [20 ms, 400 ms]"),
        ("between: [20, 400]", "among: [20, 400]"),
        (", between: [20, 400]", ""),
        ("between: [20, 400]", "between: [few, many]"),
        ('limit: "${switch}"', "limit: 100"),
    ],
)
def test_a_faulty_unknown_is_named_with_its_line(tmp_path: Path, old: str, new: str) -> None:
    assert (9, "unknowns.switch") in [(one.line, one.key) for one in problems_of(tmp_path, MANIFEST, (old, new))]


SWITCH = Unknown(what="frames", default=100, between=(20, 400), source="port buffers of the time")


def test_neighbouring_values_of_one_outcome_are_one_region() -> None:
    words = {189: "not reproduced", 42: "reproduced", 20: "not reproduced", 100: "reproduced", 400: "not reproduced"}
    found = [At(value, {"sum": word}) for value, word in words.items()]
    assert [str(region) for region in regions("sum", found, SWITCH)] == [
        "not reproduced at 20",
        "reproduced at 42 to 100",
        "not reproduced at 189 to 400",
    ]


@pytest.mark.parametrize("order", [(75, 50), (50, 75)])
def test_evidence_of_several_assumptions_at_once_is_left_out(order: tuple[int, int]) -> None:
    given = [{"switch": order[0]}, {"switch": order[1]}, {"switch": 60, "delay": "1 ms"}, {}, {"switch": 500}]
    assert values_in(iter(given), "switch", SWITCH) == (100, 50, 75)
