# SPDX-License-Identifier: Apache-2.0
"""Filling the evidence: a stated number of repetitions, in batches, whatever the results are."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidenced import printed, repository

from longfat.backends.fake import FakeBackend
from longfat.evidence.epochs import FOLDER, Combination, begin, read_epochs, write_epoch
from longfat.evidence.store import read_rows
from longfat.studies import StudyFolder
from longfat.verbs import fill as verb
from longfat.verbs.decide import Wanted, ground_of
from longfat.verbs.fill import batches, fill

COMBINATION = Combination.of(FakeBackend().pins())


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFolder:
    """A study without evidence, in a repository with one baseline, to which the fake backend belongs."""
    folder = repository(tmp_path, monkeypatch)
    write_epoch(begin(COMBINATION, {"a": "1"}, "2026-01-01"), tmp_path / FOLDER)
    monkeypatch.setattr(verb, "epoch_for", lambda *_, **__: read_epochs(tmp_path / FOLDER)[0])
    return StudyFolder(folder)


def wanted(budget: float | None = None) -> Wanted:
    """The study's only profile with data, on the fake backend."""
    return Wanted(budget, (), "paper", None, "fake", 1)


def test_every_scenario_is_planned_as_often_as_stated_or_as_its_profile_plans(study: StudyFolder) -> None:
    ground = ground_of(study, begin(COMBINATION, {"a": "1"}, "2026-01-01"), wanted())
    planned = [(name, n) for batch in batches(ground, 5) for name, n in batch.targets.items()]
    for name, scenario in ground.planned.scenarios.items():
        assert [n for of, n in planned if of == name] == list(range(1, max(5, scenario.repetitions) + 1))


def test_batches_are_bounded_by_their_seconds(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    ground = ground_of(study, begin(COMBINATION, {"a": "1"}, "2026-01-01"), wanted())
    monkeypatch.setattr(verb, "BATCH_SECONDS", 0.001)
    assert all(len(batch.targets) == 1 for batch in batches(ground, 2))


def test_filling_adds_what_is_missing_and_nothing_a_second_time(study: StudyFolder) -> None:
    printed(lambda console: fill([study.name], 2, wanted(), console, new_epoch=False))
    rows = [key for of in read_rows(study.path, study.study.name).values() for key in of]
    scenarios = {key[0] for key in rows}
    assert all(len([key for key in rows if key[0] == name]) >= 2 for name in scenarios)
    text = printed(lambda console: fill([study.name], 2, wanted(), console, new_epoch=False))
    assert "0 batches" in text


def test_no_batch_begins_after_the_budget(study: StudyFolder) -> None:
    printed(lambda console: fill([study.name], 2, wanted(budget=-1.0), console, new_epoch=False))
    assert not read_rows(study.path, study.study.name)
