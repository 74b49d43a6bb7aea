# SPDX-License-Identifier: Apache-2.0
"""Atomic writing of files, flushed to the disk; safe reading of other people's files.

Standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import stat
from pathlib import Path

from longfat.system.processes import is_running

_libc = ctypes.CDLL(None, use_errno=True)


def write_whole(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Write a file, text as UTF-8, so that a reader sees either the former content or all of the new content.

    ``mode`` is limited by the umask. Raises OSError, which names ``path`` or its folder.
    """
    start = f".{path.name}-"
    draft = path.with_name(f"{start}{os.getpid()}")
    try:
        for left in (Path(entry) for entry in os.scandir(path.parent) if entry.name.startswith(start)):
            writer = left.name.removeprefix(start)
            if left == draft or (writer.isdigit() and not is_running(int(writer))):  # left by a killed process
                left.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        if error.filename in {None, draft, str(draft)}:  # the caller does not know the draft's name
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        draft.unlink(missing_ok=True)


def read_plain(path: Path, folder: Path, most: int) -> bytes:
    """Return the content of an untrusted file in ``folder``.

    Raises OSError for a link that leaves the folder, for anything except a file, and for more than ``most`` bytes.
    """
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise OSError(errno.EXDEV, "it is a link out of the folder", str(path))
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # a pipe would block
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return content


def file_sha256(path: Path) -> str:
    """Return the SHA-256 (hex) of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush_file_system(folder: Path) -> None:
    """Flush the folder's file system to the disk (syncfs(2)), once for thousands of files. Raises OSError.

    If a rename follows, no power failure leaves empty files.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _libc.syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(handle)
