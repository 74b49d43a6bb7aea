# SPDX-License-Identifier: Apache-2.0
"""Bad files and refusals of the machine: the command answers with a message and an exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fabricated_results import change_json, make_results, write_study
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from stress import damage, fuzz
from tiny_study import call

from longfat.dataset import columns

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda verdict: verdict["evidence"][0].update(outcome="maybe"), "0.evidence.0.outcome: 'maybe'"),
        (lambda verdict: verdict.update(verdict={}), "0.verdict: {}"),
        (lambda verdict: verdict.update(liked=True), "0.liked: true"),
    ],
)
def test_an_invalid_verdict_is_named_with_its_place(tmp_path: Path, change: Callable[[Any], None], said: str) -> None:
    results = tmp_path / "results"
    make_results(write_study(tmp_path), results, judged=True)
    change_json(results / "verdicts.json", lambda data: change(data["verdicts"][0]))
    result = call("compare", results, results)
    assert result.exit_code == 3, result.output
    assert said in result.stderr


def test_a_name_that_the_locale_cannot_read_is_written_as_it_is(tmp_path: Path) -> None:
    study = write_study(tmp_path).rename(tmp_path / "größe")
    command = [sys.executable, "-m", "longfat", "reproduce", str(study), "--backend", "fake"]
    command += ["--results", str(tmp_path / "results")]
    own = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}/tests/fake",
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results/report.html").read_text(encoding="utf-8")


def test_a_fault_of_the_program_is_a_message_and_its_traceback_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def faulty(*of: object) -> None:
        raise ZeroDivisionError("as a test")

    study, results = write_study(tmp_path), tmp_path / "results"
    make_results(study, results)
    monkeypatch.setattr(columns, "factors_of", faulty)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = call("report", study, "--results", results)
    assert result.exit_code == 1
    assert "error: a defect of Longfat itself: ZeroDivisionError: as a test\n" in result.stderr
    (told,) = tmp_path.glob("longfat-fault-*.txt")
    assert str(told) in result.stderr
    assert "in faulty" in told.read_text(encoding="utf-8")


Play = Callable[[Random], str]
ROUNDS = settings(
    max_examples=20, phases=[Phase.generate], suppress_health_check=list(HealthCheck), report_multiple_bugs=False
)
CHANCES = st.randoms(use_true_random=False)


def playing(prepare: Callable[..., Any], **given: int) -> Any:
    """Return a fixture that prepares rounds once."""

    @pytest.fixture(scope="module")
    def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
        with pytest.MonkeyPatch.context() as patch:
            yield prepare(tmp_path_factory.mktemp("stress"), patch, **given)

    return play


damages, changes = playing(damage.prepare, repetitions=2), playing(fuzz.prepare)


@settings(ROUNDS, max_examples=6)
@given(chance=CHANCES)
def test_a_damaged_file_is_named_or_harmless(damages: Play, chance: Random) -> None:
    assert damages(chance)


@settings(ROUNDS, max_examples=12)
@given(chance=CHANCES)
def test_a_changed_study_is_refused_or_used(changes: Play, chance: Random) -> None:
    assert changes(chance)
