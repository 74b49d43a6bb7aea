# SPDX-License-Identifier: Apache-2.0
"""The container image under Docker's default security profile, without network, as users that are not root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import dockerd
import pytest
from dockerd import Docker
from rich.console import Console

from longfat.builds import oci
from longfat.cli.build import build_container as build
from longfat.report.reference import compare
from longfat.studies import StudyFolder

pytestmark = pytest.mark.docker

STUDY = Path(__file__).parents[2] / "experiments" / "_smoke"
UNPRIVILEGED = ("run", "--rm", "--network", "none")
OF_DOCKER = re.compile(r"docker|containerd|runc")
ANOTHER_USER = 12345
# The same for Docker as Apptainer's default: nothing of the image can be written to.
READ_ONLY = ("--read-only", "--tmpfs", "/tmp:exec", "--user", f"{ANOTHER_USER}:{ANOTHER_USER}")


def traces() -> dict[str, object]:
    """Return what a daemon and its containers could leave: processes, mounts, links, rules, cgroups, folders."""
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
    if not shutil.which("buildah"):
        dockerd.refuse("missing: buildah (images/packages-oci.txt)")
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
    """Make a results folder that belongs to ``user`` if this process may give it away."""
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


@pytest.mark.slow
def test_a_second_build_gives_the_same_bytes(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oci, "cache_folder", lambda: tmp_path)
    second = build(Console())
    assert second != archive
    assert second.read_bytes() == archive.read_bytes()
