# SPDX-License-Identifier: Apache-2.0
"""Processes that hold a lock, for messages and notices during long waits. Standard library only."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from longfat.system.locks import hold
from longfat.system.text import visible

LONG_S = 5.0  # wait before a notice


def holder(path: Path) -> str:
    """Return the processes that hold the lock on a file or folder, with their commands if proc(5) shows them."""
    found = []
    with suppress(OSError, ValueError):
        facts = path.stat()
        place = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5] == place:
                command = Path(f"/proc/{words[4]}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"process {words[4]} ({visible(command.strip())})")
    return " and ".join(found) or "another process"


@contextmanager
def hold_patiently(path: Path) -> Iterator[int]:
    """Lock the file ``path`` like ``hold``, and name the holder on standard error if that takes long."""

    def announce() -> None:
        sys.stderr.write(f"waiting for {holder(path)}, which holds {visible(str(path))}\n")

    notice = threading.Timer(LONG_S, announce)
    notice.daemon = True
    notice.start()
    try:
        with hold(path) as descriptor:
            notice.cancel()
            yield descriptor
    finally:
        notice.cancel()
