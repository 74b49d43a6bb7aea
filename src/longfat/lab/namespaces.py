# SPDX-License-Identifier: Apache-2.0
"""Act inside a node's network namespace from the laboratory's own process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000  # linux/sched.h

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside(pid: int) -> Iterator[None]:
    """Enter the network namespace of the process ``pid``; sockets opened here stay in it.

    Raises OSError when the kernel refuses.
    """
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    target = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _setns(target)
        try:
            yield
        finally:
            _setns(home)
    finally:
        os.close(target)
        os.close(home)


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
