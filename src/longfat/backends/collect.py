# SPDX-License-Identifier: Apache-2.0
"""Takes over the files that a guest, or a host of a lab, has left in a folder that it could write to.

Nothing in such a folder is trusted: a link would lead to files of this machine, a device or a hole in a file would fill
its disk. Must not know the purpose of the files. The program that wrote them has ended.
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from longfat.errors import RigError

MAX_FILES = 100_000  # a flow leaves five
MAX_BYTES = 32 << 30  # of all files together, holes included
MAX_DEPTH = 4  # folders in folders
MAX_TEXT_BYTES = 4 << 20  # of a console
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for its writer


@dataclass
class _Left:
    """How much may still come."""

    files: int
    size: int

    def take(self, size: int, where: Path) -> None:
        self.files -= 1
        self.size -= size
        if self.files < 0 or self.size < 0:
            raise RigError(f"a run left more than {MAX_FILES} files or {MAX_BYTES >> 30} GiB", where=str(where))


def collect(source: Path, target: Path) -> None:
    """Copy all files below ``source`` to the folder ``target``, which exists.

    Raises RigError when there is anything but files and folders, or more than the limits allow; OSError when ``target``
    cannot be written.
    """
    descriptor = _opened(source, source)
    try:
        _folder(descriptor, source, target, _Left(MAX_FILES, MAX_BYTES), MAX_DEPTH)
    finally:
        os.close(descriptor)


def read_text(path: Path) -> str:
    """The last ``MAX_TEXT_BYTES`` of a file; where a guest has put something else in its place, a description of it."""
    try:
        with open(_opened(path, path), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_TEXT_BYTES))
            return file.read(MAX_TEXT_BYTES).decode(errors="replace")
    except (RigError, OSError) as error:
        return str(error)


def _folder(descriptor: int, place: Path, target: Path, left: _Left, depth: int) -> None:
    """Copy the content of an open folder, whose path for messages is ``place``."""
    if depth == 0:
        raise RigError(f"a run left nested folders, more than {MAX_DEPTH} deep", where=str(place))
    for name in sorted(os.listdir(descriptor)):
        where = place / name
        inner = _opened(name, where, descriptor)
        try:
            facts = os.fstat(inner)
            left.take(facts.st_size, where)
            if stat.S_ISDIR(facts.st_mode):
                (target / name).mkdir(exist_ok=True)
                _folder(inner, where, target / name, left, depth - 1)
            else:
                with open(inner, "rb", closefd=False) as file, (target / name).open("wb") as copy:
                    shutil.copyfileobj(file, copy)
        finally:
            os.close(inner)


def _opened(name: str | Path, place: Path, within: int | None = None) -> int:
    """A descriptor of a file or folder, in an open folder if one is given. Raises RigError when it is neither."""
    try:
        descriptor = os.open(name, _OPEN, dir_fd=within)
    except OSError as error:  # a link is refused as a loop, a socket as no device
        raise RigError(
            f"a run left something that is neither a file nor a folder, or is unreadable: {error.strerror}",
            where=str(place),
        ) from error
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        os.close(descriptor)
        raise RigError("a run left something that is neither a file nor a folder", where=str(place))
    return descriptor
