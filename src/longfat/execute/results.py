# SPDX-License-Identifier: Apache-2.0
"""The results folder of a study: its layout, and the lock that one process at a time holds on it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from longfat.system.errors import RigError
from longfat.system.locks import hold
from longfat.system.store import holder

# With fewer free bytes, a crash is attributed to the full disk.
FULL_DISK_BYTES = 16 << 20
HOLDER = ".in-use"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(frozen=True)
class Results:
    """A results folder that this process has locked; ``open_results`` returns it."""

    path: Path

    @property
    def raw(self) -> Path:
        """Folder of the run folders."""
        return self.path / "raw"

    @property
    def lock(self) -> Path:
        """File of the resolved plan."""
        return self.path / "lock.json"

    @property
    def events(self) -> Path:
        """File of the event stream, one JSON object a line."""
        return self.path / "events.jsonl"

    def free_bytes(self) -> int:
        """Return the free bytes of the file system for this user."""
        return shutil.disk_usage(self.path).free


@contextmanager
def open_results(path: Path) -> Iterator[Results]:
    """Create the folder if it is missing, and lock it until the block or the process ends.

    Raises RigError if it cannot be written to or another process holds it.
    """
    with ExitStack() as own:
        try:
            (path / "raw").mkdir(parents=True, exist_ok=True)
            own.enter_context(hold(path / HOLDER, wait=False))
        except BlockingIOError as error:
            raise RigError(
                f"the results folder is in use by {holder(path / HOLDER)}",
                where=str(path),
                hint="wait until it ends, or name another folder with --results",
            ) from error
        except OSError as error:
            taken = "remove the file of that name, or " if error.errno in (errno.EEXIST, errno.ENOTDIR) else ""
            raise RigError(
                f"the results folder cannot be written to: {error.strerror}",
                where=os.fsdecode(error.filename or path / HOLDER),
                hint=f"{taken}name another folder with --results",
            ) from error
        yield Results(path)


def no_room(error: OSError) -> bool:
    """Return whether the file system is full, so that no further run can be recorded."""
    return error.errno in _NO_ROOM


def full_disk(path: Path, error: OSError) -> RigError:
    """Return the error of a study that stops because its results, or files of the guests, cannot be written."""
    file = Path(os.fsdecode(error.filename)) if error.filename else path
    what = "the results" if file.is_relative_to(path) else "files of a run"
    return RigError(
        f"{what} can no longer be written: {error.strerror}",
        where=str(path if what == "the results" else file),
        hint="free some space and start again; finished runs are not repeated",
    )
