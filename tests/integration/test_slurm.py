# SPDX-License-Identifier: Apache-2.0
"""On a real Slurm of two nodes a study ends as on one machine, whatever happens to workers, nodes and the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from remote_study import alone, dataset_of, on_nodes, recorded, workers, write_repository
from slurm import NODES, Slurm, slurm

from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import dataset_digests
from longfat.execute.record.verify import find_records
from longfat.report.reference import compare

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

    def start(self) -> subprocess.Popen[bytes]:
        """Start the command that executes the study on the cluster."""
        options = ["--backend", "fake", "--on", "slurm", "--jobs", "2", "--results", str(self.results)]
        with self.output.open("w") as output:
            command = subprocess.Popen(
                [sys.executable, "-m", "longfat", "run", "tiny", *options],
                env={**self.cluster.environment, **on_nodes(self.root)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.commands.append(command)
        return command

    def end(self, command: subprocess.Popen[bytes], status: int = 0) -> str:
        """Wait until the command has ended with this status; return its output."""
        ended = command.wait(PATIENCE_S)
        assert ended == status, self.output.read_text()
        return self.output.read_text()

    @property
    def output(self) -> Path:
        return self.root / "output"

    def recorded(self, count: int) -> None:
        """Wait until so many runs are recorded."""
        self.cluster.wait(lambda: recorded(self.results) >= count, PATIENCE_S)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_repository(tmp_path_factory.mktemp("repository"))


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


def ports(pid: int) -> set[int]:
    """Return the TCP ports at which a process listens."""
    links = (os.readlink(handle) for handle in Path("/proc", str(pid), "fd").iterdir())
    inodes = {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:[")}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[9] in inodes and row[3] == "0A"}


def test_a_worker_and_a_node_die_and_the_dataset_is_that_of_one_machine(study: Study, local: dict[str, str]) -> None:
    study.cluster.on_node("node1", NODE_SECONDS="5")
    command = study.start()
    study.recorded(2)
    assert len(ports(command.pid)) == 1, "the scheduler, with TLS"
    study.cluster.power_fails("node1")  # in the middle of a run of five seconds
    assert "[12/12]" in study.end(command)
    assert dataset_of(study.results) == local
    assert {record.node for record in find_records(study.results / "raw").values()} >= {"node2"}
    assert not list(study.results.glob("cluster/session-*")), "the key of the session stays"


@pytest.mark.parametrize("stop", ["terminate", "kill"])
def test_a_command_that_was_stopped_goes_on_with_what_is_missing(
    study: Study, local: dict[str, str], stop: str
) -> None:
    command = study.start()
    study.recorded(2)
    getattr(command, stop)()
    assert command.wait(60) == (130 if stop == "terminate" else -9)
    before = {path: path.stat().st_mtime_ns for path in study.results.glob("raw/delay*/run.json")}
    assert not list(study.results.glob("raw/.partial-*")) or stop == "kill"
    study.cluster.wait(study.cluster.is_idle, 90)  # workers end with their scheduler
    said = study.end(study.start())
    assert f"{12 - len(before)} of 12 runs to execute" in said
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert dataset_of(study.results) == local


def test_a_run_that_fails_everywhere_is_recorded_as_failed(study: Study) -> None:
    for node in NODES:
        study.cluster.on_node(node, NODE_FAULT="crash")
    said = study.end(study.start(), status=4)
    assert "crashed and is repeated" in said and "12 failed" in said
    runs = [json.loads(path.read_text()) for path in study.results.glob("raw/delay*/run.json")]
    assert {run["status"] for run in runs} == {"failed"} and {run["attempt"] for run in runs} == {2}


def test_a_node_with_another_version_ends_the_command_and_is_named(study: Study) -> None:
    for node in NODES:
        study.cluster.on_node(node, NODE_CODE="another")
    said = study.end(study.start(), status=3)
    assert "digests that differ" in said and "error: node" in said


@pytest.mark.virtual
def test_the_smoke_study_ends_with_the_reference(study: Study, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "longfat", "reproduce", "_smoke", "--on", "slurm", "--jobs", "2"]
    environment = {**study.cluster.environment, "LONGFAT_ROOT": str(ROOT), "PYTHONPATH": f"{ROOT}/src"}
    line += ["--results", str(tmp_path / "r")]
    done = subprocess.run(line, env=environment | {"COLUMNS": "200"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    match = compare(tmp_path / "r", StudyFolder(ROOT / "experiments/_smoke"))
    assert match.status in ("identical", "no_reference"), match.lines
    assert dataset_digests(tmp_path / "r")
