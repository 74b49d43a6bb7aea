# SPDX-License-Identifier: Apache-2.0
"""The command: exit statuses, messages, and what it leaves in the results folder."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import fake_backend as fake
import pytest
from fake_backend import FakeBackend
from typer.testing import CliRunner, Result

from longfat.cli import app, main
from longfat.execute.record.verify import find_records
from longfat.execute.results import open_results
from longfat.system.identity import KernelSource

SOURCE = Path(__file__).parents[2] / "src"
EXPERIMENTS = Path(__file__).parents[2] / "experiments"
STUDY = """
format: 2
study: tiny
title: One flow with two windows
stack: modern
seed: 1
algorithms:
  reno: {cca: reno}
hosts: {mtu: 1500 B, txqueuelen: 100}
experiments:
  - id: delay
    topology: {kind: delay, rate: 100 Mbit/s, rtt: 20 ms}
    flows:
      - {name: flow1, from: client1, to: server, algorithm: reno, window: "${window}", duration: 1 s}
    sweep:
      product: {window: [64 KiB, 1 MiB]}
    repetitions: 2
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one study, ``tiny``."""
    folder = tmp_path / "experiments" / "tiny"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


def test_a_study_is_found_by_its_name_and_by_its_path(root: Path) -> None:
    for study in ("tiny", str(root / "experiments" / "tiny"), str(root / "experiments/tiny/study.yaml")):
        result = call("plan", study)
        assert result.exit_code == 0, result.output
        assert "tiny, profile quick" in result.output


def test_plan_prints_what_the_study_takes_and_writes_nothing(root: Path) -> None:
    result = call("plan", "tiny", "--jobs", "2")
    assert result.exit_code == 0
    for text in ("distinct runs", "estimated time with 2 jobs", "estimated disk", " 4 "):
        assert text in result.output
    assert [path.name for path in root.iterdir()] == ["experiments"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "tinny"), "no study 'tinny'; there are tiny\n  hint: did you mean 'tiny'?"),
        (("plan", "tiny", "--profile", "quik"), "'quik' is not one of"),
        (("plan", "tiny", "--only", "fig-1,fig-2"), "unknown artifact or experiment 'fig-2'"),
        (
            ("plan", "tiny", "--backend", "virtul"),
            "unknown backend 'virtul'; allowed: containernet, hosts, mininet, ns2, ns3, virtual",
        ),
        (("run", "tiny", "--backend", "ns22"), "did you mean 'ns2'?"),
        (("run", "tiny", "--jobs", "0"), "Invalid value for '--jobs'"),
        (("rnu", "tiny"), "No such command 'rnu'"),
        (("build", "kernel", "--target", "arm"), "'arm' is not one of 'um', 'x86-64'"),
    ],
)
def test_a_wrong_command_line_is_named_with_status_2(root: Path, arguments: tuple[str, ...], message: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(root.glob("results/tiny/raw/*"))


def test_a_wrong_manifest_is_named_with_status_2(root: Path) -> None:
    (root / "experiments/tiny/study.yaml").write_text(STUDY.replace("100 Mbit/s", "100"), encoding="utf-8")
    result = call("run", "tiny", "--backend", "fake")
    assert result.exit_code == 2
    assert "experiments[0].topology.rate" in result.stderr


def test_check_names_the_problems_of_claims_and_figures_together(root: Path) -> None:
    folder = root / "experiments" / "tiny"
    for name in ("claims", "figures"):
        (folder / f"{name}.yaml").write_text(f"format: 2\nstudy: tinny\n{name}: []\n", encoding="utf-8")
    result = call("check", "tiny")
    assert result.exit_code == 2
    assert "claims and figures have 2 problems" in result.stderr
    assert "claims.yaml" in result.stderr
    assert "figures.yaml" in result.stderr


def test_check_prints_warnings_and_is_content(root: Path) -> None:
    exact = STUDY + "    clock_tolerance: 0 ppm\n    phases: fixed\n"
    (root / "experiments/tiny/study.yaml").write_text(exact, encoding="utf-8")
    for name, text in (("claims", "format: 2\nclaims: []"), ("figures", "format: 2\nfigures: []")):
        (root / "experiments" / "tiny" / f"{name}.yaml").write_text(f"study: tiny\n{text}\n")
    result = call("check", "tiny")
    assert result.exit_code == 0
    assert "no problems, 1 warning\n" in result.output
    assert f"warning: {root}/experiments/tiny/study.yaml:17: experiments[0].repetitions: " in result.output


def test_run_records_every_run_and_the_next_start_repeats_none(root: Path) -> None:
    result = call("run", "tiny", "--backend", "fake", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert "4 runs executed, 0 kept, 0 failed" in result.output
    assert "[4/4] delay.window-" in result.output
    results = root / "results" / "tiny"
    lock = json.loads((results / "lock.json").read_text(encoding="ascii"))
    assert {run["run_id"] for run in lock["runs"]} == set(find_records(results / "raw"))
    kinds = [json.loads(line)["kind"] for line in (results / "events.jsonl").read_text().splitlines()]
    assert kinds == ["stage_started", "runs_started", *["run_finished"] * 4, "runs_ended"]
    again = call("run", "tiny", "--backend", "fake")
    assert "0 runs executed, 4 kept, 0 failed" in again.output


@pytest.mark.parametrize(("guests", "jobs"), [(True, 2), (False, 4)])
def test_the_memory_limits_backends_of_guests_only(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    guests: bool,
    jobs: int,
) -> None:
    monkeypatch.setitem(fake.TRAITS, "fake", dataclasses.replace(fake.TRAITS["fake"], guests=guests))
    monkeypatch.setattr("longfat.cli.run.available_bytes", lambda: 3 << 30)
    result = call("run", "tiny", "--backend", "fake", "--jobs", "4")
    assert result.exit_code == 0, result.output
    assert ("2 runs at a time instead of 4" in result.output) is guests
    lines = (root / "results/tiny/events.jsonl").read_text().splitlines()
    (started,) = [event for event in map(json.loads, lines) if event["kind"] == "runs_started"]
    assert started["jobs"] == jobs


def test_runs_in_real_time_follow_each_other_and_stay_apart(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fake.TRAITS, "fake", dataclasses.replace(fake.TRAITS["fake"], clock="real"))
    result = call("run", "tiny", "--backend", "fake", "--jobs", "4")
    assert result.exit_code == 0, result.output
    lines = (root / "results/tiny-fake/events.jsonl").read_text().splitlines()
    (started,) = [event for event in map(json.loads, lines) if event["kind"] == "runs_started"]
    assert started["jobs"] == 1


def test_plan_says_how_many_runs_fit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longfat.cli.plan.available_bytes", lambda: 3 << 30)
    result = call("plan", "tiny", "--jobs", "4")
    assert "2, of up to 1.1 GB each (3.2 GB available)" in result.output
    assert "estimated time with 2 jobs" in result.output
    assert "fit into memory" not in call("plan", "tiny", "--backend", "ns2").output


def test_another_plan_replaces_the_lock_and_keeps_the_records(root: Path) -> None:
    call("run", "tiny", "--backend", "fake")
    result = call("run", "tiny", "--backend", "fake", "--seed", "2", "--results", str(root / "results/tiny"))
    assert result.exit_code == 0
    results = root / "results" / "tiny"
    assert json.loads((results / "lock.json").read_text(encoding="ascii"))["seed"] == 2
    assert len(find_records(results / "raw")) == 8


def test_a_failed_run_gives_status_4(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("run", "tiny", "--backend", "fake", "--results", str(root / "other"))
    first = json.loads((root / "other" / "lock.json").read_text(encoding="ascii"))["runs"][0]
    backend = FakeBackend(faults={first["run_id"]: "crash"})
    monkeypatch.setattr("longfat.cli.run.open_backend", lambda name, settings, say: backend)
    result = call("run", "tiny", "--backend", "fake", "--jobs", "1")
    assert result.exit_code == 4
    assert "3 runs executed, 0 kept, 1 failed" in result.output
    assert "failed: the fake laboratory crashed" in result.output
    assert "some runs failed" in result.stderr


def test_a_run_says_when_the_kernel_is_not_of_the_pinned_release_and_what_tells_its_behaviour(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_CACHE", str(root / "cache"))
    backend = FakeBackend(kernel=KernelSource("6.12.999", False))
    monkeypatch.setattr("longfat.cli.run.open_backend", lambda name, settings, say: backend)
    result = call("run", "tiny", "--backend", "fake", "--jobs", "1")
    assert result.exit_code == 0
    assert (
        "not of the pinned release but 6.12.999: `./just kernel-check` checks whether it behaves the same"
        in result.output
    )
    lock = json.loads((root / "results" / "tiny" / "lock.json").read_text(encoding="ascii"))
    assert lock["kernels"] == {"none": {"version": "6.12.999", "pinned": False}}


def test_a_results_folder_in_use_gives_status_3(root: Path) -> None:
    with open_results(root / "results" / "tiny"):
        result = call("run", "tiny", "--backend", "fake")
    assert result.exit_code == 3
    assert f"the results folder is in use by process {os.getpid()}" in result.stderr


def test_reproduce_goes_from_the_manifest_to_the_report_and_its_reference(root: Path) -> None:
    shutil.copytree(EXPERIMENTS / "_smoke", root / "experiments/_smoke", ignore=lambda *_: ["reference"])
    result = call("reproduce", "_smoke", "--backend", "fake", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert "25 runs valid, 0 invalid, 0 failed, 0 missing" in result.output
    assert (
        "2 hypotheses: 2 reproduced, 0 agrees, 0 not reproduced, 0 inconclusive, 0 not measured, 0 not testable"
        in result.output
    )
    assert "reference: no reference" in result.output
    results = root / "results" / "_smoke"
    assert f"report: {results / 'report.html'}" in result.output
    assert (results / "report.html").stat().st_size > 10_000
    assert f"all studies: {root / 'results' / 'index.html'}" in result.output
    assert "all studies:" in call("report").output
    assert call("evidence", "reference", "_smoke").exit_code == 0
    assert call("report", "_smoke").exit_code == 0
    again = call("reproduce", "_smoke", "--backend", "fake")
    assert "0 runs executed, 25 kept, 0 failed" in again.output
    assert "reference: identical" in again.output


def test_an_invalid_run_gives_status_4_and_the_report_all_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXPERIMENTS / "_smoke", root / "experiments/_smoke")
    backend = FakeBackend(achieved_rate_factor=0.9)
    monkeypatch.setattr("longfat.cli.run.open_backend", lambda name, settings, say: backend)
    result = call("reproduce", "_smoke", "--backend", "fake", "--only", "outstanding")
    assert result.exit_code == 4
    assert "0 runs valid, 1 invalid, 0 failed, 0 missing" in result.output
    assert (root / "results/_smoke/report.html").exists()


def test_an_interrupt_before_a_command_has_begun_ends_with_status_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("longfat.cli.root.app", app)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "interrupted; nothing was begun\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_command_ends_with_status_130_and_continues_later(root: Path, number: signal.Signals) -> None:
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
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert b"interrupted; finished work is kept" in errors
    assert not list(raw.glob(".*"))
    result = call("run", "tiny", "--backend", "fake")
    assert result.exit_code == 0
    assert len(find_records(raw)) == 4


@pytest.mark.parametrize("command", ["run", "report", "evidence reference", "package"])
def test_a_results_folder_belongs_to_one_study(root: Path, command: str) -> None:
    results = root / "shared"
    assert call("run", "tiny", "--backend", "fake", "--results", str(results)).exit_code == 0
    lock = (results / "lock.json").read_bytes()
    other = root / "experiments" / "other"
    other.mkdir()
    (other / "study.yaml").write_text(STUDY.replace("study: tiny", "study: other"), encoding="utf-8")
    backend = ["--backend", "fake"] if command == "run" else []
    result = call(*command.split(), "other", "--results", str(results), *backend)
    assert result.exit_code == 2
    assert f"{results}: the folder has results of the study 'tiny', not of 'other'" in result.stderr
    assert (results / "lock.json").read_bytes() == lock


def test_the_schema_is_json() -> None:
    result = call("check", "--schema", "study")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["$schema"].startswith("https://json-schema.org/")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom longfat.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print(sorted({'pydantic', 'pyarrow', 'rich', 'matplotlib', 'numpy'} & set(sys.modules)))"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
