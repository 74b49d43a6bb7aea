# SPDX-License-Identifier: Apache-2.0
"""Packages and sources from the Debian archive of this machine; apt-get and dpkg-deb are stubs."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from tiny_kernels import VERSION, settings, tiny_kernels

from longfat.builds.apt import find_archives, source_lines
from longfat.builds.kernel import build_kernel
from longfat.system.errors import RigError

TARBALL = "/usr/src/nonesuch-linux.tar"
LISTING = """\
http://mirror.example/other/ bookworm main Other
http://mirror.example/debian/ bookworm main Debian
http://mirror.example/debian-security/ bookworm-security main Debian
"""
# The stub logs its arguments and its source, and "downloads" the tar file that a real package would hold.
APT_GET = """\
#!/bin/sh
echo "$@" >>{log}
case "$*" in
indextargets*) cat {listing} ;;
*update) cat "${{1#*=}}" >{source}; test -z "$OFFLINE" || {{ echo "E: cannot connect" >&2; exit 100; }} ;;
*) cp {package} linux-source_1_all.deb ;;
esac
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kernels whose source is in no installed package, but in one of the suite ``next-backports``."""
    folder = tiny_kernels(tmp_path, monkeypatch)
    settings(folder, distribution_tarball=TARBALL, suite="next-backports")
    with tarfile.open(tmp_path / "package", "w") as tar:
        tar.add(tmp_path / f"linux-{VERSION}.tar", f".{TARBALL}")
    (tmp_path / "listing").write_text(LISTING)
    paths = {name: tmp_path / name for name in ("listing", "package", "source")}
    program(tmp_path, "apt-get", APT_GET.format(log=tmp_path / "apt-log", **paths))
    program(tmp_path, "dpkg-deb", '#!/bin/sh\ncat "$2"\n')
    return folder


def program(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "programs" / name
    path.write_text(text)
    path.chmod(0o755)


def test_a_source_of_another_suite_is_fetched_once_from_the_machines_own_archive(kernels: Path, tmp_path: Path) -> None:
    kernel = build_kernel(kernels_folder=kernels)
    assert kernel.version == VERSION
    source = (tmp_path / "source").read_text()
    assert source.startswith("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ")
    assert source.endswith(" http://mirror.example/debian next-backports main\n")
    left = sorted(path.name for path in (tmp_path / "cache/kernels").iterdir() if path.name != kernel.digest[:32])
    assert left == ["lock", "nonesuch-linux.tar", "um.lock"]
    (tmp_path / "programs/apt-get").unlink()
    assert build_kernel(kernels_folder=kernels) == kernel


def test_the_machines_own_apt_is_not_touched(kernels: Path, tmp_path: Path) -> None:
    build_kernel(kernels_folder=kernels)
    calls = (tmp_path / "apt-log").read_text().splitlines()[1:]
    assert [call.split()[-1] for call in calls] == ["update", "linux-source-6.12"]
    for call in calls:
        assert "Dir::Etc::SourceParts=/dev/null" in call
        for key in ("Dir::Etc::SourceList", "Dir::State::Lists", "Dir::Cache"):
            assert f"{key}={tmp_path}/cache/kernels/.apt-" in call


def test_without_the_package_the_release_of_kernel_org_is_tried(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFLINE", "1")
    said: list[str] = []
    with pytest.raises(RigError) as caught:
        build_kernel(kernels_folder=kernels, say=said.append)
    assert said[1].endswith("E: cannot connect\n")
    assert said[2].startswith("fetching file:")
    assert "apt-get install linux-source-6.12" in str(caught.value)


@pytest.mark.parametrize(
    ("listing", "archives"),
    [
        (LISTING, ("http://mirror.example/debian", "http://mirror.example/debian-security")),
        ("http://mirror.example/ubuntu/ noble main Ubuntu\n", (None, None)),
        # Before the lists are fetched the origin is unknown, and the address decides.
        (
            "https://vendor.example/linux/debian/ bookworm stable \nhttp://mirror.example/debian/ bookworm main \n",
            ("http://mirror.example/debian", None),
        ),
        ("", (None, None)),
    ],
)
def test_the_archives_of_debian_are_found_among_the_sources_of_apt(
    listing: str, archives: tuple[str | None, str | None]
) -> None:
    assert find_archives(listing) == archives


def test_an_image_of_another_release_comes_from_the_same_archives(kernels: Path) -> None:
    lines = source_lines("next")
    assert [line.split("] ")[1] for line in lines] == [
        "http://mirror.example/debian next main",
        "http://mirror.example/debian next-updates main",
        "http://mirror.example/debian-security next-security main",
    ]
    assert all("[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" in line for line in lines)
