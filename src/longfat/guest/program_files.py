# SPDX-License-Identifier: Apache-2.0
"""Files that a study's own program has written, copied to the raw files. Nothing in the program's folder is trusted."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for its writer
_REASONS = {errno.ENOENT: "it is not there", errno.ELOOP: "it is a link"}


def copy_file(source: Path, target: Path, most_bytes: int) -> str | None:
    """Copy a plain file of at most ``most_bytes``; return the reason where it is not copied."""
    try:
        descriptor = os.open(source, _OPEN)
    except OSError as error:
        return _REASONS.get(error.errno or 0, f"it cannot be opened: {error.strerror}")
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return "it is no plain file"
        if facts.st_size > most_bytes:
            return f"it has {facts.st_size} bytes, allowed {most_bytes}"
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(descriptor, "rb", closefd=False) as file, target.open("wb") as copy:
            shutil.copyfileobj(file, copy)
    finally:
        os.close(descriptor)
    return None
