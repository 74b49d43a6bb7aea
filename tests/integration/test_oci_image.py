# SPDX-License-Identifier: Apache-2.0
"""The container image under Docker's default security profile, without network, as users that are not root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import dockerd
import pytest
from dockerd import Docker
from rich.console import Console
from typer.testing import CliRunner

from longfat.builds import oci
from longfat.cli import app
from longfat.cluster.manifest import FOLDER, Pods, job_of
from longfat.cluster.protocol import Work, ends_in
from longfat.dataset.build import build_dataset, dataset_digests
from longfat.record.verify import find_records
from longfat.report.reference import compare
from longfat.studies import StudyFolder
from longfat.verbs.oci import build

pytestmark = pytest.mark.docker

STUDY = Path(__file__).parents[2] / "experiments" / "_smoke"
UNPRIVILEGED = ("run", "--rm", "--network", "none")
OF_DOCKER = re.compile(r"docker|containerd|runc")
ANOTHER_USER = 12345
# The same for Docker as Apptainer's default: nothing of the image can be written to.
READ_ONLY = ("--read-only", "--tmpfs", "/tmp:exec", "--user", f"{ANOTHER_USER}:{ANOTHER_USER}")


def traces() -> dict[str, object]:
    """What a daemon and its containers could leave: processes, mounts, network links, rules, cgroups, folders."""
    names = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # it has ended
            names.append(path.read_text().strip())
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True).stdout if shutil.which("iptables") else ""
    folders = [Path(name) for name in ("/run", "/etc", "/var/lib", "/var/run", "/tmp")]
    groups = Path("/sys/fs/cgroup").glob("**/")
    return {
        "processes": sorted(name for name in names if OF_DOCKER.match(name)),
        "mounts": [line for line in Path("/proc/mounts").read_text().splitlines() if "docker" in line],
        "links": sorted(os.listdir("/sys/class/net")),
        "rules": [line for line in rules.splitlines() if line.startswith("-")],
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
        "cgroups": sorted(str(path) for path in groups if "docker" in path.name),
        "folders": sorted(str(path) for folder in folders for path in folder.iterdir() if OF_DOCKER.match(path.name)),
    }


@pytest.fixture(scope="module")
def docker() -> Iterator[Docker]:
    """Docker; a daemon that was started for these tests must leave nothing behind, whatever they did with it."""
    before = traces()
    with dockerd.docker() as command:
        yield command
    if command != Docker():
        assert traces() == before


@pytest.fixture(scope="module")
def archive(docker: Docker) -> Path:
    """The archive, built now from the user's own cache folder."""
    return build(Console())


@pytest.fixture(scope="module")
def image(docker: Docker, archive: Path) -> Iterator[str]:
    """The loaded image; afterwards its name means what it meant before."""
    name = archive.stem.replace("-", ":")
    before = docker("images", "--quiet", "--no-trunc", name).stdout.split()
    docker("load", "--input", archive)
    loaded = docker("images", "--quiet", "--no-trunc", name).stdout.split()
    yield name
    if before != loaded:
        docker("rmi", name)
    if before:
        docker("tag", before[0], name)


def results_of(user: int, folder: Path) -> Path:
    """A results folder that belongs to ``user`` if this process may give it away."""
    folder.mkdir()
    folder.chmod(0o777)
    if os.geteuid() == 0:
        os.chown(folder, user, user)
    return folder


