# SPDX-License-Identifier: Apache-2.0
"""The archive of all inputs: builds take them from there, each compared with its checksum, and download nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_bootstrap import Machine
from test_bootstrap import machine as machine
from tiny_images import empty_cache
from tiny_kernels import tiny_kernels

from longfat.builds.apt import source_lines
from longfat.builds.archive import SUMS, VARIABLE, archived
from longfat.builds.image import build_image
from longfat.builds.kernel import build_kernel
from longfat.builds.listing import sha256_of
from longfat.system.errors import RigError


def archive_of(files: Path, place: str, folder: Path) -> Path:
    """Make an archive with a copy of some files at a place."""
    shutil.copytree(files, folder / place, ignore=lambda *_: ["root", "image"])
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    (folder / SUMS).write_text("".join(f"{sha256_of(path)}  {path.relative_to(folder)}\n" for path in paths))
    return folder


def test_an_image_of_the_archive_is_the_one_that_was_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = empty_cache(tmp_path, monkeypatch)
    built = build_image()
    folder = archive_of(cache / "images", "cache/images", tmp_path / "archive")
    (tmp_path / "programs/mmdebstrap").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "other"))
    monkeypatch.setenv(VARIABLE, str(folder))
    taken = build_image()
    assert (taken.digest, taken.listing_sha256) == (built.digest, built.listing_sha256)
    assert taken.path.is_relative_to(tmp_path / "other")


def test_a_kernel_of_the_archive_needs_neither_source_nor_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = tiny_kernels(tmp_path, monkeypatch)
    built = build_kernel(kernels_folder=kernels)
    folder = archive_of(built.path.parents[1], "cache/kernels", tmp_path / "archive")
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "other"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv(VARIABLE, str(folder))
    taken = build_kernel(kernels_folder=kernels)
    assert taken.digest == built.digest and taken.path.read_bytes() == built.path.read_bytes()
    assert taken.path.is_relative_to(tmp_path / "other")


@pytest.mark.parametrize("fault", ["byte", "missing", "no list", "no folder"])
def test_a_damaged_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/tarball").write_bytes(b"linux")
    folder = archive_of(tmp_path / "files", "source", tmp_path / "archive")
    monkeypatch.setenv(VARIABLE, str(folder))
    assert archived("source", "tarball") == folder / "source/tarball" and archived("source", "other") is None
    if fault == "byte":
        (folder / "source/tarball").write_bytes(b"linuX")
    elif fault == "missing":
        (folder / "source/tarball").unlink()
    elif fault == "no list":
        (folder / SUMS).unlink()
    else:
        shutil.rmtree(folder)
    with pytest.raises(RigError) as caught:
        archived("source", "tarball")
    assert caught.value.where == str(folder)


@pytest.mark.parametrize("fault", ["", "damaged", "a blank in LONGFAT_ARCHIVE", "a blank in TMPDIR"])
def test_a_machine_is_set_up_from_a_whole_archive_only(machine: Machine, tmp_path: Path, fault: str) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/Packages").write_bytes(b"\n")
    folder = archive_of(tmp_path / "files", "packages", tmp_path / ("an archive" if "ARCHIVE" in fault else "archive"))
    scratch = tmp_path / ("\tscratch" if "TMPDIR" in fault else "scratch")
    scratch.mkdir()
    if fault == "damaged":
        (folder / "packages/Packages").write_bytes(b"changed\n")
    for name in ("mktemp", "mkdir", "rm"):
        (machine.programs / name).symlink_to(f"/usr/bin/{name}")
    machine.install("id", "echo 0")
    machine.install("apt-get", "cat /dev/null")
    machine.needs("gizmo nonesuch # why\n")
    done = machine.start("check", LONGFAT_ARCHIVE=str(folder), TMPDIR=str(scratch))
    assert done.returncode == 3 and [*scratch.iterdir()] == []
    assert all((word in done.stderr) == (word in fault) for word in ("damaged", "blank"))
    updates = [line for line in machine.calls() if line.startswith("apt-get") and line.endswith("update")]
    assert ["-oDir::Etc::SourceList=" in line for line in updates] == ([] if fault else [True])


def test_a_snapshot_selects_the_archive_of_a_day() -> None:
    lines = source_lines("bookworm", "20261101T000000Z")
    assert len(lines) == 3 and all("/20261101T000000Z " in line and "check-valid-until=no" in line for line in lines)
