# SPDX-License-Identifier: Apache-2.0
"""Processes that end with the one that started them, however that ends. Standard library only: it travels."""

from __future__ import annotations

import ctypes
import signal

PR_SET_PDEATHSIG = 1  # linux/prctl.h

_libc = ctypes.CDLL(None)


def end_with_parent(by: int = signal.SIGKILL) -> None:
    """In the child: have the kernel send this signal when the thread that started it ends (prctl(2)).

    To be given to ``subprocess.Popen`` as ``preexec_fn``.
    """
    _libc.prctl(PR_SET_PDEATHSIG, by)
