# SPDX-License-Identifier: Apache-2.0
"""Deciding: that what is run next follows from the evidence alone, and is what open claims need."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from random import Random

import pytest
from evidenced import printed, repository
from fabricated_results import CLAIMS, write_results
from typer.testing import CliRunner

from longfat.cli import app
from longfat.cluster.protocol import Standing, Work
from longfat.errors import StudyError
from longfat.evidence.epochs import FOLDER, Combination, begin
from longfat.evidence.ground import Ground
from longfat.evidence.judged import evidence_of
from longfat.evidence.looks import LOOKS
from longfat.evidence.next_step import Chooser
from longfat.evidence.planned import Planned
from longfat.evidence.rows import SPEC_DIGITS, Row
from longfat.evidence.store import Place, Rows, by_place, read_rows
from longfat.manifest.load import load_study
from longfat.metrics import METRICS
from longfat.metrics.definitions import definition_digest
from longfat.studies import StudyFolder
from longfat.verbs import conclude
from longfat.verbs import decide as verb
from longfat.verbs.decide import Wanted, decide, seconds_of
from longfat.verbs.run import Machine
from longfat.verbs.study import Choices

TWO_CLAIMS = (
    CLAIMS.replace("  - id: halves", "  - id: halves", 1)
    + """\
  - id: highspeed-better
    artifact: fig-1
    statement: HighSpeed gives more with a large window.
    paper: {where: figure 1}
    relation: goodput[delay, highspeed, window=8 MiB] > goodput[delay, standard, window=8 MiB]
"""
)
COMBINATION = Combination("fake", "none", "none", "l")
EPOCH = begin([COMBINATION], {"a": "1"}, "2026-01-01")
FAST, SLOW = "delay.algorithm-highspeed.window-8mib", "delay.algorithm-standard.window-8mib"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study with three claims and no evidence."""
    folder = repository(tmp_path, monkeypatch)
    (folder / "claims.yaml").write_text(TWO_CLAIMS, encoding="utf-8")
    return folder


def rows_of(study: Path, goodput: Mapping[str, Sequence[float]], shuffle: int = 0) -> Rows:
    """Evidence with these values by scenario, in any order."""
    planned = Planned(load_study(study / "study.yaml"), "modern", "paper", "fake")
    pairs = []
    for scenario, values in goodput.items():
        experiment = planned.scenarios[scenario].experiment
        key = "goodput" if experiment == "delay" else "drop_ratio"
        name = f"{key}@{definition_digest(METRICS[key])}" + ("" if experiment == "delay" else "[at=1500000.0]")
        for repetition, value in enumerate(values, start=1):
            run = planned.run(scenario, repetition)
            assert run is not None
            measured = f"{scenario} {repetition}"
            row = Row(
                scenario, repetition, run.run_id[:SPEC_DIGITS], "r", COMBINATION.key, measured, 2.0, {name: value}
            )
            pairs.append((Place(EPOCH.name, "modern", "paper", experiment), row))
    Random(shuffle).shuffle(pairs)
    return by_place(pairs)


def chooser(study: Path, goodput: Mapping[str, Sequence[float]], shuffle: int = 0, only: Sequence[str] = ()) -> Chooser:
    found = evidence_of(
        StudyFolder(study), [EPOCH], epoch=EPOCH.name, rows=rows_of(study, goodput, shuffle), profile="paper"
    )
    assert found is not None
    (ground,) = found.grounds
    assert isinstance(ground, Ground)
    return Chooser(ground, found.claims, only)


SURE = 12  # repetitions at which what is clear is settled


def noisy(mean: float, count: int, step: int) -> list[float]:
    """Values about a mean, widely spread and without regard to those of another step."""
    return [mean + 40 * (step * number % 7 - 3) for number in range(count)]


def clear() -> dict[str, list[float]]:
    """Windows that matter for sure, a drop that halves for sure, and two algorithms that are hard to tell apart."""
    spread = [float(number % 3) for number in range(SURE)]
    found = {f"delay.algorithm-{name}.window-1mib": [100 + x for x in spread] for name in ("standard", "highspeed")}
    found |= {FAST: noisy(931, SURE, 3), SLOW: noisy(916, SURE, 5)}
    return found | {"one-drop": [0.5 + x / 1000 for x in spread]}


def test_two_machines_with_the_same_evidence_take_the_same_step(study: Path) -> None:
    steps = [chooser(study, clear(), shuffle).step() for shuffle in range(3)]
    assert steps[0] is not None
    assert steps[0] == steps[1] == steps[2]


def test_only_the_scenarios_of_the_open_claim_are_run(study: Path) -> None:
    one = chooser(study, clear())
    assert one.standing.open == ("highspeed-better",)
    assert set(one.standing.settled) == {"window-limits", "halves"}
    step = one.step()
    assert step is not None
    assert step.claims == ("highspeed-better",)
    assert set(step.targets) == {FAST, SLOW}
    assert set(step.targets.values()) <= {look for look in LOOKS if look > SURE}
    assert step.seconds == pytest.approx(sum((n - SURE) * 2.0 for n in step.targets.values()))


