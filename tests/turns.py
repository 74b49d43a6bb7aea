# SPDX-License-Identifier: Apache-2.0
"""Tests in several processes: most run at the same time, some in one process, some alone.

Tests in real time, or with the machine's network, run alone. Tests with daemons (Docker, Slurm) or virtual machines run
in one process, one after the other, while others run. Must not assert anything.
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
    """Return whether no other test may run at the same time."""
    return item is not None and any(mark.name == ALONE for mark in item.iter_markers())


def group(nodeid: str) -> str:
    """Return the name of the tests that one process runs: the test's file, or all that are apart."""
    file = nodeid.partition("::")[0]
    return "apart" if Path(file).parent.name in APART else file


class ByGroup(LoadFileScheduling):
    """Send the tests of a group to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Order tests that are apart first, in which those that are alone come last, then slow tests, then the rest.

    While one runs alone the other processes wait: at that time they have least left to do.
    """

    def place(item: pytest.Item) -> tuple[bool, bool, bool]:
        is_slow = any(mark.name == "slow" for mark in item.iter_markers())
        return item.path.parent.name not in APART, is_alone(item), not is_slow

    return sorted(items, key=place)


def workers(arguments: list[str]) -> int:
    """Return the number of processes for the tests that pytest's arguments name: none but its own for single files."""
    files = all(Path(argument.partition("::")[0]).is_file() for argument in arguments)
    return 0 if files else min(len(os.sched_getaffinity(0)), WORKERS)


class Turns:
    """The lock of a process while it runs a test, which many processes share or one has for itself.

    A process that waits at the gate to be alone lets no other pass, so it waits only for the tests that already run.
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
