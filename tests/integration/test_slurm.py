# SPDX-License-Identifier: Apache-2.0
"""On a real Slurm of two nodes a study ends as on one machine, whatever happens to tasks, nodes and the command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from slurm import NODES, Slurm, slurm
from typer.testing import CliRunner

from longfat.cache import cache_folder
from longfat.cli import app
from longfat.dataset.build import build_dataset, dataset_digests
from longfat.record.verify import find_records
from longfat.report.reference import compare
from longfat.studies import StudyFolder

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0
CLOCK = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
STUDY = """
format: 2
study: tiny
title: One flow with six windows
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
      product: {window: [64 KiB, 128 KiB, 256 KiB, 512 KiB, 1 MiB, 2 MiB]}
    repetitions: 2
"""
# Runs that take a moment, on a node whose backend is as its variables say.
BACKEND = """
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
import fake_backend as fake

class Runs(dict):
    def get(self, run_id, default=None):
        return os.environ.get("NODE_FAULT", default)

@dataclass(frozen=True)
class Backend(fake.FakeBackend):
    def run(self, spec, folder):
        super().run(spec, folder)
        if "NODE_DIFFERS" in os.environ:
            (folder / "queues.csv").write_text("t_us,node,interface,qdisc,backlog_packets,backlog_bytes,drops_total,"
                                               "sent_packets,sent_bytes,marked_total\\n")

seconds = float(os.environ.get("NODE_SECONDS", "0.4"))
fake.open_backend = lambda name, say, **settings: Backend(wall_seconds=seconds, faults=Runs())
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    with slurm() as own:
        yield own


@dataclass(frozen=True)
class Studies:
    """A repository with the study ``tiny`` of twelve runs, and a cluster."""

    cluster: Slurm
    root: Path
    results: Path

    def start(self) -> subprocess.Popen[bytes]:
        """The command that executes the study on the cluster."""
        options = ["--backend", "fake", "--on", "slurm", "--tasks", "2", "--jobs", "1", "--results", str(self.results)]
        path = f"{self.root}/site:{ROOT}/tests/fake:{ROOT}/src"
        with self.said_file.open("w") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "longfat", "run", "tiny", *options],
                env={**self.cluster.environment, "LONGFAT_ROOT": str(self.root), "PYTHONPATH": path, "COLUMNS": "200"},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def end(self, command: subprocess.Popen[bytes], status: int = 0) -> str:
        """Wait until the command has ended with this status: what it said."""
        ended = command.wait(PATIENCE_S)
        assert ended == status, self.said_file.read_text()
        return self.said_file.read_text()

    @property
    def said_file(self) -> Path:
        return self.root / "said"

    def recorded(self, count: int) -> None:
        """Wait until so many runs are recorded."""
        self.cluster.wait(lambda: len(list(self.results.glob("raw/delay*"))) >= count, PATIENCE_S)


def runs_in(results: Path) -> list[Path]:
    return sorted(results.glob("raw/delay*/run.json"))


def made_of(results: Path) -> dict[str, str]:
    """The digests of the tables of the dataset, of twelve runs that are all valid."""
    counts = build_dataset(results)
    assert (counts.ok, counts.failed, counts.invalid, counts.missing) == (12, 0, 0, 0)
    return dataset_digests(results)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    (root / "experiments/tiny").mkdir(parents=True)
    (root / "experiments/tiny/study.yaml").write_text(STUDY)
    (root / "site").mkdir()
    (root / "site/sitecustomize.py").write_text(BACKEND)
    return root


@pytest.fixture(scope="module")
def alone(repository: Path) -> dict[str, str]:
    """What one machine makes of the study."""
    line = ["run", "tiny", "--backend", "fake", "--jobs", "1", "--results", str(repository / "alone")]
    assert CliRunner().invoke(app, line, env={"LONGFAT_ROOT": str(repository)}).exit_code == 0
    return made_of(repository / "alone")


@pytest.fixture
def studies(cluster: Slurm, repository: Path, tmp_path: Path) -> Iterator[Studies]:
    yield Studies(cluster, repository, tmp_path / "results")
    for node in NODES:
        cluster.on_node(node)
        if node not in cluster.daemons:
            cluster.start(node)
    cluster("scancel", "--me")
    cluster.wait(cluster.is_idle)


