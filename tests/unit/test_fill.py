# SPDX-License-Identifier: Apache-2.0
"""Filling the evidence: a stated number of repetitions, in batches, whatever the results are."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from evidenced import printed, repository
from fake_backend import FakeBackend

from longfat.cli import fill as verb
from longfat.cli.fill import Wanted, fill_studies, ground_of, seconds_of
from longfat.data.study_folder import StudyFolder
from longfat.evidence.baselines import FOLDER, Combination, begin, read_baselines, write_baseline
from longfat.evidence.store import read_rows
from longfat.system.errors import StudyError

COMBINATION = Combination.of(FakeBackend().pins())
WANTED = Wanted(2, None, "paper", backend="fake", jobs=1)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFolder:
    """A study without evidence, in a repository with one baseline, to which the fake backend belongs."""
    folder = repository(tmp_path, monkeypatch)
    write_baseline(begin([COMBINATION], {"a": "1"}, "2026-01-01"), tmp_path / FOLDER)
    monkeypatch.setattr(verb, "baseline_for", lambda *_, **__: read_baselines(tmp_path / FOLDER)[0])
    return StudyFolder(folder)


def test_every_scenario_runs_as_often_as_the_command_says_even_if_its_profile_plans_more(study: StudyFolder) -> None:
    once = dataclasses.replace(WANTED, repetitions=1)
    printed(lambda console: fill_studies([study.name], once, console))
    assert {key[1] for of in read_rows(study.path, study.study.name).values() for key in of} == {1}
    ground = ground_of(study, read_baselines(study.path.parents[1] / FOLDER)[0], WANTED)
    assert any(scenario.repetitions > 1 for scenario in ground.planned.scenarios.values())


def test_filling_adds_what_is_missing_and_nothing_a_second_time(study: StudyFolder) -> None:
    printed(lambda console: fill_studies([study.name], WANTED, console))
    rows = [key for of in read_rows(study.path, study.study.name).values() for key in of]
    scenarios = {key[0] for key in rows}
    assert all(len([key for key in rows if key[0] == name]) >= 2 for name in scenarios)
    text = printed(lambda console: fill_studies([study.name], WANTED, console))
    assert "0 batches" in text


def test_a_failed_run_is_reported_and_its_raw_files_stay(
    study: StudyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = FakeBackend()
    planned = ground_of(study, read_baselines(tmp_path / FOLDER)[0], WANTED).planned
    run = planned.run("one-drop", 1)
    assert run is not None
    run_id = dataclasses.replace(run.spec, pins=backend.pins()).run_id
    failing = dataclasses.replace(backend, faults={run_id: "report_failure"})
    monkeypatch.setattr(verb, "open_backend", lambda *_, **__: failing)
    outcome: list[bool] = []
    printed(lambda console: outcome.append(fill_studies([study.name], WANTED, console)))
    assert outcome == [False]
    assert "one-drop" in {key[0] for of in read_rows(study.path, study.study.name).values() for key in of}
    assert (tmp_path / "results" / "fill" / study.name / "raw").exists()


def test_a_budget_is_a_length_of_time() -> None:
    assert [seconds_of(text) for text in (None, "90s", "45min", "1.5h")] == [None, 90, 2700, 5400]
    with pytest.raises(StudyError) as raised:
        seconds_of("soon")
    assert raised.value.where == "--budget"
