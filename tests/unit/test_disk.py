# SPDX-License-Identifier: Apache-2.0
"""Disk of virtual machines: its digest and its boot sector."""

from __future__ import annotations

import shutil
from pathlib import Path

from longfat.builds.disk import RECIPE_FOLDER, boot_sector, recipe_digest


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
