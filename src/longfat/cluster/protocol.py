# SPDX-License-Identifier: Apache-2.0
"""What the rest of the package knows of a cluster: it takes equal tasks, says what becomes of them, ends them.

Must not know runs. A task finds its number in its environment (``execute.shards``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


def checkout() -> str:
    """Return the path of the checkout, where a task starts: ``$LONGFAT_ROOT``, else the current folder."""
    return os.environ.get("LONGFAT_ROOT") or os.getcwd()


@dataclass(frozen=True)
class Work:
    """Equal tasks for a cluster, which knows them by ``name``.

    Each executes ``longfat task RESULTS`` with the ``options``, and has ``cpus`` CPUs, ``memory_bytes`` for each of
    these, and ``limit_s`` seconds of wall time. ``exclude`` names nodes that get none. ``folder`` takes the tasks'
    logs, and ``ended/TASK`` when a task ends by itself: a line with its node, its exit status and its seconds.
    """

    name: str
    results: Path
    options: tuple[str, ...]
    folder: Path
    tasks: int
    cpus: int
    memory_bytes: int
    limit_s: float
    exclude: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Standing:
    """How many tasks wait, for which ``reason`` in the cluster's words, and how many run."""

    waiting: int
    running: int
    reason: str = ""

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.waiting == self.running == 0


class Cluster(Protocol):
    """Where tasks are executed."""

    @property
    def name(self) -> str:
        """Its name for people."""

    @property
    def tasks(self) -> int | None:
        """The number of tasks that suits it; None: as many as the runs need."""

    def text(self, work: Work) -> str:
        """What ``submit`` would hand over, for people."""

    def submit(self, work: Work) -> None:
        """Hand the tasks over. Raises RigError with the cluster's own words when it refuses them."""

    def poll(self, name: str) -> Standing:
        """What there is of the tasks of this name, whoever has submitted them. Raises RigError without an answer."""

    def cancel(self, name: str) -> None:
        """End the tasks of this name. Raises RigError without an answer."""

    def nodes(self) -> frozenset[str]:
        """The names of its nodes, as far as this user may know them; none where it does not tell."""

    def parts(self, name: str) -> Sequence[Path]:
        """Results folders with records that the tasks have not put into the shared one, brought here."""


@dataclass(frozen=True)
class End:
    """How a task ended by itself."""

    task: str
    node: str
    status: int
    seconds: float


def ends_in(folder: Path) -> list[End]:
    """The tasks of which ``folder``, that of a Work, says how they ended."""
    found = []
    for path in sorted((folder / "ended").glob("[!.]*")):
        match path.read_text(encoding="utf-8").split():
            case [node, status, seconds]:
                found.append(End(path.name, node, int(status), float(seconds)))
    return found
