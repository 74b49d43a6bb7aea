# SPDX-License-Identifier: Apache-2.0
"""Shards of a study, in one results folder or merged from several, make the dataset that one machine makes."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from conftest import plan_of
from typer.testing import CliRunner, Result

from longfat.cli import app
from longfat.dataset.build import dataset_digests
from longfat.errors import StudyError
from longfat.execute.shards import Shard, read_shard
from longfat.record.verify import find_records
from longfat.runspec import RunSpec

SOURCE = Path(__file__).parents[2] / "src"
STUDY = """
format: 2
study: tiny
title: One flow with three windows
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
      product: {window: [64 KiB, 256 KiB, 1 MiB]}
    repetitions: 2
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one study of six runs, ``tiny``."""
    folder = tmp_path / "experiments" / "tiny"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    return tmp_path


def call(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200", **environment})


def run_tiny(results: Path, *options: str, **environment: str) -> Result:
    return call("run", "tiny", "--backend", "fake", "--jobs", "1", "--results", str(results), *options, **environment)


def made_of(results: Path) -> tuple[bytes, dict[str, str], bytes]:
    """The lock, the digests of all tables of the dataset, and the list of excluded runs."""
    assert call("dataset", "tiny", "--results", str(results)).exit_code == 0
    exclusions = (results / "dataset" / "exclusions.csv").read_bytes()
    return (results / "lock.json").read_bytes(), dataset_digests(results), exclusions


def cost_of(spec: RunSpec) -> float:
    """The costs 1 s to 4 s, by the seed."""
    return 1.0 + spec.seed % 4


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_all_shards_together_have_each_run_once_and_about_the_same_to_do(count: int) -> None:
    plan = plan_of(12)
    parts = [Shard(number, count).part_of((*plan, *plan[:3]), cost_of) for number in range(1, count + 1)]
    assert Counter(run.run_id for part in parts for run in part) == Counter(run.run_id for run in plan)
    assert all([*part] == sorted(part, key=lambda run: -cost_of(run.spec)) for part in parts)
    loads = [sum(cost_of(run.spec) for run in part) for part in parts]
    assert max(loads) - min(loads) <= 4.0


def test_the_division_is_the_same_in_whichever_order_the_plan_is() -> None:
    plan = plan_of(9)
    there, back = (Shard(2, 3).part_of(runs, cost_of) for runs in (plan, plan[::-1]))
    assert there == back


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/0", "-1/3", "a/b", "1/3/5", "Auto", "", "1/ 3"])
def test_what_is_no_shard_is_an_error_that_says_what_is_allowed(text: str) -> None:
    with pytest.raises(StudyError, match=r"--shard: .* is no shard; allowed: K/N with K from 1 to N, such as 3/20, or"):
        read_shard(text, {})


@pytest.mark.parametrize(
    ("environment", "shard"),
    [
        (
            "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=20 SLURM_ARRAY_TASK_COUNT=20",
            Shard(7, 20),
        ),
        ("SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=4 SLURM_ARRAY_TASK_COUNT=5", Shard(1, 5)),
        ("JOB_COMPLETION_INDEX=0 JOB_COMPLETIONS=3", Shard(1, 3)),
        ("JOB_COMPLETION_INDEX=2 JOB_COMPLETIONS=3", Shard(3, 3)),
    ],
)
def test_auto_reads_the_place_in_an_array_from_the_environment(environment: str, shard: Shard) -> None:
    assert read_shard("auto", dict(pair.split("=") for pair in environment.split())) == shard


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ("", r"neither of SLURM_ARRAY_TASK_ID \(Slurm\) and JOB_COMPLETION_INDEX \(Kubernetes\) is set; allowed: K/N"),
        ("SLURM_ARRAY_TASK_ID=1 JOB_COMPLETION_INDEX=0", "are both set; allowed: K/N"),
        ("JOB_COMPLETION_INDEX=0", "JOB_COMPLETIONS is not set; allowed: a whole number"),
        ("JOB_COMPLETION_INDEX=x JOB_COMPLETIONS=3", "JOB_COMPLETION_INDEX is 'x'; allowed: a whole number"),
        ("JOB_COMPLETION_INDEX=3 JOB_COMPLETIONS=3", "JOB_COMPLETIONS is 3, but there is an index 3"),
        (
            "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=9 SLURM_ARRAY_TASK_COUNT=2",
            "the array has 2 tasks numbered 3 to 9, and this is number 3\n  hint: number them without gaps",
        ),
    ],
)
def test_an_environment_that_names_no_place_is_an_error(environment: str, problem: str) -> None:
    with pytest.raises(StudyError, match=f"--shard auto: .*{problem}"):
        read_shard("auto", dict(pair.split("=") for pair in environment.split()))


def test_three_shards_give_the_dataset_of_one_machine_to_the_byte(root: Path) -> None:
    alone, shared = root / "alone", root / "shared"
    assert run_tiny(alone).exit_code == 0
    parts = [root / f"part{number}" for number in (1, 2, 3)]
    array = {"SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "3", "SLURM_ARRAY_TASK_COUNT": "3"}
    for number, part in zip((1, 2, 3), parts, strict=True):
        assert "2 runs executed, 0 kept, 0 failed" in run_tiny(shared, "--shard", f"{number}/3").output
        auto = run_tiny(part, "--shard", "auto", SLURM_ARRAY_TASK_ID=str(number), **array)
        assert "2 runs executed, 0 kept, 0 failed" in auto.output
    assert not (shared / "leases").exists()
    merged = call("merge", str(root / "merged"), *map(str, parts))
    assert "6 records copied, 0 kept; 6 of 6 runs of the lock are recorded as ok" in merged.output
    assert made_of(shared) == made_of(root / "merged") == made_of(alone)
    names = sorted(path.name for path in (alone / "raw").iterdir())
    assert sorted(path.name for path in (shared / "raw").iterdir()) == names


def test_shards_that_share_a_folder_write_their_events_to_files_of_their_own(root: Path) -> None:
    run_tiny(root / "shared", "--shard", "1/3")
    run_tiny(root / "shared", "--shard", "3/3")
    assert sorted(path.name for path in (root / "shared").glob("events*")) == [
        "events.1-of-3.jsonl", "events.3-of-3.jsonl"
    ]  # fmt: skip


def test_a_shard_of_another_plan_is_refused_with_what_differs(root: Path) -> None:
    assert run_tiny(root / "shared", "--shard", "1/3").exit_code == 0
    before = (root / "shared" / "lock.json").read_bytes()
    other = run_tiny(root / "shared", "--shard", "2/3", "--seed", "2")
    assert other.exit_code == 2
    assert f"{root}/shared/lock.json: the lock differs from this command's plan in runs, seed" in other.stderr
    assert (root / "shared" / "lock.json").read_bytes() == before


def test_a_shard_uses_no_scheduler(root: Path) -> None:
    result = run_tiny(root / "shared", "--shard", "1/3", "--scheduler", "tcp://127.0.0.1:9")
    assert result.exit_code == 2
    assert "--shard: a shard runs on the machine that it is started on\n  hint: leave out --scheduler" in result.stderr


def test_a_time_that_suffices_for_no_run_leaves_them_all_with_status_75(root: Path) -> None:
    result = run_tiny(root / "results", "--until", "0.2s")
    assert result.exit_code == 75
    assert "the time is up; 6 runs are left, and the same command continues" in result.stderr
    assert "0 runs executed, 0 kept, 0 failed, 6 left for want of time" in result.output
    assert run_tiny(root / "results", "--until", "1h").exit_code == 0


NUMBERS = itertools.count()


def start(root: Path, shard: str, wall_seconds: float) -> subprocess.Popen[bytes]:
    """A task of its own process that executes a shard of slow runs."""
    script = root / f"slow-{next(NUMBERS)}.py"  # each has a file of its own: another's may just be read
    script.write_text(
        "import fake_backend as fake, longfat.cli as cli, sys\n"
        "from longfat.verbs import run\n"
        f"run.open_backend = lambda name, settings, say: fake.FakeBackend(wall_seconds={wall_seconds})\n"
        "if __name__ == '__main__':\n"
        "    sys.argv = ['longfat', *'run tiny --backend fake --jobs 1 --shard'.split(), sys.argv[1]]\n"
        "    cli.main()\n",
        encoding="utf-8",
    )
    environment = os.environ | {"PYTHONPATH": f"{SOURCE}:{SOURCE.parent}/tests/fake"}
    return subprocess.Popen([sys.executable, str(script), shard], env=environment)


def test_tasks_at_the_same_time_do_each_run_once_even_two_of_one_shard(root: Path) -> None:
    results = root / "results" / "tiny"
    tasks = [start(root, shard, wall_seconds=0.2) for shard in ("1/2", "2/2", "2/2")]
    assert [task.wait(timeout=60) for task in tasks] == [0, 0, 0]
    events = [json.loads(line) for path in results.glob("events.*.jsonl") for line in path.read_text().splitlines()]
    finished = Counter(event["folder"] for event in events if event["kind"] == "run_finished")
    assert finished == Counter(record.folder.name for record in find_records(results / "raw").values())
    assert sum(finished.values()) == 6
    assert not list(results.glob("raw/.*")) and not (results / "leases").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_task_that_was_ended_is_started_again_and_does_only_what_it_had_not_done(
    root: Path, number: signal.Signals
) -> None:
    results = root / "results" / "tiny"
    process = start(root, "1/1", wall_seconds=0.5)
    deadline = time.monotonic() + 30
    while not list(results.glob("raw/delay*")) or not list(results.glob("raw/.partial-*")):
        assert time.monotonic() < deadline and process.poll() is None, "the study did not get going"
        time.sleep(0.02)
    process.send_signal(number)
    process.send_signal(number)  # schedulers like to say it twice
    assert process.wait(timeout=20) == (130 if number == signal.SIGTERM else -signal.SIGKILL)
    assert (results / "leases").exists() == (number == signal.SIGKILL)
    recorded = len(find_records(results / "raw"))
    again = run_tiny(results, "--shard", "1/1")
    assert f"{6 - recorded} runs executed, {recorded} kept, 0 failed" in again.output
    assert len(find_records(results / "raw")) == 6
    assert not list(results.glob("raw/.*")) and not (results / "leases").exists()