def test_without_evidence_the_first_look_comes_first(study: Path) -> None:
    one = chooser(study, {})
    step = one.step()
    assert step is not None
    assert set(step.targets.values()) == {LOOKS[0]}
    assert set(step.claims) == {"window-limits", "halves", "highspeed-better"}
    (alone,) = chooser(study, {}, only=["halves"]).step().targets  # type: ignore[union-attr]
    assert alone == "one-drop"


def test_a_claim_of_many_parts_that_have_no_run_yet_gets_its_first_runs(study: Path) -> None:
    parts = [f"      - goodput[delay, highspeed, window=8 MiB] > {rate}\n" for rate in range(100, 110)]
    head = "  - id: many\n    artifact: fig-1\n    statement: Much.\n    paper: {where: figure 1}\n    relation:\n"
    (study / "claims.yaml").write_text(CLAIMS + head + "".join(parts), encoding="utf-8")
    step = chooser(study, {}, only=["many"]).step()
    assert step is not None
    assert step.targets == {FAST: LOOKS[0]}


def test_a_claim_that_is_decided_but_not_at_its_looks_level_comes_after_those_that_are_open(study: Path) -> None:
    values = clear()
    values["one-drop"] = [0.51, 0.5, 0.49]
    one = chooser(study, values)
    assert one.standing.unsettled == ("halves",)
    assert one.standing.open == ("highspeed-better",)
    assert "halves" not in one.step().claims  # type: ignore[union-attr]
    values |= {FAST: [x + 900 for x in values[FAST]]}
    later = chooser(study, values)
    assert later.standing.open == ()
    assert later.step().claims == ("halves",)  # type: ignore[union-attr]


def test_nothing_is_run_when_all_is_settled_when_repetitions_are_alike_to_the_byte_or_at_the_cap(study: Path) -> None:
    values = clear()
    values[FAST] = [x + 900 for x in values[FAST]]
    assert chooser(study, values).step() is None
    values = clear() | {FAST: noisy(925, 48, 3), SLOW: noisy(916, 48, 5)}
    at_cap = chooser(study, values)
    assert at_cap.step() is None
    assert at_cap.standing.hopeless == {"highspeed-better": "open at the cap of 48 repetitions"}


def test_a_step_never_takes_more_than_what_is_left_and_the_next_hour_is_foreseen(study: Path) -> None:
    one = chooser(study, clear())
    assert one.step(1.0) is None
    assert one.step(1000.0) is not None
    assert one.within(0.0) == ()


def test_the_verb_runs_what_is_needed_and_adds_it_to_the_evidence(study: Path, tmp_path: Path) -> None:
    wanted = Wanted(60.0, ("halves",), "paper", None, "fake", 1)
    outcome: list[bool] = []
    text = printed(lambda console: outcome.append(decide("small", wanted, console)))
    assert outcome == [True]
    rows = read_rows(study, "small")
    assert {row.scenario for own in rows.values() for row in own.values()} == {"one-drop"}
    assert sum(map(len, rows.values())) == LOOKS[0]
    assert "1 claims settled, 0 open, 0 decided once" in text  # all three are the same to the byte
    assert not (tmp_path / "results" / "decide" / "small" / "raw").exists()


class Here:
    """A cluster of two nodes, whose tasks are executed in this process as soon as they are submitted."""

    name = "here"
    tasks = None

    def submit(self, work: Work) -> None:
        own = (node for node in ("node1", "node2") if node not in work.exclude)
        for index, node in zip(range(work.tasks), cycle(own), strict=False):
            place = {"JOB_COMPLETION_INDEX": str(index), "JOB_COMPLETIONS": str(work.tasks), "NODE_NAME": node}
            done = CliRunner().invoke(app, ["task", str(work.results), *work.options], env=place)
            assert done.exit_code == 0, done.output

    def poll(self, name: str) -> Standing:
        return Standing(0, 0)

    def cancel(self, name: str) -> None: ...

    def nodes(self) -> frozenset[str]:
        return frozenset({"node1", "node2"})

    def parts(self, name: str) -> tuple[Path, ...]:
        return ()


def timeless(rows: Rows) -> list[Row]:
    return [dataclasses.replace(row, seconds=0.0) for own in rows.values() for row in own.values()]


