# SPDX-License-Identifier: Apache-2.0
"""The command: exit statuses, messages, the results folder, completion, broken outputs, and timing."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_backend import FakeBackend
from rich.console import Console
from tiny_study import STUDY, call, write_tiny

from longfat.cli import bench, paths
from longfat.cli.console import Output
from longfat.cli.paths import study_names, study_path
from longfat.execute import progress
from longfat.execute.record.verify import find_records
from longfat.execute.results import open_results
from longfat.system.errors import RigError
from longfat.system.events import Event, Kind, Level

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one study, ``tiny``."""
    write_tiny(tmp_path)
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    return tmp_path


def test_plan_prints_what_the_study_takes_and_writes_nothing(root: Path) -> None:
    result = call("plan", "tiny", "--jobs", "2")
    assert result.exit_code == 0
    assert "tiny, profile quick" in result.output and " 4 " in result.output
    assert len(json.loads(call("plan", "tiny", "--expanded", "--json").stdout)["points"]) == 2
    assert [path.name for path in root.iterdir()] == ["experiments"]
    assert "no profile 'steady', so all of it" in call("plan", "tiny", "--profile", "steady").output


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("plan", "tinny"), "'tiny'"),
        (("plan", "tiny", "--profile", "quik"), "'quik'"),
        (("plan", "tiny", "--only", "fig-1,fig-2"), "'fig-2'"),
        (("run", "tiny", "--backend", "ns22"), "'ns2'"),
        (("run", "tiny", "--jobs", "0"), "'--jobs'"),
        (("rnu", "tiny"), "'rnu'"),
        (("plan", "tiny", "--on", "rack"), "--on: no effect here"),
        (("plan", "tiny", "--expanded", "--jobs", "2"), "--jobs: no effect here"),
        (("again", "tiny", "--capture", "--at", "sender"), "--capture, --at: no effect here"),
        (("again", "0123abcd", "--budget", "5min"), "--budget: no effect here"),
        (("report", "--all"), "--all: no effect here"),
        (("check", "tiny", "--schema", "claims"), "STUDY: no effect here"),
        (("check", "--keys", "--trust", "--json"), "--trust, --json: no effect here"),
        (("run", "tiny", "--only", " ,", "--stack", ""), "--only, --stack: is empty"),
        (("verdicts", "tiny", "--stack", "modren"), "'modern'"),
        (("run", "tiny", "--backend", "hosts"), "--on: backend hosts needs a lab"),
        (("try", "cubic", "--backend", "hosts", "--loss", "x"), "--backend: trials take no lab"),
        (("verdicts", "tinny", "tiiny", "--stack", "modren"), "3 problems"),
        (("plan", "tiny", "--only", "fig-0,fig-2", "--stack", "x", "--on", "rack"), "4 problems"),
        (("run", "tinny", "--backend", "ns22", "--stack", "x"), "3 problems"),
        (("reproduce", "tiny", "--backend", "ns22,fak", "--only", "fig-0"), "3 problems"),
        (("bench", "--cases", "1g,2g", "--peers", "ns4"), "3 problems"),
        (("evaluate", "cubc", "absent.c", "--against", "tiny"), "3 problems"),
        (("again", "0123abcd", "--at", "sender", "--budget", "5min"), "3 problems"),
        (("again", "tiny", "--sample", "-3", "--budget", "5 days", "--capture"), "3 problems"),
        (("again", "tiny", "--sample", "0.5"), "'0.5' is not a sample"),
        (("evidence", "identify", "tiny", "--claims", "x"), "--claims: no effect here"),
        (("build", "kernel", "--target", "arm"), "'x86-64'"),
    ],
)
def test_a_wrong_command_line_is_named_with_status_2(root: Path, arguments: tuple[str, ...], named: str) -> None:
    result = call(*arguments)
    assert (result.exit_code, named in result.stderr) == (2, True), result.stderr
    assert not list(root.glob("results/tiny/raw/*"))


