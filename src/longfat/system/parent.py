# SPDX-License-Identifier: Apache-2.0
"""Processes that end with their parent, in whatever way it ends. Standard library only: guests and hosts get a copy."""

from __future__ import annotations

import ctypes
import signal

PR_SET_PDEATHSIG = 1  # linux/prctl.h

_libc = ctypes.CDLL(None)


def end_with_parent(by: int = signal.SIGKILL) -> None:
    """Make the kernel send this process a signal when the thread that started it ends (prctl(2)).

    Called in the child, as ``preexec_fn`` of ``subprocess.Popen``.
    """
    _libc.prctl(PR_SET_PDEATHSIG, by)
