# SPDX-License-Identifier: Apache-2.0
"""Files of a study's programs for guests, in the cache folder by SHA-256.

A run identifies its files by SHA-256, so that it is the same run on every machine; without a file it is refused.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from longfat.guest.kinds.programs import FILES
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError, SettledError
from longfat.system.files import write_whole


def keep(files: Mapping[str, Path], jail: Path) -> None:
    """Copy files, given by SHA-256, into the cache folder ``jail``. Raises RigError if a file has changed."""
    for digest, path in files.items():
        target = jail / FILES / digest
        if target.is_file():
            continue
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise RigError("the file has changed since the study was read", where=str(path), hint="start again")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)


def missing(spec: RunSpec, jail: Path) -> Iterator[str]:
    """Yield a reason for each file of a run that the cache folder lacks."""
    for one in spec.programs:
        for name, digest in sorted(one.files.items()):
            if not (jail / FILES / digest).is_file():
                file = f"the file {name} ({digest[:12]}) of program {one.name}"
                yield f"the cache folder {jail} lacks {file}; `./just run STUDY` copies it"


def copy(spec: RunSpec, jail: Path, task: Path) -> None:
    """Copy the files of a run into the folder of its task. Raises RigError if a file is damaged."""
    for digest in sorted({digest for one in spec.programs for digest in one.files.values()}):
        (task / FILES).mkdir(exist_ok=True)
        shutil.copyfile(jail / FILES / digest, task / FILES / digest)
        if hashlib.sha256((task / FILES / digest).read_bytes()).hexdigest() != digest:
            hint = "delete it, then `./just run STUDY`"
            raise RigError("the file is damaged", where=str(jail / FILES / digest), hint=hint)


def explain_hang(error: RigError, spec: RunSpec) -> RigError:
    """Return the error of a guest whose clock stands still; it names the programs that may be the cause."""
    if not spec.programs:
        return error
    names = ", ".join(one.name for one in spec.programs)
    return SettledError(
        f"{error.message}\na program of the study computes or polls endlessly, but time passes in a guest only while "
        f"every program waits: {names}",
        hint="make the program wait (poll with a timeout, sleep, read) instead of spinning",
    )
