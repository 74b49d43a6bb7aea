# SPDX-License-Identifier: Apache-2.0
"""On a real Slurm of two nodes a study ends as on one machine, although a node and the command die."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from remote_study import alone, dataset_of, on_nodes, recorded, workers
from remote_study import repository as repository
from slurm import NODES, Slurm, slurm

from longfat.dataset.build import build_dataset
from longfat.execute.record.verify import find_records

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    with slurm() as own:
        yield own


@dataclass(frozen=True)
class Study:
    """A repository with the study ``tiny`` of twelve runs, and a cluster that executes it."""

    cluster: Slurm
    root: Path
    results: Path
    commands: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, **more: str) -> subprocess.Popen[bytes]:
        """Start the command that executes the study on the cluster, with ``more`` variables."""
        options = ["--backend", "fake", "--on", "slurm", "--jobs", "2", "--results", str(self.results)]
        with self.output.open("w") as output:
            command = subprocess.Popen(
                [sys.executable, "-m", "longfat", "run", "tiny", *options],
                env={**self.cluster.environment, **on_nodes(self.root), **more},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.commands.append(command)
        return command

    def end(self, command: subprocess.Popen[bytes]) -> str:
        """Wait until the command has ended well; return its output."""
        assert command.wait(PATIENCE_S) == 0, self.output.read_text()
        return self.output.read_text()

    @property
    def output(self) -> Path:
        return self.root / "output"

    def recorded(self, count: int) -> None:
        """Wait until so many runs are recorded."""
        self.cluster.wait(lambda: recorded(self.results) >= count, PATIENCE_S)


@pytest.fixture(scope="module")
def local(repository: Path) -> dict[str, str]:
    """The dataset of one machine."""
    return alone(repository)


@pytest.fixture
def study(cluster: Slurm, repository: Path, tmp_path: Path) -> Iterator[Study]:
    own = Study(cluster, repository, tmp_path / "results")
    yield own
    for command in own.commands:
        command.kill()
        command.wait()
    for node in NODES:
        cluster.on_node(node)
        if node not in cluster.daemons:
            cluster.start(node)
    cluster("scancel", "--me")
    cluster.wait(cluster.is_idle)
    cluster.wait(lambda: not workers(str(tmp_path)))  # Slurm without cgroups loses sight of them


def test_a_worker_and_a_node_die_and_the_dataset_is_that_of_one_machine(study: Study, local: dict[str, str]) -> None:
    study.cluster.on_node("node1", NODE_SECONDS="5")
    command = study.start()
    study.recorded(2)
    study.cluster.power_fails("node1")  # in the middle of a run of five seconds
    assert "12 runs executed, 0 kept, 0 failed" in study.end(command)
    assert dataset_of(study.results) == local
    assert {record.node for record in find_records(study.results / "raw").values()} >= {"node2"}
    assert not list(study.results.glob("cluster/session-*")), "the key of the session stays"


def test_a_command_that_was_killed_goes_on_with_the_missing_runs(study: Study, local: dict[str, str]) -> None:
    command = study.start()
    study.recorded(2)
    command.kill()
    command.wait()
    before = {path: path.stat().st_mtime_ns for path in study.results.glob("raw/delay*/run.json")}
    study.cluster.wait(study.cluster.is_idle, 90)  # workers end with their scheduler
    said = study.end(study.start())
    assert f"{12 - len(before)} of 12 runs to execute" in said
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert dataset_of(study.results) == local


def test_a_cluster_that_refuses_every_job_ends_the_command_with_its_reason(study: Study) -> None:
    command = study.start(SBATCH_PARTITION="absent")
    assert command.wait(PATIENCE_S) == 3
    assert "Slurm refuses the jobs: sbatch: error: invalid partition" in study.output.read_text()
    assert "Traceback" not in study.output.read_text()


@pytest.mark.virtual
def test_a_worker_boots_guests(study: Study, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "longfat", "run", "_smoke", "--only", "one-drop", "--on", "slurm", "--jobs", "2"]
    environment = {**study.cluster.environment, "LONGFAT_ROOT": str(ROOT), "PYTHONPATH": f"{ROOT}/src"}
    done = subprocess.run([*line, "--results", str(tmp_path / "r")], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = build_dataset(tmp_path / "r")
    assert counts.ok > 0 and (counts.failed, counts.invalid, counts.missing) == (0, 0, 0)
