# SPDX-License-Identifier: Apache-2.0
"""The container image under Docker's default security profile, without network, as users that are not root."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import dockerd
import pytest
from dockerd import Docker
from needs import refuse
from rich.console import Console

from longfat.builds.image import RECIPE_FOLDER, read_recipe
from longfat.cli.build import build_container as build

pytestmark = [pytest.mark.docker, pytest.mark.oci]

UNPRIVILEGED = ("run", "--rm", "--network", "none")
ANOTHER_USER = 12345
# The same for Docker as Apptainer's default: nothing of the image can be written to.
READ_ONLY = ("--read-only", "--tmpfs", "/tmp:exec", "--user", f"{ANOTHER_USER}:{ANOTHER_USER}")


@pytest.fixture(scope="module")
def docker() -> Iterator[Docker]:
    """Docker; a daemon that was started for these tests leaves no process and no mount behind."""
    with dockerd.docker() as command:
        yield command
    if command != Docker():
        assert [line for line in Path("/proc/mounts").read_text().splitlines() if "docker" in line] == []


@pytest.fixture(scope="module")
def archive(docker: Docker) -> Path:
    """The archive, built now from the user's own cache folder."""
    if not shutil.which("buildah"):
        refuse("docker", "missing: buildah (images/packages-oci.txt)")
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


def test_the_smoke_study_ends_in_a_read_only_container_of_another_user(
    docker: Docker, image: str, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    results.chmod(0o777)
    if os.geteuid() == 0:
        os.chown(results, ANOTHER_USER, ANOTHER_USER)
    line = (*UNPRIVILEGED, *READ_ONLY, "--volume", f"{results}:/results", image, "reproduce", "_smoke")
    done = docker(*line, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (results / "_smoke/report.html").stat().st_uid == ANOTHER_USER
    again = docker(*line[:-2], "again", "trinh-2004", "--sample", "1", check=False)
    assert again.returncode == 0, again.stdout + again.stderr  # byte-identical to the evidence


def test_no_program_in_the_image_gives_rights(docker: Docker, image: str) -> None:
    found = docker(*UNPRIVILEGED, "--user", "0", "--entrypoint", "find", image, "/", "-xdev", "-perm", "/6000")
    assert found.stdout == ""


def test_a_user_can_write_results_without_a_mounted_folder_but_not_the_cache(docker: Docker, image: str) -> None:
    script = "touch /results/a /tmp/b && ! touch $LONGFAT_CACHE/c && id -u"
    done = docker(*UNPRIVILEGED, "--entrypoint", "sh", image, "-c", script)
    assert done.stdout == "1000\n"


def test_no_file_of_the_image_has_the_time_of_its_build(archive: Path) -> None:
    epoch, times = read_recipe(RECIPE_FOLDER).source_date_epoch, set()
    with tarfile.open(archive) as whole:
        for layer in (one for one in whole if one.name.endswith(".tar")):
            with tarfile.open(fileobj=whole.extractfile(layer)) as files:
                times |= {file.mtime for file in files}
    assert times == {epoch}


def test_each_debian_package_of_the_image_has_its_copyright_file(docker: Docker, image: str) -> None:
    script = "for one in $(dpkg-query -f '${Package} ' -W); do test -s /usr/share/doc/$one/copyright || echo $one; done"
    done = docker(*UNPRIVILEGED, "--entrypoint", "sh", image, "-c", f"{script}; dpkg-query -W | wc -l")
    assert int(done.stdout) > 80  # and no name before it


def test_the_image_lists_its_software(docker: Docker, image: str) -> None:
    done = docker(*UNPRIVILEGED, "--entrypoint", "cat", image, "/opt/longfat/system/sbom.spdx.json")
    names = {one["name"] for one in json.loads(done.stdout)["packages"]}
    assert {"longfat", "iproute2", "numpy"} <= names
    labels = docker("image", "inspect", "--format", "{{json .Config.Labels}}", image).stdout
    assert json.loads(labels)["org.opencontainers.image.licenses"] == "Apache-2.0 AND GPL-2.0-only"
