# SPDX-License-Identifier: Apache-2.0
"""Unknowns of a study: what it assumes where its paper is silent, and what else may have been."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def study(folder: Path, *changes: tuple[str, str], **given: Scalar) -> Study:
    text = MANIFEST
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    return load_study(folder / "study.yaml", given)


def limits(of: Study) -> set[int]:
    return {point.experiment.topology.bottleneck_queue.limit for point in of.experiments[0].points}


def test_an_unknown_stands_for_its_default_anywhere_in_the_file(tmp_path: Path) -> None:
    loaded = study(tmp_path)
    assert limits(loaded) == {100}
    assert str(loaded.experiments[0].points[0].experiment.topology.rtt) == "70 ms"
    assert loaded.header.hosts.txqueuelen == 100


def test_what_is_given_is_assumed_in_its_place_and_scenarios_keep_their_names(tmp_path: Path) -> None:
    default, other = study(tmp_path), study(tmp_path, switch=75, queue=1000)
    assert limits(other) == {75}
    assert other.header.hosts.txqueuelen == 1000
    labels = [[point.labels for point in one.experiments[0].points] for one in (default, other)]
    assert labels[0] == labels[1] == [{"length": "10 s"}, {"length": "20 s"}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"switch": 500}, "switch = 500 is not plausible; allowed: 20 to 400"),
        ({"switch": "75 ms"}, "switch = '75 ms' is not plausible; allowed: 20 to 400"),
        ({"delay": "1 s"}, "delay = '1 s' is not plausible; allowed: 1 ms to 0.2 s"),
        ({"queue": 500}, "queue = 500 is not plausible; allowed: 100, 1000"),
        ({"swich": 75}, "unknown unknown 'swich'"),
    ],
)
def test_what_is_not_plausible_is_refused(tmp_path: Path, given: dict[str, Scalar], message: str) -> None:
    with pytest.raises(StudyError, match=r".") as caught:
        study(tmp_path, **given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("between: [20, 400]", "between: [400, 20]", "unknowns.switch", "whose first value is the lower one"),
        ("between: [20, 400]", "between: [20 ms, 400 ms]", "unknowns.switch", "are of different units"),
        ("between: [20, 400]", "among: [20, 400]", "unknowns.switch", "`default` is 100, which is not among them"),
        (", between: [20, 400]", "", "unknowns.switch", "give either `between` or `among`"),
        ("between: [20, 400]", "between: [few, many]", "unknowns.switch", "'few' is neither a number nor a quantity"),
        ('limit: "${switch}"', "limit: 100", "unknowns.switch", "unknown 'switch' is never used"),
        (
            "product: {length:",
            "product: {delay: [1 ms], length:",
            "experiments[0].sweep.product.delay",
            "name of an unk",
        ),
    ],
)
def test_a_faulty_unknown_is_named_with_its_line(tmp_path: Path, old: str, new: str, key: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(tmp_path, (old, new))
    found = [problem for problem in caught.value.problems if problem.key == key]
    assert any(message in problem.message for problem in found), caught.value.problems
    assert all(problem.line for problem in found)


def test_a_value_between_is_compared_in_its_own_unit() -> None:
    delay = Unknown(what="a delay", default="70 ms", between=("1 ms", "0.2 s"), source="a map")
    assert delay.allows("150 ms")
    assert not delay.allows("300 ms")
    assert delay.plausible == "1 ms to 0.2 s"
