# SPDX-License-Identifier: Apache-2.0
"""Processes that others started: whether one still runs, and the end of those that are left. Standard library only."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def is_running(process: int) -> bool:
    """Whether the process can still write; one that has ended may wait for its parent for ever."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def end_orphans(folder: Path) -> None:
    """End this user's processes that work in ``folder`` and whose session has lost the process that began it.

    A guest's processes have a session of their own. One that its kernel had begun a moment before it was killed itself
    stays stopped for ever, and keeps the guest's memory (start_userspace in arch/um/os-Linux/skas/process.c).
    """
    place = folder.resolve()
    for number in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if Path(os.readlink(f"/proc/{number}/cwd")) != place:
                continue
            process = os.pidfd_open(number)
            try:  # now the number cannot become another's unnoticed
                if Path(os.readlink(f"/proc/{number}/cwd")) == place and not is_running(os.getsid(number)):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
            finally:
                os.close(process)
        except OSError:
            continue  # it ended meanwhile, or is another user's