@pytest.mark.parametrize(
    ("options", "user"), [((), 1000), (READ_ONLY, ANOTHER_USER)], ids=["default-user", "read-only-other-user"]
)
def test_the_smoke_study_ends_in_a_container_as_it_does_outside(
    docker: Docker, image: str, tmp_path: Path, options: tuple[str, ...], user: int
) -> None:
    results = results_of(user, tmp_path / "results")
    done = docker(*UNPRIVILEGED, *options, "--volume", f"{results}:/results", image, "reproduce", "_smoke", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "report: /results/_smoke/report.html" in done.stdout
    assert (results / "_smoke/report.html").stat().st_uid == user
    match = compare(results / "_smoke", StudyFolder(STUDY))
    if match.status == "no_reference":
        pins = json.loads((results / "_smoke/lock.json").read_text())["pins"]
        pytest.skip(f"no reference for kernel {pins['kernel'][:12]} and image {pins['image'][:12]}")
    assert match.status == "identical", match.lines
    assert "reference: identical" in done.stdout


def test_no_program_in_the_image_gives_rights(docker: Docker, image: str) -> None:
    found = docker(*UNPRIVILEGED, "--user", "0", "--entrypoint", "find", image, "/", "-xdev", "-perm", "/6000")
    assert found.stdout == ""


def test_a_user_can_write_results_without_a_mounted_folder_but_not_the_cache(docker: Docker, image: str) -> None:
    script = "touch /results/a /tmp/b && ! touch $LONGFAT_CACHE/c && id -u"
    done = docker(*UNPRIVILEGED, "--entrypoint", "sh", image, "-c", script)
    assert done.stdout == "1000\n"


# In a pod too: runs that take a moment, and leases of pods that were killed are taken over in seconds.
SLOW = """
import fake_backend as fake
from longfat.execute import leases
fake.open_backend = lambda name, say, **settings: fake.FakeBackend(wall_seconds=2.0)
leases.BEAT_S, leases.STALE_S = 0.5, 3.0
"""
TINY = (Path(__file__).parents[1] / "unit/test_shards.py").read_text(encoding="utf-8").split('"""')[3]
TINY = TINY.replace("repetitions: 2", "repetitions: 4")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results folder with the lock of twelve runs, which any user may write to."""
    (tmp_path / "experiments/tiny").mkdir(parents=True)
    (tmp_path / "experiments/tiny/study.yaml").write_text(TINY, encoding="utf-8")
    line = ["run", "tiny", "--backend", "fake", "--results", str(tmp_path / "results")]
    environment = {"LONGFAT_ROOT": str(tmp_path)}
    assert CliRunner().invoke(app, [*line, "--until", "0.1s"], env=environment).exit_code == 75
    assert CliRunner().invoke(app, [*line[:-1], str(tmp_path / "alone")], env=environment).exit_code == 0
    for folder in ("site", "cluster/ended"):
        (tmp_path / "results" / folder).mkdir(parents=True)
    for module in ("fake_backend.py", "fake_truth.py"):
        shutil.copy(Path(__file__).parents[1] / "fake" / module, tmp_path / "results/site" / module)
    (tmp_path / "results/site/sitecustomize.py").write_text(SLOW, encoding="utf-8")
    for path in (tmp_path / "results", *(tmp_path / "results").rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    return tmp_path / "results"


def start_pod(docker: Docker, job: Mapping[str, Any], results: Path, index: int) -> str:
    """Start what a Job's pod of this index executes, as the manifest says it: the container."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    own = {"JOB_COMPLETION_INDEX": str(index), "NODE_NAME": f"node{index}", "PYTHONPATH": f"{FOLDER}/site"}
    given = {one["name"]: one["value"] for one in container["env"] if "value" in one} | own
    (_, mount), program = container["volumeMounts"], container["command"]
    options = [f"--env={name}={value}" for name, value in given.items()]
    options += ["--cap-drop=ALL", "--security-opt=no-new-privileges", f"--tmpfs={mount['mountPath']}:exec"]
    options += [f"--volume={results}:{container['volumeMounts'][0]['mountPath']}", f"--entrypoint={program[0]}"]
    return docker("run", "--detach", "--network=none", *options, container["image"], *program[1:]).stdout.strip()


def test_pods_that_are_evicted_or_killed_and_replaced_do_each_run_of_their_indexes_once(
    docker: Docker, image: str, results: Path
) -> None:
    task = ("--shard", "auto", "--jobs", "1")
    job = job_of(Work("tiny", results, task, results / "cluster", 2, 1, 1 << 30, 600.0), Pods(image, "claim"))
    ended = []
    for end in (("stop", "--time=60"), ("kill",), ()):  # an eviction, a node's death, and what takes their places
        pods = [start_pod(docker, job, results, index) for index in (0, 1)]
        if end:
            before = len(find_records(results / "raw"))
            while {record.node for record in find_records(results / "raw").values()} < {"node0", "node1"} or (
                len(find_records(results / "raw")) == before
            ):
                assert docker("ps", "--quiet").stdout, docker("logs", pods[0], check=False)
                time.sleep(0.1)
            docker(*end, *pods)
        ended.append(docker("wait", *pods).stdout.split())
        docker("rm", *pods)
    assert ended == [["1", "1"], ["137", "137"], ["0", "0"]]
    assert [(end.task, end.node, end.status) for end in ends_in(results / "cluster")] == [
        ("0", "node0", 0),
        ("1", "node1", 0),
    ]
    assert build_dataset(results).ok == build_dataset(results.parent / "alone").ok == 12
    assert dataset_digests(results) == dataset_digests(results.parent / "alone")
    events = [json.loads(line) for path in results.glob("events.*.jsonl") for line in path.read_text().splitlines()]
    finished = [event["folder"] for event in events if event["kind"] == "run_finished"]
    assert len(finished) == len(set(finished)) <= 12  # a pod may be killed between a record and its line


@pytest.mark.slow
def test_a_second_build_gives_the_same_bytes(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oci, "cache_folder", lambda: tmp_path)
    second = build(Console())
    assert second != archive
    assert second.read_bytes() == archive.read_bytes()
