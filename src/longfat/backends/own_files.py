# SPDX-License-Identifier: Apache-2.0
"""Files of studies that travel into a guest with the programs of a run: kept in the cache folder by their SHA-256.

A lock names them by that, so that a run means the same wherever it is executed; a machine that lacks one refuses it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from longfat.errors import RigError, SettledError
from longfat.files import write_whole
from longfat.guest.kinds.programs import FILES
from longfat.runspec import RunSpec


def keep(files: Mapping[str, Path], jail: Path) -> None:
    """Take files into the cache folder ``jail``; each is given with its SHA-256. Raises RigError."""
    for digest, path in files.items():
        target = jail / FILES / digest
        if target.is_file():
            continue
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise RigError("the file has changed since the study was read", where=str(path), hint="start again")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)


def absent(spec: RunSpec, jail: Path) -> Iterator[str]:
    """Why a run cannot be done here: files that it names and nobody has taken into the cache folder."""
    for one in spec.programs:
        for name, digest in sorted(one.files.items()):
            if not (jail / FILES / digest).is_file():
                missing = f"the file {name} ({digest[:12]}) of program {one.name}"
                yield f"the cache folder {jail} lacks {missing}; `longfat run STUDY` brings it there"


def lay_out(spec: RunSpec, jail: Path, task: Path) -> None:
    """Put the files of a run into the folder that the guest sees. Raises RigError when one is not what it was."""
    for digest in sorted({digest for one in spec.programs for digest in one.files.values()}):
        (task / FILES).mkdir(exist_ok=True)
        shutil.copyfile(jail / FILES / digest, task / FILES / digest)
        if hashlib.sha256((task / FILES / digest).read_bytes()).hexdigest() != digest:
            raise RigError("the file is damaged", where=str(jail / FILES / digest), hint="delete it, `longfat run`")


def explained(error: RigError, spec: RunSpec) -> RigError:
    """The error of a guest whose clock stands still, with the programs that may have stopped it."""
    if not spec.programs:
        return error
    names = ", ".join(one.name for one in spec.programs)
    return SettledError(
        f"{error.message}\na program of the study's own computes or polls without end, and time passes in a guest "
        f"only while every program waits: {names}",
        hint="let it block (poll with a timeout, sleep, read) where it now spins",
    )
