# SPDX-License-Identifier: Apache-2.0
"""Locks on files and folders: one process at a time holds one unless it is shared, until its end (flock(2)).

Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def hold(path: Path, *, wait: bool = True, folder: bool = False, shared: bool = False) -> Iterator[int]:
    """Lock the file ``path``, creating it if missing, or the ``folder`` of that name; yield its descriptor.

    Waits until no other process holds it; without ``wait`` raises BlockingIOError in that case. Several processes may
    hold a ``shared`` lock at a time. Raises OSError.
    """
    if not folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY if folder else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not folder:
            _deny_readers(descriptor)
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        yield descriptor
    finally:
        os.close(descriptor)


def _deny_readers(descriptor: int) -> None:
    """Let only those open the file who may also write to it: a reader could hold the lock for ever."""
    facts = os.fstat(descriptor)
    mode = stat.S_IMODE(facts.st_mode)
    kept = mode & (0o200 | (mode & 0o222) << 1 | mode & 0o222)
    if kept != mode and facts.st_uid == os.geteuid():
        os.fchmod(descriptor, kept)
