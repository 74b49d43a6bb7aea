# SPDX-License-Identifier: Apache-2.0
"""Lists of Debian packages that only some builds need, in the format of packages.txt.

Finds missing packages. Must not install anything: the user decides about that.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from longfat.errors import RigError


def require_packages(listing: Path) -> None:
    """Raise RigError naming the packages of ``listing`` that are missing, with the command that installs them."""
    missing = missing_packages(listing.read_text(encoding="utf-8"))
    if missing:
        raise RigError(
            f"packages for this build are missing: {' '.join(missing)}",
            where=listing.name,
            hint=f"as root: apt-get install --no-install-recommends {' '.join(missing)}",
        )


def missing_packages(listing: str, *, wanted: bool = False) -> list[str]:
    """The packages whose probe finds nothing, a program in PATH or a file; with ``wanted`` those marked ? as well."""
    missing = []
    for line in listing.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        package, probe = line.split()[:2]
        if (wanted or not probe.startswith("?")) and not is_there(probe.removeprefix("?")):
            missing.append(package)
    return missing


def is_there(probe: str) -> bool:
    """Whether a program is in PATH or where root's programs are, or the file exists that ``probe`` names."""
    if probe.startswith("/"):
        return Path(probe).exists()
    return shutil.which(probe, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None
