# SPDX-License-Identifier: Apache-2.0
"""Confinement of a program and its children to changing files in some folders (landlock(7)), without privileges.

The C library has no functions for these system calls. A kernel without them confines nothing.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on all architectures (asm-generic/unistd.h)
_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
_PATH_BENEATH = 1  # LANDLOCK_RULE_PATH_BENEATH
_PR_SET_NO_NEW_PRIVS = 38  # linux/prctl.h
# linux/landlock.h, LANDLOCK_ACCESS_FS_*: write a file, remove a file or folder, make any of seven kinds.
_CHANGES = 1 << 1 | sum(1 << bit for bit in range(4, 13))
_LATER = ((2, 1 << 13), (3, 1 << 14))  # by version: move between folders, truncate a file

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def rules(folders: Iterable[Path]) -> Iterator[int | None]:
    """Open a ruleset that allows changes below these folders only; None if the kernel has no Landlock.

    Missing folders are ignored.
    """
    descriptor = _create(folders)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def landlock_version() -> int:
    """Return the version of the kernel's Landlock; less than 1 without Landlock."""
    return int(_libc.syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION))


def _create(folders: Iterable[Path]) -> int | None:
    version = landlock_version()
    if version < 1:
        return None
    access = _CHANGES | sum(bit for since, bit in _LATER if version >= since)
    attributes = struct.pack("=Q", access)
    descriptor: int = _libc.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    if descriptor < 0:
        return None
    for folder in folders:
        if folder.is_dir():
            place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            _libc.syscall(_ADD, descriptor, _PATH_BENEATH, struct.pack("=Qi", access, place), 0)
            os.close(place)
    return descriptor


def restrict(descriptor: int | None) -> None:
    """Apply the rules to this process and its children. Raises OSError."""
    if descriptor is None:
        return
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or _libc.syscall(_RESTRICT, descriptor, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
