# SPDX-License-Identifier: Apache-2.0
"""Temporary folders, removed when their block ends or, if a process was killed, when the next one is made."""

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

BEING_MADE_S = 60.0  # a younger folder may not be locked yet


@contextmanager
def scratch_in(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a new folder in ``parent`` whose name begins with ``prefix``, locked and removed when the block ends.

    Folders of the same prefix that no process holds any more are removed now. Raises OSError if it cannot be made.
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
    """Remove the folders of this user that killed processes left in ``parent``, and end the processes in them."""
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
