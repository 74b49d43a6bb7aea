# SPDX-License-Identifier: Apache-2.0
"""What tests with emulated machines need of this machine. Must not assert anything."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from needs import refuse

from longfat.system.cache import cache_folder

PROGRAMS = ("qemu-system-x86_64", "mmdebstrap", "mke2fs", "ssh", "ssh-keygen", "dpkg-deb")


def packages() -> list[Path]:
    """The x86-64 packages in the cache folder, the newest last: building one takes a quarter of an hour."""
    found = (cache_folder() / "kernels").glob("*/linux-image-*.deb")
    return sorted(found, key=lambda path: path.stat().st_mtime)


def require_machines(*programs: str) -> None:
    """Refuse the test where such machines cannot run; ``programs`` are needed besides the usual ones."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    reasons = [
        f"{program} is not installed" for program in (*PROGRAMS, *programs) if shutil.which(program, path=path) is None
    ]
    if os.geteuid() != 0:
        reasons.append("only root can make the machines' disk")
    if not packages():
        reasons.append("no x86-64 kernel in the cache folder: ./just build kernel --target x86-64 builds it")
    if reasons:
        refuse("infra", "; ".join(reasons))