def test_on_a_cluster_it_gathers_the_evidence_that_it_gathers_here(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longfat.verbs.on.open_cluster", lambda text: Here())
    monkeypatch.setattr("longfat.cluster.follow.LOOK_S", 0.01)
    wanted = Wanted(60.0, ("halves",), "paper", None, "fake", 1)
    there, outcome = dataclasses.replace(wanted, on="here", tasks=2), list[bool]()
    text = printed(lambda console: outcome.append(decide("small", there, console)))
    assert outcome == [True] and "executed twice, on different nodes: identical to the byte" in text
    found = timeless(read_rows(study, "small"))
    shutil.rmtree(study / "evidence")
    printed(lambda console: decide("small", wanted, console))
    assert timeless(read_rows(study, "small")) == found and len(found) == LOOKS[0]


def test_it_starts_from_the_results_that_are_there(study: Path, tmp_path: Path) -> None:
    write_results(study, tmp_path / "results" / "small")
    wanted = Wanted(0.0, ("halves",), "paper", None, "fake", 1)
    text = printed(lambda console: decide("small", wanted, console))
    assert "9 runs added" in text
    assert "1 claims settled, 0 open, 0 decided once" in text


def test_a_run_that_fails_ends_it(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = Planned(load_study(study / "study.yaml"), "modern", "paper", "fake")
    backend = verb.open_backend("fake", {}, say=print)
    pins = backend.pins()
    faults = {}
    for number in LOOKS[:1]:
        run = planned.scenarios["one-drop"].run(1, number)
        faults[dataclasses.replace(run.spec, pins=pins).run_id] = "report_failure"
    failing = dataclasses.replace(backend, faults=faults)  # type: ignore[type-var]
    monkeypatch.setattr(verb, "open_backend", lambda name, settings, say: failing)
    outcome: list[bool] = []
    wanted = Wanted(60.0, ("halves",), "paper", None, "fake", 1)
    text = printed(lambda console: outcome.append(decide("small", wanted, console)))
    assert outcome == [False]
    assert "left out: 1 runs that are failed" in text


def test_budgets_and_claims_that_there_are_not_are_errors(study: Path) -> None:
    assert [seconds_of(text) for text in ("90s", "45min", "1.5h")] == [90, 2700, 5400]
    with pytest.raises(StudyError, match="'soon' is no length of time; allowed: such as 90s, 45min or 2h"):
        seconds_of("soon")
    with pytest.raises(StudyError, match="unknown claim 'halvez'"):
        printed(lambda console: decide("small", Wanted(1.0, ("halvez",), "paper", None, "fake", 1), console))


def test_the_epochs_folder_is_beside_the_kernels(study: Path) -> None:
    assert FOLDER.parts == ("kernels", "epochs")
    assert len(StudyFolder(study).claims) == 3


def reproduced(study: Path, budget: float | None, **choices: object) -> tuple[bool, str]:
    """``reproduce`` with a budget, of claims that the profile's runs leave open: whether it was well, and the text."""
    outcome: list[bool] = []
    machine = Machine("fake", 1, scheduler=choices.pop("scheduler", None))  # type: ignore[arg-type]
    given = Choices("paper", **choices)  # type: ignore[arg-type]
    text = printed(lambda console: outcome.append(conclude.reproduce("small", given, machine, console, budget)))
    return outcome[0], text


def test_reproduce_with_a_budget_makes_the_profiles_runs_then_decides_then_reports(study: Path, tmp_path: Path) -> None:
    well, text = reproduced(study, 60.0, only=("one-drop",))
    assert well
    parts = ("1 of 1 runs to execute", "1 runs added", "next, about", "claims settled, 0 open", "verdicts", "report:")
    places = [text.rindex(part) for part in parts]
    assert places == sorted(places)
    raw = tmp_path / "results" / "small" / "raw"
    assert len(list(raw.glob("*/run.json"))) == 1, "what decides is not among the profile's own runs"
    assert {row.scenario for own in read_rows(study, "small").values() for row in own.values()} > {"one-drop"}
    page = (tmp_path / "results" / "small" / "report.html").read_text(encoding="utf-8")
    assert "committed runs of epoch" in page


def test_reproduce_without_a_budget_makes_the_profiles_runs_alone_and_no_evidence(study: Path, tmp_path: Path) -> None:
    well, text = reproduced(study, None)
    assert well and "next, about" not in text
    assert read_rows(study, "small") == {}
    assert len(list((tmp_path / "results" / "small" / "raw").glob("*/run.json"))) == 9


@pytest.mark.parametrize(("option", "given"), [("--seed", {"seed": 3}), ("--scheduler", {"scheduler": "tcp://a:1"})])
def test_what_evidence_cannot_be_made_with_is_refused_before_any_run(
    study: Path, tmp_path: Path, option: str, given: dict[str, object]
) -> None:
    with pytest.raises(StudyError, match=f"{option}: --budget makes evidence"):
        reproduced(study, 60.0, **given)
    with pytest.raises(StudyError, match="runs of backend 'mininet' make no evidence"):
        printed(lambda console: decide("small", Wanted(60.0, (), "paper", None, "mininet", 1), console))
    assert not (tmp_path / "results" / "small").exists()


def test_what_is_open_in_the_end_says_what_it_lacks(study: Path) -> None:
    text = printed(lambda console: decide("small", Wanted(0.0, (), "paper", None, "fake", 1), console))
    assert "open: window-limits: " in text and "; lacks 12 runs of profile paper, about 0." in text
    assert "open: halves: " in text and "; lacks 3 runs of profile paper, about 0." in text
