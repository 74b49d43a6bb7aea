# SPDX-License-Identifier: Apache-2.0
"""Temporary folders, removed at the end of their block or, after a kill, when the next one is created."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longfat.system.locks import hold
from longfat.system.processes import end_orphans

BEING_MADE_S = 60.0  # a newer folder may not be locked yet


@contextmanager
def scratch_in(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a new locked folder in ``parent`` whose name begins with ``prefix``; it is removed after the block.

    Folders with the same prefix whose process has ended are removed first. Raises OSError if it cannot be created.
    """
    remove_left(parent, prefix)
    made = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=parent))
    with hold(made, folder=True):
        # Only a locked folder gets the name that other processes look for.
        folder = made.rename(made.with_name(made.name.removeprefix(".")))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_left(parent: Path, prefix: str) -> None:
    """Remove this user's folders that killed processes left in ``parent``, and kill the processes in them."""
    for path in [*parent.glob(f"{prefix}*"), *parent.glob(f".{prefix}*")]:
        try:
            facts = path.lstat()
            young = path.name.startswith(".") and time.time() - facts.st_ctime < BEING_MADE_S
            if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not young:
                with hold(path, wait=False, folder=True):
                    end_orphans(path)
                    shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue  # locked, or removed meanwhile