def test_a_node_dies_in_mid_array_and_another_one_is_an_hour_ahead(studies: Studies, alone: dict[str, str]) -> None:
    if CLOCK.exists():
        studies.cluster.on_node("node2", LD_PRELOAD=str(CLOCK), FAKETIME="+1h")
    command = studies.start()
    studies.recorded(2)
    studies.cluster.power_fails("node1")
    assert "[12/12]" in studies.end(command)
    assert made_of(studies.results) == alone
    begun = [
        (run["started_utc"], run["node"]) for run in map(json.loads, map(Path.read_text, runs_in(studies.results)))
    ]
    ahead = {node for utc, node in begun if datetime.fromisoformat(utc) > datetime.now(UTC) + timedelta(minutes=30)}
    assert ahead == ({"node2"} if CLOCK.exists() else set())


def test_a_task_is_preempted_and_the_command_killed_and_started_again(studies: Studies, alone: dict[str, str]) -> None:
    studies.cluster.on_node("node1", NODE_SECONDS="5")
    command = studies.start()
    studies.recorded(1)
    urgent = ["--partition=urgent", "--exclusive", "--nodelist=node1", "--output=/dev/null", "--wrap=sleep 600"]
    number = studies.cluster("sbatch", "--parsable", *urgent).strip()  # who is on this node is preempted, and requeued
    state = ("squeue", "--noheader", "--job", number, "--format=%T")
    studies.cluster.wait(lambda: studies.cluster(*state) == "RUNNING\n")
    command.kill()
    command.wait()
    studies.cluster.on_node("node1")
    again = studies.start()
    studies.cluster.wait(lambda: "following the tasks that are there already" in studies.said_file.read_text(), 90)
    studies.cluster("scancel", number)
    said = studies.end(again)
    assert "were executed twice, on different nodes: identical to the byte" in said
    assert made_of(studies.results) == alone


def test_what_fails_on_a_damaged_node_is_executed_on_another_one(studies: Studies, alone: dict[str, str]) -> None:
    studies.cluster.on_node("node2", NODE_FAULT="crash")
    said = studies.end(studies.start())
    assert "node2 gets no more runs, while others execute theirs: " in said
    assert made_of(studies.results) == alone


def test_a_node_that_measures_something_else_is_named_and_what_it_did_is_done_again(
    studies: Studies, alone: dict[str, str]
) -> None:
    studies.cluster.on_node("node2", NODE_DIFFERS="1")
    assert "node2 measures what other nodes do not" in studies.end(studies.start())
    assert {record.node for record in find_records(studies.results / "raw").values()} == {"node1"}
    assert made_of(studies.results) == alone


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_shared_disk_is_an_error_after_which_the_same_command_continues(
    studies: Studies, alone: dict[str, str]
) -> None:
    with small_disk(studies.results):
        said = studies.end(studies.start(), status=3)
        assert "the tasks ended, and no run was recorded" in said and "MB are free" in said
        subprocess.run(["mount", "-o", "remount,size=200m", str(studies.results)], check=True)
        studies.end(studies.start())
        assert made_of(studies.results) == alone


def damaged_cache(place: Path) -> Path:
    """The cache folder with one wrong byte in each kernel of the guests."""
    place.mkdir()
    for path in cache_folder().iterdir():
        if path.name not in ("kernels", "scratch"):
            (place / path.name).symlink_to(path)
    for kernel in (cache_folder() / "kernels").glob("*/linux"):
        copy = place / "kernels" / kernel.parent.name
        shutil.copytree(kernel.parent, copy, ignore=shutil.ignore_patterns("kit.tar.gz"))
        content = bytearray((copy / "linux").read_bytes())
        content[len(content) // 2] ^= 1
        (copy / "linux").write_bytes(content)
    for path in (cache_folder() / "kernels").glob("[ls]*"):
        (place / "kernels" / path.name).symlink_to(path)
    return place


@pytest.mark.virtual
def test_the_smoke_study_ends_with_the_reference_although_a_node_s_kernel_is_damaged_until_it_is_repaired(
    studies: Studies, tmp_path: Path
) -> None:
    def reproduced() -> str:
        line = [sys.executable, "-m", "longfat", "reproduce", "_smoke", "--on", "slurm", "--tasks", "2", "--jobs", "1"]
        environment = {**studies.cluster.environment, "LONGFAT_ROOT": str(ROOT), "PYTHONPATH": f"{ROOT}/src"}
        environment["COLUMNS"] = "200"
        line += ["--results", str(tmp_path / "r")]
        done = subprocess.run(line, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    studies.cluster.on_node("node2", LONGFAT_CACHE=str(damaged_cache(tmp_path / "cache")))
    said = reproduced()
    assert "node2 gets no more runs, while others execute theirs: task " in said and "the kernel is damaged" in said
    match = compare(tmp_path / "r", StudyFolder(ROOT / "experiments/_smoke"))
    assert match.status in ("identical", "no_reference"), match.lines
    studies.cluster.on_node("node2")
    assert "were executed twice, on different nodes: identical to the byte" in reproduced()
