# SPDX-License-Identifier: Apache-2.0
"""The results folder of a study: its layout, and the right of one process at a time to write to it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from longfat.errors import RigError
from longfat.locks import held

# Below this many free bytes a crashed run is put down to the full disk, not to the laboratory.
FULL_DISK_BYTES = 16 << 20
HOLDER = ".in-use"  # has the number of the process that holds the folder
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(frozen=True)
class Results:
    """A results folder that this process holds; ``open_results`` gives it."""

    path: Path

    @property
    def raw(self) -> Path:
        """Where the run folders are."""
        return self.path / "raw"

    @property
    def lock(self) -> Path:
        """The resolved plan."""
        return self.path / "lock.json"

    @property
    def events(self) -> Path:
        """The event stream, one JSON object a line."""
        return self.path / "events.jsonl"

    def free_bytes(self) -> int:
        """Free bytes of the file system for this user."""
        return shutil.disk_usage(self.path).free


@contextmanager
def open_results(path: Path) -> Iterator[Results]:
    """Create the folder if need be and hold it until the block ends, whatever happens to the process.

    Raises RigError when it cannot be written to or another process holds it.
    """
    with ExitStack() as own:
        try:
            (path / "raw").mkdir(parents=True, exist_ok=True)
            holder = own.enter_context(held(path / HOLDER, wait=False))
            os.truncate(holder, 0)
            os.write(holder, f"{os.getpid()}\n".encode())
        except BlockingIOError as error:
            number = (path / HOLDER).read_text(encoding="ascii").strip() or "unknown"
            raise RigError(
                f"the results folder is in use by process {number}",
                where=str(path),
                hint="wait until it ends, or name another folder with --results",
            ) from error
        except OSError as error:
            raise _unwritable(path, error) from error
        yield Results(path)


def no_room(error: OSError) -> bool:
    """Whether the file system is full, which makes it pointless to continue."""
    return error.errno in _NO_ROOM


def full_disk(path: Path, error: OSError) -> RigError:
    """The error for a study that stops because its results, or files of the guests, can no longer be written."""
    file = Path(os.fsdecode(error.filename)) if error.filename else path
    what = "the results" if file.is_relative_to(path) else "files of a run"
    return RigError(
        f"{what} can no longer be written: {error.strerror}",
        where=str(path if what == "the results" else file),
        hint="free some space and start again; finished runs are kept and not repeated",
    )


def _unwritable(path: Path, error: OSError) -> RigError:
    return RigError(
        f"the results folder cannot be written to: {error.strerror}",
        where=os.fsdecode(error.filename or path),
        hint="remove what stands there, or give another folder with --results",
    )
