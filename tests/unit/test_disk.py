# SPDX-License-Identifier: Apache-2.0
"""Disk of virtual machines: its digest, its boot sector, and the errors of its build."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from longfat.builds import disk
from longfat.builds.disk import RECIPE_FOLDER, boot_sector, build_disk, recipe_digest
from longfat.system.errors import RigError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for PATH with an mmdebstrap that fails, for a user who seems to be root."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "mmdebstrap").write_text("#!/bin/sh\necho E: no archive >&2\nexit 25\n")
    (folder / "mmdebstrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(disk, "NEEDED", {"mmdebstrap": "mmdebstrap"})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


def test_every_file_of_the_recipe_counts(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe"
    shutil.copytree(RECIPE_FOLDER, recipe)
    known = recipe_digest(RECIPE_FOLDER)
    assert recipe_digest(recipe) == known
    seed = recipe / "root/usr/local/sbin/seed"
    seed.chmod(0o644)
    assert recipe_digest(recipe) != known
    seed.chmod(0o755)
    (recipe / "fetched.txt").write_text("chrony # another list\n")
    assert recipe_digest(recipe) != known


def test_the_disk_begins_with_grub_and_one_partition_of_linux() -> None:
    sector = boot_sector(b"\xeb" * 512, 2048, 4096)
    assert (len(sector), sector[0], sector[0x66:0x68], sector[510:]) == (512, 0xEB, b"\x90\x90", b"\x55\xaa")
    assert (sector[446], sector[450]) == (0x80, 0x83)
    assert [int.from_bytes(sector[at : at + 4], "little") for at in (454, 458)] == [2048, 4096]
    assert sector[462:510] == bytes(48)


def test_a_disk_that_cannot_be_cooked_leaves_nothing(cache: Path, programs: Path) -> None:
    said: list[str] = []
    with pytest.raises(RigError, match="exit status 25:\nE: no archive"):
        build_disk(say=said.append)
    assert len(said) == 1
    assert [path.suffix for path in (cache / "disks").iterdir()] == [".lock"]
