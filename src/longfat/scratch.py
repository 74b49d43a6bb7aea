# SPDX-License-Identifier: Apache-2.0
"""Folders for a while: gone when their block ends, or at the next one's beginning where a process was killed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longfat.locks import held
from longfat.processes import end_orphans

BEING_MADE_S = 60.0  # a folder that is not held yet may be so young


@contextmanager
def scratch_in(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder in ``parent`` whose name begins with ``prefix``, held until the block ends and removed then.

    Folders of the same prefix that nobody holds any more are removed now. Raises OSError when it cannot be made.
    """
    remove_left(parent, prefix)
    made = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=parent))
    with held(made, folder=True):
        # Only a folder that is held gets the name that the others look for.
        folder = made.rename(made.with_name(made.name.removeprefix(".")))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_left(parent: Path, prefix: str) -> None:
    """Remove the folders of this user that killed processes left in ``parent``, and what still runs in them."""
    for path in [*parent.glob(f"{prefix}*"), *parent.glob(f".{prefix}*")]:
        try:
            facts = path.lstat()
            young = path.name.startswith(".") and time.time() - facts.st_ctime < BEING_MADE_S
            if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not young:
                with held(path, wait=False, folder=True):
                    end_orphans(path)
                    shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue  # held, or gone meanwhile
