# SPDX-License-Identifier: Apache-2.0
"""Programs of a build: their environment, and the error of a failed one. Must not know what they build."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from longfat.system.errors import RigError

OUTPUT_TAIL_CHARS = 2000


def run_program(*argv: str | Path, hint: str | None = None, **environment: str) -> None:
    """Run a program, from /sbin too. Raises RigError with the end of its output if it fails."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    try:
        done = subprocess.run(
            argv,
            env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise RigError(f"{argv[0]} is not installed", hint=hint) from error
    if done.returncode:
        tail = done.stdout[-OUTPUT_TAIL_CHARS:]
        raise RigError(f"{argv[0]} ended with exit status {done.returncode}:\n{tail}", hint=hint)


def require_packages(listing: Path) -> None:
    """Raise RigError with the missing packages of ``listing`` and the command that installs them."""
    _require(missing_packages(listing.read_text(encoding="utf-8")), "this build", listing.name)


def require_programs(packages: Mapping[str, str], what: str) -> None:
    """Raise RigError with the missing programs' packages; ``packages`` has the package of each program."""
    _require([package for program, package in packages.items() if not is_there(program)], what)


def _require(missing: list[str], what: str, where: str | None = None) -> None:
    missing = list(dict.fromkeys(missing))  # several programs may be of one package
    if missing:
        hint = f"as root: apt-get install --no-install-recommends {' '.join(missing)}"
        raise RigError(f"packages for {what} are missing: {' '.join(missing)}", where=where, hint=hint)


def list_entries(text: str) -> tuple[str, ...]:
    """Return the entries of a list with one entry per line and comments after ``#``."""
    lines = (line.split("#", 1)[0].strip() for line in text.splitlines())
    return tuple(line for line in lines if line)


def missing_packages(listing: str) -> list[str]:
    """Return the packages whose program or file is missing, except those marked with ?."""
    entries = (line.split()[:2] for line in list_entries(listing))
    return [package for package, probe in entries if not probe.startswith("?") and not is_there(probe)]


def is_there(probe: str) -> bool:
    """Return whether a program is in PATH or among root's programs, or whether the file ``probe`` exists."""
    if probe.startswith("/"):
        return Path(probe).exists()
    return shutil.which(probe, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None
