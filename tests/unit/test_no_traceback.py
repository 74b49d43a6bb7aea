# SPDX-License-Identifier: Apache-2.0
"""Whatever a file holds and the machine refuses, the command answers with a message and an exit status."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fabricated_results import CLAIMS, FIGURES, MANIFEST, change_json, judge_study, write_results, write_study
from matplotlib.backends.backend_pdf import Stream
from typer.testing import CliRunner, Result

from longfat.cli import app
from longfat.dataset import load
from longfat.dataset.build import build_dataset
from longfat.plan import PlannedRun
from longfat.system.errors import SHOWN_PROBLEMS

SOURCE = Path(__file__).parents[2] / "src"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Path, Path]:
    """A study's folder, and its results up to the verdicts."""
    study, results = write_study(tmp_path), tmp_path / "results"
    write_results(study, results)
    build_dataset(results)
    judge_study(results, study)
    return study, results


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda verdict: verdict["evidence"][0].update(outcome="maybe"), "0.evidence.0.outcome: 'maybe'"),
        (lambda verdict: verdict["evidence"][0].update(sd="much"), "0.evidence.0.sd: 'much'"),
        (lambda verdict: verdict.update(verdict={}), "0.verdict: {}"),
        (lambda verdict: verdict.update(also=7), "0.also: 7"),
        (lambda verdict: verdict.update(liked=True), "0.liked: true"),
    ],
)
def test_a_verdict_that_is_none_is_named(judged: tuple[Path, Path], change: Callable[[Any], None], said: str) -> None:
    _, results = judged
    change_json(results / "verdicts.json", lambda data: change(data["verdicts"][0]))
    result = call("compare", results, results)
    assert result.exit_code == 3, result.output
    assert said in result.stderr


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("outcome.json", lambda data: data.update(end_us={}), "outcome.json: end_us is {}, not a whole number"),
        ("counters.json", lambda data: data.update(client1=[]), "counters.json: the file cannot be read"),
        (
            "counters.json",
            lambda data: data.update(client1={"Tcp.InSegs": {}}),
            "counters.json: the file cannot be read",
        ),
    ],
)
def test_a_record_of_another_shape_is_an_invalid_run(
    tmp_path: Path, file: str, change: Callable[[Any], None], said: str
) -> None:
    def bend(run: PlannedRun, record: Path) -> None:
        change_json(record / file, change)

    study, results = write_study(tmp_path), tmp_path / "results"
    write_results(study, results, bend)
    result = call("report", study, "--results", results)
    assert result.exit_code == 4, result.output
    assert said in (results / "dataset/exclusions.csv").read_text(encoding="utf-8")


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    study, results = write_study(tmp_path), tmp_path / "results"
    (results / "events.jsonl").mkdir(parents=True)
    result = call("run", study, "--backend", "fake", "--results", results)
    assert result.exit_code == 3
    assert f"error: {results}/events.jsonl: the machine refuses: Is a directory" in result.stderr


def test_a_lock_that_leads_nowhere_is_named(judged: tuple[Path, Path]) -> None:
    study, results = judged
    (results / "lock.json").unlink()
    (results / "lock.json").symlink_to("nowhere")
    result = call("report", study, "--results", results)
    assert (result.exit_code, f"error: {results}/lock.json: no results" in result.stderr) == (2, True), result.stderr


def test_a_process_that_may_open_few_files_says_so(tmp_path: Path) -> None:
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))  # noqa: E731
    command = [sys.executable, "-m", "longfat", "reproduce", str(write_study(tmp_path)), "--backend", "fake"]
    command += ["--results", str(tmp_path / "results"), "--jobs", "16"]
    done = subprocess.run(command, env=environment(), preexec_fn=limit, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert (done.returncode, "Too many open files" in done.stderr) in ((0, False), (3, True)), done.stderr


def test_a_name_that_the_locale_cannot_read_is_written_as_it_is(tmp_path: Path) -> None:
    study = write_study(tmp_path).rename(tmp_path / "größe")
    command = [sys.executable, "-m", "longfat", "reproduce", str(study), "--backend", "fake"]
    command += ["--results", str(tmp_path / "results")]
    own = environment() | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results/report.html").read_text(encoding="utf-8")


def test_a_fault_of_the_program_is_a_message_and_its_traceback_a_file(
    judged: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def faulty(row: object) -> None:
        raise ZeroDivisionError("as a test")

    study, results = judged
    monkeypatch.setattr(load, "_factors", faulty)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = call("report", study, "--results", results)
    assert result.exit_code == 1
    assert "error: a defect of Longfat itself: ZeroDivisionError: as a test\n" in result.stderr
    (told,) = tmp_path.glob("longfat-fault-*.txt")
    assert str(told) in result.stderr
    assert "in faulty" in told.read_text(encoding="utf-8")


def test_many_problems_are_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    (study / "study.yaml").write_text(MANIFEST + "".join(f"key{number}: 1\n" for number in range(5000)))
    result = call("check", study)
    assert result.exit_code == 2
    assert "the study has 5000 problems" in result.stderr
    assert len(result.stderr.splitlines()) == 1 + SHOWN_PROBLEMS + 1
    assert result.stderr.endswith(f"  and {5000 - SHOWN_PROBLEMS} more\n")


WORDS = ("", "null", "{}", "[]", "{a: 1}", "[1, x]", "-1", "1e99", "true", "'", "!!x", "&a", "[" * 50, ": ", "\n", "é")


@pytest.mark.parametrize("seed", range(20))
def test_files_of_a_study_with_one_thing_changed_are_checked_or_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    texts = {"study.yaml": MANIFEST, "claims.yaml": CLAIMS, "figures.yaml": FIGURES}
    study = write_study(tmp_path)
    for name, text in texts.items():
        at = chance.randrange(len(text))
        if chance.random() < 0.5:  # in the place of what a key has
            at = text.find(": ", at) + 2
            length = max(0, text.find("\n", at) - at)
        else:
            length = chance.randrange(12)
        (study / name).write_text(text[:at] + chance.choice(WORDS) + text[at + length :], encoding="utf-8")
        result = call("check", study)
        assert result.exit_code in (0, 2), result.output
        (study / name).write_text(text, encoding="utf-8")


def environment() -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}/tests/fake",
        "HOME": "/nonexistent",
        "COLUMNS": "200",
    }


def test_an_interrupt_is_told_as_one_though_the_clean_up_of_a_drawing_fails_on_it(
    judged: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    header = Stream._writeHeader

    def interrupted(stream: Any) -> None:
        if isinstance(stream.len, int):  # at its end, which finds it half done the second time
            raise KeyboardInterrupt
        header(stream)

    monkeypatch.setattr(Stream, "_writeHeader", interrupted)
    study, results = judged
    result = call("report", study, "--results", results)
    assert result.exit_code == 130
    assert result.stderr == "interrupted; finished work is kept, and the same command continues\n"
