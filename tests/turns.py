# SPDX-License-Identifier: Apache-2.0
"""Tests in several processes: most of them run beside each other, some in one process, some alone.

Alone is what runs in real time or owns the machine's network. What owns its daemons (Docker, Slurm) or virtual machines
runs in one process, one after the other, beside tests that do not. Must not assert anything.
"""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

ALONE = "alone"  # a mark
APART = frozenset({"contract", "integration", "realtime"})  # folders of what one process runs
WORKERS = 4  # at most: each may boot a guest, and needs the memory for it


def is_alone(item: pytest.Item | None) -> bool:
    """Whether this is a test beside which no other may run."""
    return item is not None and any(mark.name == ALONE for mark in item.iter_markers())


def group(nodeid: str) -> str:
    """Name what one process runs: the test's file, or all that is apart."""
    file = nodeid.partition("::")[0]
    return "apart" if Path(file).parent.name in APART else file


class ByGroup(LoadFileScheduling):
    """What xdist asks."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Order what is apart before the rest, since it takes longest, and in it what is alone last.

    Then the other processes, which wait meanwhile, have least left to do.
    """
    return sorted(items, key=lambda item: (item.path.parent.name not in APART, is_alone(item)))


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
