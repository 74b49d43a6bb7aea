# SPDX-License-Identifier: Apache-2.0
"""Files that are complete whenever they are read, and flushed to the disk. Standard library only."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


def write_whole(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Write a file, text as UTF-8, so that a reader sees either the former content or all of the new content.

    ``mode`` is limited by the umask. Raises OSError, which names ``path`` or its folder.
    """
    with _draft(path, content, mode) as draft:
        draft.replace(path)


def write_once(path: Path, content: str | bytes, mode: int = 0o666) -> bool:
    """Write a file unless it exists; return whether it was written. Of several writers one succeeds, also on NFS.

    The file server makes the link atomically (open(2), O_EXCL). Raises OSError.
    """
    with _draft(path, content, mode) as draft:
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            return False
        return True


@contextmanager
def _draft(path: Path, content: str | bytes, mode: int) -> Iterator[Path]:
    """Yield a file next to ``path`` with the content, flushed; no other process on any machine uses its name."""
    start = f".{path.name}-"
    draft = path.with_name(f"{start}{os.getpid()}@{os.uname().nodename}")
    try:
        for left in (Path(entry) for entry in os.scandir(path.parent) if entry.name.startswith(start)):
            if left == draft or _ended(left.name.removeprefix(start)):  # left by a killed process
                left.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    except OSError as error:
        if error.filename in {None, draft, str(draft)}:  # the draft's name means nothing to callers
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        draft.unlink(missing_ok=True)


def _ended(writer: str) -> bool:
    """Return whether the writer of a draft has ended; unknown processes of other machines count as alive."""
    process, _, machine = writer.partition("@")
    return machine in ("", os.uname().nodename) and process.isdigit() and not Path("/proc", process).exists()


def flush_file_system(folder: Path) -> None:
    """Flush the folder's file system to the disk (syncfs(2)), once for a tree of thousands of files. Raises OSError.

    After a rename that follows, no power failure leaves empty files.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _libc.syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(handle)
