# SPDX-License-Identifier: Apache-2.0
"""Disk of a virtual machine, in the cache folder: Debian 12 with systemd, SSH and GRUB, as on a rented machine.

Owns the layout of the disk and the installation of GRUB, which needs no virtual machine. ``images/machine`` defines its
content. A second disk gives the machine its identity (images/machine/root/usr/local/sbin/seed).
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import struct
import uuid
from collections.abc import Callable
from pathlib import Path

from longfat.builds.apt import source_lines
from longfat.builds.image import RECIPE_FOLDER as IMAGES
from longfat.builds.programs import list_entries, require_programs, run_program
from longfat.system.cache import cache_folder
from longfat.system.errors import RigError
from longfat.system.store import keep

RECIPE_FOLDER = IMAGES / "machine"
SUITE = "bookworm"
# Debian package by program.
NEEDED = {"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "dd": "coreutils"}
EPOCH = 1735689600  # 2025-01-01T00:00:00Z, as for the image: the latest time stamp of any file
SECTOR = 512
FIRST_SECTOR = 2048
DISK_MIB = 4096  # a worker needs 2 GB: Python packages, kernels and image
GRUB_MODULES = "biosdisk part_msdos ext2 normal linux configfile search search_fs_uuid loadenv echo test sleep reboot"


def build_disk(*, say: Callable[[str], None] = lambda line: None) -> Path:
    """Return the disk, from the cache folder or built now (about two minutes).

    Raises RigError if it has to be built and this user or this machine cannot do it.
    """
    digest = recipe_digest(RECIPE_FOLDER)
    disk = cache_folder() / "disks" / f"machine-{digest[:16]}.raw"

    if not disk.exists():
        _require()

    def make(new: Path) -> None:
        say(f"building the machines' {SUITE} disk with mmdebstrap (about two minutes)")
        _build(RECIPE_FOLDER, digest, new.parent).rename(new)

    return keep(disk, make, "the machines' disk", "4 GB")


def recipe_digest(folder: Path) -> str:
    """Return the SHA-256 of everything that determines the disk's content, except the versions of Debian's packages."""
    digest = hashlib.sha256(repr((SUITE, EPOCH, FIRST_SECTOR, DISK_MIB, GRUB_MODULES)).encode())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        mode = path.stat().st_mode & 0o100
        digest.update(f"{path.relative_to(folder)} {mode} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def boot_sector(boot: bytes, first: int, sectors: int) -> bytes:
    """Return GRUB's boot sector with one Linux partition; GRUB expects its core image in the next sector."""
    code = bytearray(boot[:440].ljust(SECTOR, b"\0"))
    code[0x66:0x68] = b"\x90\x90"  # no floppy check, as grub-bios-setup does for a disk
    entry = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", first, sectors)
    code[440:444] = b"LFAT"
    code[446:462] = entry
    code[510:512] = b"\x55\xaa"
    return bytes(code)


def _require() -> None:
    """Raise RigError unless this user and this machine can build a disk."""
    require_programs(NEEDED, "the machines' disk")
    if os.geteuid() != 0:
        raise RigError(
            "only root can build the machines' disk, because its files belong to root",
            hint=f"as root, once: LONGFAT_CACHE={cache_folder()} ./just build disk",
        )


def _build(recipe: Path, digest: str, folder: Path) -> Path:
    """Build the root, then its file system, then the disk with GRUB before it. Raises RigError and OSError."""
    root, part, disk = folder / "root", folder / "part", folder / "disk"
    packages, fetched = (list_entries((recipe / name).read_text()) for name in ("packages.txt", "fetched.txt"))
    run_program(
        *("mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", f"--include={','.join(packages)}"),
        *("--skip=cleanup/apt/lists", "--skip=cleanup/apt/cache"),
        f'--customize-hook=sh {shlex.quote(str(recipe / "customize.sh"))} "$1"',
        *(SUITE, str(root), *source_lines(SUITE)),
        hint="`apt-get update` shows whether the Debian archives are reachable",
        SOURCE_DATE_EPOCH=str(EPOCH),
        FETCHED=" ".join(fetched),
        GRUB_MODULES=GRUB_MODULES,
    )
    _limit_times(root)
    sectors = DISK_MIB * 2048 - FIRST_SECTOR
    with part.open("wb") as file:
        file.truncate(sectors * SECTOR)
    identity = str(uuid.UUID(digest[:32]))
    run_program(
        *("mke2fs", "-q", "-t", "ext4", "-U", identity, "-E", f"hash_seed={identity}"),
        *("-O", "^metadata_csum_seed,^orphan_file"),  # features that GRUB 2.06 does not read
        *("-d", str(root), str(part)),
        SOURCE_DATE_EPOCH=str(EPOCH),
        E2FSPROGS_FAKE_TIME=str(EPOCH),
    )
    boot = (root / "usr/lib/grub/i386-pc/boot.img").read_bytes()
    core = (root / "boot/grub/i386-pc/core.img").read_bytes()
    if len(core) > (FIRST_SECTOR - 1) * SECTOR:
        raise RigError(f"GRUB's core image has {len(core)} bytes, more than fit before the partition")
    shutil.rmtree(root)
    with disk.open("wb") as file:
        file.write(boot_sector(boot, FIRST_SECTOR, sectors) + core)
    place = [f"if={part}", f"of={disk}", f"seek={FIRST_SECTOR}", f"bs={SECTOR}"]
    run_program("dd", *place, "conv=sparse,notrunc", "status=none")
    os.truncate(disk, DISK_MIB << 20)
    return disk


def _limit_times(root: Path) -> None:
    """Make no file newer than the epoch. Only the inode change times still show the time of the build."""
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            if os.lstat(path).st_mtime > EPOCH:
                os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)
