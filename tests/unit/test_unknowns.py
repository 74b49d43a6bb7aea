# SPDX-License-Identifier: Apache-2.0
"""Unknowns of a study: assumptions where its paper is silent, and the values for which a claim holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidenced import copied, printed, repository
from fabricated_results import MANIFEST as SMALL
from manifests import problems_of
from test_claims import HEAD, claim

from longfat.backends.registry import open_backend
from longfat.cli.evidence import identify_unknown, print_conditions
from longfat.cli.fill import Wanted
from longfat.evidence.baselines import FOLDER, Combination, begin, write_baseline
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


# 1 MiB a round trip is more than 200 Mb/s where that is shorter than 42 ms.
UNKNOWN = """\
unknowns:
  way: {what: length of the way, default: 30 ms, between: [10 ms, 90 ms], source: a map}
"""
FAST = claim("fast", "goodput[delay, standard, window=1 MiB] > 200")
DROPS = claim("drops", "drop_ratio[one-drop, at=1500 ms] = 0.5", artifact="fig-2")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository whose study does not know how long its way is, in a baseline of the fake backend; and the output."""
    root = tmp_path_factory.mktemp("identified")
    with pytest.MonkeyPatch.context() as patch:
        folder = repository(root, patch)
        text = SMALL.replace("rtt: 30 ms", 'rtt: "${way}"', 1).replace("experiments:\n", f"{UNKNOWN}experiments:\n")
        (folder / "study.yaml").write_text(text, encoding="utf-8")
        (folder / "claims.yaml").write_text(HEAD + FAST + DROPS, encoding="utf-8")
        combination = Combination.of(open_backend("fake", {}).pins())
        write_baseline(begin([combination], {"a": "1"}, "2026-01-01"), root / FOLDER)
        return root, run()


@pytest.fixture
def said(made: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the output of the command that made the evidence."""
    copied(made[0], tmp_path, monkeypatch)
    return made[1]


def run(*at: str) -> str:
    wanted = Wanted(3, None, "paper", backend="fake", jobs=1)
    values = at or ("52 ms", "30 ms", "90 ms", "10 ms")
    return printed(lambda console: identify_unknown("small", "way", ["fast"], values, wanted, console))


def test_runs_and_evidence_show_where_a_claim_holds(said: str) -> None:
    assert "fast: reproduced at 10 ms to 30 ms, not reproduced at 52 ms to 90 ms" in said
    again = printed(lambda console: print_conditions("small", console))
    assert "fast: reproduced at 10 ms to 30 ms, not reproduced at 52 ms to 90 ms" in again
    assert "drops" not in again  # it was not asked, and does not depend on it


def test_a_second_time_nothing_is_run(said: str) -> None:
    again = run()
    assert "runs executed" not in again and "0 batches" in again
    assert again.splitlines()[-1] == said.splitlines()[-1]


@pytest.mark.usefixtures("said")
def test_a_value_that_is_not_plausible_is_refused() -> None:
    with pytest.raises(StudyError) as raised:
        run("41 ms", "95 ms", "long")
    assert raised.value.where == "--values"
