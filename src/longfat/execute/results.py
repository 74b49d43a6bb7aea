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
from longfat.execute.leases import require_ended
from longfat.locks import held

# Below this many free bytes a crashed run is put down to the full disk, not to the laboratory.
FULL_DISK_BYTES = 16 << 20
HOLDER = ".in-use"  # says who holds the folder
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # some clusters' file systems have none
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(frozen=True)
class Results:
    """A results folder that this process holds; ``open_results`` gives it.

    ``sharer`` is the name of this process among those that share it; they hold runs by leases.
    """

    path: Path
    sharer: str | None = None

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
        """The event stream, one JSON object a line; of a process that shares the folder, a file of its own."""
        return self.path / (f"events.{self.sharer}.jsonl" if self.sharer else "events.jsonl")

    def free_bytes(self) -> int:
        """Free bytes of the file system for this user."""
        return shutil.disk_usage(self.path).free


@contextmanager
def open_results(path: Path, sharer: str | None = None) -> Iterator[Results]:
    """Create the folder if need be and hold it until the block ends, whatever happens to the process.

    Alone, or with others that name themselves as a ``sharer``, which may be on other machines. Raises RigError when it
    cannot be written to or is in use otherwise.
    """
    with ExitStack() as own:
        try:
            (path / "raw").mkdir(parents=True, exist_ok=True)
            _hold(own, path / HOLDER, sharer)
        except BlockingIOError as error:
            holder = (path / HOLDER).read_text(encoding="utf-8").strip() or "an unknown process"
            raise RigError(
                f"the results folder is in use by {holder}",
                where=str(path),
                hint="wait until it ends, or name another folder with --results",
            ) from error
        except OSError as error:
            raise _unwritable(path, error) from error
        if sharer is None:
            require_ended(path)
        yield Results(path, sharer)


def _hold(own: ExitStack, file: Path, sharer: str | None) -> None:
    """Hold the file until ``own`` is closed. Raises OSError."""
    try:
        holder = own.enter_context(held(file, wait=False, shared=sharer is not None))
    except OSError as error:
        if sharer is None or error.errno not in _NO_LOCKS:
            raise
        return  # leases do without locks, and whoever wants the folder alone looks at them
    try:
        os.truncate(holder, 0)
        os.write(holder, (f"process {os.getpid()}" if sharer is None else "shards of a study").encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error


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