def test_run_records_every_run_and_the_next_start_repeats_none(root: Path) -> None:
    result = call("run", "tiny", "--backend", "fake", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert "4 runs executed, 0 kept, 0 failed" in result.output
    results = root / "results" / "tiny"
    lock = json.loads((results / "lock.json").read_text(encoding="ascii"))
    assert {run["run_id"] for run in lock["runs"]} == set(find_records(results / "raw"))
    kinds = [json.loads(line)["kind"] for line in (results / "events.jsonl").read_text().splitlines()]
    assert kinds == ["stage_started", "runs_started", *["run_finished"] * 4, "runs_ended"]
    again = call("run", "tiny", "--backend", "fake")
    assert "0 runs executed, 4 kept, 0 failed" in again.output


def test_a_failed_run_gives_status_4(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("run", "tiny", "--backend", "fake", "--results", str(root / "other"))
    first = json.loads((root / "other" / "lock.json").read_text(encoding="ascii"))["runs"][0]
    backend = FakeBackend(faults={first["run_id"]: "crash"})
    monkeypatch.setattr("longfat.cli.run.open_backend", lambda name, settings, say: backend)
    result = call("run", "tiny", "--backend", "fake", "--jobs", "1")
    assert result.exit_code == 4
    assert "3 runs executed, 0 kept, 1 failed" in result.output


def test_a_results_folder_in_use_gives_status_3(root: Path) -> None:
    with open_results(root / "results" / "tiny"):
        result = call("run", "tiny", "--backend", "fake")
    assert result.exit_code == 3
    assert f"the results folder is in use by process {os.getpid()}" in result.stderr


def test_an_interrupted_command_ends_with_status_130_and_continues_later(root: Path) -> None:
    script = root / "slow.py"
    script.write_text(
        "import fake_backend as fake, longfat.cli as cli, sys\n"
        "from longfat.cli import run\n"
        "run.open_backend = lambda name, settings, say: fake.FakeBackend(wall_seconds=0.5)\n"
        "if __name__ == '__main__':\n"
        "    sys.argv = ['longfat', 'run', 'tiny', '--backend', 'fake', '--jobs', '1']\n"
        "    cli.main()\n",
        encoding="utf-8",
    )
    environment = os.environ | {"PYTHONPATH": f"{SOURCE}:{SOURCE.parent}/tests/fake"}
    process = subprocess.Popen([sys.executable, str(script)], env=environment, stderr=subprocess.PIPE)
    raw = root / "results" / "tiny" / "raw"
    deadline = time.monotonic() + 30
    while not list(raw.glob("delay*")):
        assert time.monotonic() < deadline and process.poll() is None, "the study did not get going"
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert b"interrupted; finished work is kept" in errors
    assert not list(raw.glob(".*"))
    result = call("run", "tiny", "--backend", "fake")
    assert result.exit_code == 0
    assert len(find_records(raw)) == 4


LOCKED = """
import logging, signal, subprocess, sys, threading, time
from longfat.cli import root

class Struck:
    def __init__(self, lock, place, number):
        self.lock, self.place, self.number = lock, place, number
    def strike(self, place):
        if place == self.place:
            self.place = ""
            signal.raise_signal(self.number)
    def acquire(self):
        self.lock.acquire()
        self.strike("acquire")
    def release(self):
        self.strike("release")
        self.lock.release()

def look(lock):
    free = lock.acquire(timeout=1)
    print("free" if free else "taken", flush=True)
    if free:
        lock.release()

def command(prog_name):
    lock, logging._lock = logging._lock, Struck(logging._lock, sys.argv[1], int(sys.argv[2]))
    try:
        subprocess.run(["true"], preexec_fn=int) if sys.argv[3] == "fork" else logging.getLogger("new")
        time.sleep(20)
    finally:
        other = threading.Thread(target=look, args=[lock])
        other.start()
        other.join()

root.app = command
root.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("place", ["acquire", "release"])
@pytest.mark.parametrize("caller", ["fork", "logger"])
def test_an_interrupt_leaves_no_lock_taken_for_which_threads_that_start_guests_wait(
    number: signal.Signals, place: str, caller: str
) -> None:
    command = [sys.executable, "-c", LOCKED, place, str(number.value), caller]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stdout) == (130, "free\n"), done.stderr


@pytest.mark.parametrize("command", ["run", "report", "package"])
def test_a_results_folder_belongs_to_one_study(root: Path, command: str) -> None:
    results = root / "shared"
    assert call("run", "tiny", "--backend", "fake", "--results", str(results)).exit_code == 0
    lock = (results / "lock.json").read_bytes()
    other = root / "experiments" / "other"
    other.mkdir()
    (other / "study.yaml").write_text(STUDY.replace("study: tiny", "study: other"), encoding="utf-8")
    backend = ["--backend", "fake"] if command == "run" else []
    result = call(command, "other", "--results", str(results), *backend)
    assert result.exit_code == 2
    assert f"{results}: the folder has results of the study 'tiny', not of 'other'" in result.stderr
    assert (results / "lock.json").read_bytes() == lock


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom longfat.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print(sorted({'pydantic', 'pyarrow', 'rich', 'matplotlib', 'numpy'} & set(sys.modules)))"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_a_quiet_command_prints_its_result_and_no_progress(root: Path) -> None:
    result = call("run", "tiny", "--backend", "fake", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert call("run", "tiny", "--backend", "fake", "--quiet", "--json").output.startswith("{")


def test_an_installed_package_has_its_own_studies_next_to_those_of_the_user(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "installed"
    for name in ("tiny", "shipped-only"):
        shutil.copytree(root / "experiments/tiny", shipped / "experiments" / name)
    assert study_names() == ["tiny"]
    monkeypatch.setattr(paths, "SHIPPED", shipped)
    assert study_names() == ["tiny", "shipped-only"]
    assert study_path("tiny") == root / "experiments/tiny"
    assert study_path("shipped-only") == shipped / "experiments/shipped-only"


def test_a_pipe_gets_one_line_of_progress_a_minute_and_every_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    out, clock = io.StringIO(), SimpleNamespace(now=0.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    show = progress.Display(Console(file=out))
    facts = {"total": 9, "folder": "one", "wall_seconds": 1.0}
    show(Event(Kind.RUNS_STARTED, "9 runs", facts={"total": 9}))
    for done in range(1, 9):
        clock.now = 25.0 * done
        kind, level = (Kind.RUN_FAILED, Level.ERROR) if done == 2 else (Kind.RUN_FINISHED, Level.INFO)
        show(Event(kind, f"run {done}", level, facts | {"done": done}))
    first, failure, *minutes = out.getvalue().splitlines()
    assert (first, failure) == ("9 runs", "run 2")
    assert [line.split(",")[:2] for line in minutes] == [["3 of 9 runs", " 1 failed"], ["6 of 9 runs", " 1 failed"]]


@pytest.mark.parametrize("command", ["check --schema study", "check _smoke", "plan nope"])
@pytest.mark.parametrize(("output", "status"), [("pipe", 141), ("/dev/full", 3)])
def test_output_that_goes_nowhere_ends_the_program_without_a_traceback(
    command: str, output: str, status: int, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe, Path("/dev/full").open("wb") as full, (tmp_path / "errors").open("wb") as errors:
        done = subprocess.run(
            [sys.executable, "-m", "longfat", *command.split()],
            stdout=pipe if output == "pipe" else full,
            stderr=subprocess.STDOUT if command == "plan nope" else errors,
            env=os.environ | {"PYTHONPATH": str(SOURCE), "LONGFAT_ROOT": str(SOURCE.parent)},
        )
    assert done.returncode == status
    text = (tmp_path / "errors").read_text()
    assert "Traceback" not in text
    assert status == 141 or command == "plan nope" or "No space left on device" in text


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("longfat plan k", ["kelly-2003"]),
        ("longfat re", ["reproduce", "report"]),
        ("longfat plan x --exp", ["--expanded"]),
        ("longfat plan mine --only win", ["window"]),
        ("longfat try vega", ["vegas"]),
    ],
)
def test_commands_options_and_studies_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, found: list[str]
) -> None:
    for name in ("kelly-2003", "other"):
        (tmp_path / "experiments" / name).mkdir(parents=True)
        (tmp_path / "experiments" / name / "study.yaml").touch()
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    assert call("new", "mine").exit_code == 0
    assert "_LONGFAT_COMPLETE=complete_bash" in call("completion", "bash").output
    typed = {"_LONGFAT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    environment = os.environ | typed | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-m", "longfat"], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == found, done.stderr


def test_the_result_has_every_timing_and_a_note_for_a_missing_peer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(name: str, settings: object, say: object) -> FakeBackend:
        if name in ("ns2", "mininet"):
            raise RigError("not installed")
        return FakeBackend(wall_seconds=0.05)

    monkeypatch.setattr(bench, "open_backend", opened)
    text = io.StringIO()
    bench.bench(Output(as_json=True, file=text, width=200), cases="1g-1500", repeats=2)
    assert "ns2: not installed" in text.getvalue()
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["where"], row["seconds"]) for row in rows] == [("virtual", 10), ("ns3", 1.0)]
    assert all(row["wall_s"] >= 0.05 for row in rows)
