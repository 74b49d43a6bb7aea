# SPDX-License-Identifier: Apache-2.0
"""Files and folders that one process at a time holds, until it ends at the latest (flock(2)). Standard library only."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, *, wait: bool = True, folder: bool = False, shared: bool = False) -> Iterator[int]:
    """Hold the file ``path``, made if need be, or the ``folder`` of that name, until the block ends.

    Gives its descriptor. Waits until nobody else holds it; without ``wait`` raises BlockingIOError in that case.
    Several may hold it who all hold it ``shared``. Raises OSError.
    """
    if not folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY if folder else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        yield descriptor
    finally:
        os.close(descriptor)
