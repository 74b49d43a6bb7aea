# SPDX-License-Identifier: Apache-2.0
"""Files that are whole whenever somebody reads them, and on the disk. Standard library only."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


def write_whole(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Write a file, text as UTF-8, such that a reader sees the former content or all of the new one, whatever fails.

    ``mode`` is limited by the umask. Raises OSError, which names ``path`` or its folder.
    """
    with _draft(path, content, mode) as draft:
        draft.replace(path)


def write_once(path: Path, content: str | bytes, mode: int = 0o666) -> bool:
    """Write a file unless there is one already; whether it was written. Of several writers one succeeds, on NFS too.

    The link is made by the file's server at once (open(2), O_EXCL). Raises OSError.
    """
    with _draft(path, content, mode) as draft:
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            return False
        return True


@contextmanager
def _draft(path: Path, content: str | bytes, mode: int) -> Iterator[Path]:
    """A file next to ``path`` with the content, on the disk; no other process on any machine uses its name."""
    start = f".{path.name}-"
    draft = path.with_name(f"{start}{os.getpid()}@{os.uname().nodename}")
    try:
        for left in (Path(entry) for entry in os.scandir(path.parent) if entry.name.startswith(start)):
            if left == draft or _ended(left.name.removeprefix(start)):  # its process was killed
                left.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    except OSError as error:
        if error.filename in {None, draft, str(draft)}:  # nobody but this function knows the draft's name
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        draft.unlink(missing_ok=True)


def _ended(writer: str) -> bool:
    """Whether a process has ended that wrote a draft on this machine; nothing is known of the others."""
    process, _, machine = writer.partition("@")
    return machine in ("", os.uname().nodename) and process.isdigit() and not Path("/proc", process).exists()


def flush_file_system(folder: Path) -> None:
    """Have all that was written to the folder's file system reach the disk (syncfs(2)). Raises OSError.

    One call for a tree of thousands of files; a rename that follows never shows files that a power failure emptied.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _libc.syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(handle)
