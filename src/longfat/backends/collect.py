# SPDX-License-Identifier: Apache-2.0
"""Copying of files from a guest, a host of a lab or a worker: from a folder that it could write to, or an archive.

Nothing there is trusted: a link could lead to files of this machine; a device, or a hole in a file, could fill its
disk. The program that wrote the folder has ended.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from longfat.system.errors import RigError

MAX_FILES = 100_000  # a flow leaves five
MAX_BYTES = 32 << 30  # size of all files, including holes
MAX_DEPTH = 4  # folders in folders
MAX_HEADER_BYTES = 1 << 20  # of one entry of an archive
MAX_TEXT_BYTES = 4 << 20  # longest console
TAIL_LINES = 20
_GZIP = b"\x1f\x8b"
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for its writer


@dataclass
class _Left:
    """Number and bytes of the files that are still allowed."""

    files: int
    size: int

    def take(self, size: int, where: Path) -> None:
        self.files -= 1
        self.size -= size
        if self.files < 0 or self.size < 0:
            raise RigError(f"a run left more than {MAX_FILES} files or {MAX_BYTES >> 30} GiB", where=str(where))


def collect(source: Path, target: Path) -> None:
    """Copy all files below ``source`` to the folder ``target``, which exists.

    Raises RigError on anything except files and folders, or above the limits; OSError if ``target`` is not writable.
    """
    descriptor = _open(source, source)
    try:
        _folder(descriptor, source, target, _Left(MAX_FILES, MAX_BYTES), MAX_DEPTH)
    finally:
        os.close(descriptor)


def unpack(archive: IO[bytes], folder: Path) -> None:
    """Unpack a tar archive into ``folder``, which is created.

    Raises RigError on anything except files and folders inside ``folder``, or above the limits; earlier files stay.
    """
    folder.mkdir()
    left = _Left(MAX_FILES, MAX_BYTES)
    compressed = archive.read(len(_GZIP)) == _GZIP
    archive.seek(0)
    plain = cast(IO[bytes], gzip.GzipFile(fileobj=archive)) if compressed else archive
    metered = _Metered(plain, MAX_HEADER_BYTES)
    try:
        with tarfile.open(fileobj=cast(IO[bytes], metered), mode="r:") as entries:
            while entry := entries.next():
                left.take(entry.size, folder / entry.name)
                metered.left = entry.size + tarfile.BLOCKSIZE
                _unpack_entry(entries, entry, folder)
                metered.left = MAX_HEADER_BYTES
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, RecursionError) as error:
        raise RigError(f"an archive cannot be unpacked: {error}", where=str(folder)) from error


class _Metered:
    """A file with a limit of ``left`` bytes, because tarfile reads whole headers of any size."""

    def __init__(self, file: IO[bytes], left: int) -> None:
        self._file, self.left = file, left
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        self.left -= size
        if size < 0 or self.left < 0:
            raise tarfile.ReadError("a header is too large")
        return self._file.read(size)


def _unpack_entry(entries: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path) -> None:
    """Write one file, or make one folder. ``TarFile.extractall`` refuses dangerous entries only since Python 3.11.4."""
    name = PurePosixPath(entry.name)
    path, content = folder / name, entries.extractfile(entry) if entry.isreg() else None
    if len(name.parts) > MAX_DEPTH or not entry.name.isprintable():
        raise RigError(f"{entry.name[:200]!r} is too deep, or no name of a file", where=str(folder))
    if entry.issparse() or name.is_absolute() or ".." in name.parts or not (content or entry.isdir()):
        raise RigError(f"{entry.name!r} is neither a file nor a folder inside the archive", where=str(folder))
    (path.parent if content else path).mkdir(parents=True, exist_ok=True)
    if content:
        with path.open("xb") as target:
            shutil.copyfileobj(content, target)


def read_text(path: Path) -> str:
    """Return the last ``MAX_TEXT_BYTES`` of a file, or an error text if a guest has replaced it."""
    try:
        with open(_open(path, path), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_TEXT_BYTES))
            return file.read(MAX_TEXT_BYTES).decode(errors="replace")
    except (RigError, OSError) as error:
        return str(error)


def tail(text: str) -> str:
    """Return the last lines of a console."""
    return "\n".join(text.splitlines()[-TAIL_LINES:])


def _folder(descriptor: int, place: Path, target: Path, left: _Left, depth: int) -> None:
    """Copy the content of an open folder; ``place`` is its path for messages."""
    if depth == 0:
        raise RigError(f"a run left nested folders, more than {MAX_DEPTH} deep", where=str(place))
    for name in sorted(os.listdir(descriptor)):
        where = place / name
        inner = _open(name, where, descriptor)
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


def _open(name: str | Path, place: Path, within: int | None = None) -> int:
    """Open a file or folder, in the open folder ``within`` if given. Raises RigError on anything else."""
    try:
        descriptor = os.open(name, _OPEN, dir_fd=within)
    except OSError as error:  # ELOOP for a link, ENXIO for a socket
        raise RigError(
            f"a run left something that is neither a file nor a folder, or is unreadable: {error.strerror}",
            where=str(place),
        ) from error
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        os.close(descriptor)
        raise RigError("a run left something that is neither a file nor a folder", where=str(place))
    return descriptor
