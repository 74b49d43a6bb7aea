# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of nodes, made and entered by the laboratory's own process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

CLONE_NEWNET = 0x40000000  # linux/sched.h

_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace. It lives until it is closed here and no process or socket is in it any more."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def new(cls) -> Namespace:
        """A namespace with nothing in it but an interface lo that is down. Raises OSError."""
        home = _home()
        _checked(_libc.unshare(CLONE_NEWNET))
        try:
            return cls(_open("self"))
        finally:
            _checked(_libc.setns(home, CLONE_NEWNET))

    @classmethod
    def of(cls, pid: int) -> Namespace:
        """The namespace of the process ``pid``. Raises OSError."""
        _home()
        return cls(_open(pid))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Be in the namespace: sockets opened and programs started meanwhile stay in it. Raises OSError."""
        _checked(_libc.setns(self.descriptor, CLONE_NEWNET))
        try:
            yield
        finally:
            _checked(_libc.setns(_home(), CLONE_NEWNET))

    def close(self) -> None:
        """Hold the namespace no longer."""
        os.close(self.descriptor)


@cache
def _home() -> int:
    """The namespace that this process is in when it first asks."""
    return _open("self")


def _open(process: int | str) -> int:
    return os.open(f"/proc/{process}/ns/net", os.O_RDONLY)


def _checked(status: int) -> None:
    if status:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
