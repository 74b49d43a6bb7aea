# SPDX-License-Identifier: Apache-2.0
"""Tests in several processes take turns: most of them run beside each other, some alone.

Alone is what runs in real time, and what owns the machine's network, daemons or processes. Must not assert anything.
"""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
from pathlib import Path

import pytest

ALONE = frozenset({"alone", "docker", "infra", "qemu", "slurm"})  # marks
WORKERS = 4  # at most: each may boot a guest, and needs the memory for it


def is_alone(item: pytest.Item | None) -> bool:
    """Whether this is a test beside which no other may run."""
    return item is not None and any(mark.name in ALONE for mark in item.iter_markers())


def workers(arguments: list[str]) -> int:
    """How many processes share the tests that pytest's arguments name: none beside its own for single files."""
    files = all(Path(argument.partition("::")[0]).is_file() for argument in arguments)
    return 0 if files else min(len(os.sched_getaffinity(0)), WORKERS)


class Turns:
    """What a process holds while it runs a test: a lock that many share, or that it has for itself.

    Who waits at the gate to be alone lets nobody pass, and so waits no longer than for the tests that already run.
    ``gate`` and ``room`` are files that exist; nothing is written to them.
    """

    def __init__(self, gate: Path, room: Path) -> None:
        self._gate, self._room = os.open(gate, os.O_RDONLY), os.open(room, os.O_RDONLY)
        self._alone = False

    def begin(self, item: pytest.Item) -> None:
        """Wait for the turn of ``item``. Between tests that are alone this process has kept it."""
        if self._alone:
            return
        self._alone = is_alone(item)
        flock(self._gate, LOCK_EX)
        flock(self._room, LOCK_EX if self._alone else LOCK_SH)
        flock(self._gate, LOCK_UN)

    def end(self, following: pytest.Item | None) -> None:
        """Let others have their turn, unless what the tests of a module share goes on for the next one, alone too."""
        if self._alone and is_alone(following):
            return
        self._alone = False
        flock(self._room, LOCK_UN)
