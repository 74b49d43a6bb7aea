# SPDX-License-Identifier: Apache-2.0
"""Who executes a run at present, among tasks that share a results folder, perhaps on different machines.

Owns ``leases/`` in a results folder (docs/formats.md). A lease spares work and protects nothing: where two tasks do
hold a run, because one was suspended for minutes, the record that is committed first stays. The lease of a run is a
folder with one empty file, which is named after its owner; both begin by a rename, which a file server does at once
for all (rename(2)). Locks (flock(2)) are not needed, and no two machines' clocks are compared: an owner shows that it
lives by a number that grows, and is dead when the number has stood still for a while of the observer's own time.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from longfat.errors import RigError
from longfat.files import write_whole
from longfat.processes import is_running

LEASES = "leases"
FORMAT = 1
BEAT_S = 10.0
STALE_S = 120.0  # a client of a file server may show a folder as it was 60 s ago (nfs(5), acdirmax)
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY)


class Lease(Enum):
    """How a lease was got: there was none, or its owner was dead and may have left something."""

    NEW = "new"
    TAKEN_OVER = "taken over"


class Leases:
    """The leases of one process, which lives as long as the ``with`` block lasts. ``task`` is its name for people."""

    def __init__(self, results: Path, task: str) -> None:
        self.folder = results / LEASES
        self.held: set[str] = set()
        self._owner = f"{os.uname().nodename}-{os.getpid()}-{os.urandom(4).hex()}"
        self._task = task
        self._watch = Watch(self.folder)
        self._number = 0
        self._ended = threading.Event()
        self._beats = threading.Thread(target=self._go_on, name="leases", daemon=True)

    def __enter__(self) -> Self:
        while self._number == 0 or not _beat_of(self.folder, self._owner).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # the last of the others has just removed the folder
                self._beat()
        self._beats.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._beats.join()
        for name in tuple(self.held):
            self.give_back(name)
        self._watch.forget_dead()
        _beat_of(self.folder, self._owner).unlink(missing_ok=True)
        with suppress(OSError):  # others are at work still
            self.folder.rmdir()

    def take(self, name: str) -> Lease | None:
        """The lease of a run, by the name of its folder, or None while a living process has it."""
        place = self.folder / name
        try:
            owners = sorted(path.name for path in place.iterdir())
        except FileNotFoundError:
            owners = []
        if not owners:
            return self._take_new(name)
        if self._watch.is_dead(owners[0]):
            try:
                # The name of the file is its owner's alone: of several who take over, one finds it.
                (place / owners[0]).rename(place / self._owner)
            except FileNotFoundError:
                return None
            self.held.add(name)
            return Lease.TAKEN_OVER
        return None

    def give_back(self, name: str) -> None:
        """End the lease of a run."""
        self.held.discard(name)
        (self.folder / name / self._owner).unlink(missing_ok=True)
        with suppress(OSError):  # it was taken over, or another one has it already
            (self.folder / name).rmdir()

    def _take_new(self, name: str) -> Lease | None:
        draft = self.folder / f".{self._owner}"
        draft.mkdir(exist_ok=True)
        (draft / self._owner).touch()
        try:
            draft.rename(self.folder / name)  # replaces an empty folder only, and one with an owner is not
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            shutil.rmtree(draft, ignore_errors=True)
            return None
        self.held.add(name)
        return Lease.NEW

    def _go_on(self) -> None:
        while not self._ended.wait(BEAT_S):
            with suppress(OSError):  # a full disk stops the study at its next record
                self._beat()

    def _beat(self) -> None:
        self._number += 1
        facts = {
            "format": FORMAT,
            "task": self._task,
            "machine": _machine(),
            "process": os.getpid(),
            "beat": self._number,
            "utc": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_whole(_beat_of(self.folder, self._owner), json.dumps(facts, sort_keys=True) + "\n")


@dataclass(frozen=True)
class _Seen:
    beat: object
    at_s: float


class Watch:
    """Tells living owners of leases from dead ones by looking again and again."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._dead: set[str] = set()

    def is_dead(self, owner: str) -> bool:
        """Whether the process has ended on this machine, or has shown no life for ``STALE_S`` since the first look."""
        facts = _facts_of(self.folder, owner)
        beat, now = facts.get("beat"), self._clock()
        seen = self._seen.get(owner)
        if seen is None or seen.beat != beat:
            seen = self._seen[owner] = _Seen(beat, now)
        ended = facts.get("machine") == _machine() and not is_running(int(facts["process"]))
        if ended or now - seen.at_s >= STALE_S:
            self._dead.add(owner)
            return True
        return False

    def forget_dead(self) -> None:
        """Remove the beats of dead owners that have no lease any more."""
        owners = {path.name for path in self.folder.glob("*/*")}
        for owner in self._dead - owners:
            _beat_of(self.folder, owner).unlink(missing_ok=True)


def require_ended(results: Path, sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait until it is certain that all owners of leases are dead, and remove ``leases/``; at once where none is left.

    Raises RigError, with its name, as soon as one shows life.
    """
    folder = results / LEASES
    if not folder.is_dir():
        return
    watch = Watch(folder)
    first = {path.stem: _facts_of(folder, path.stem) for path in sorted(folder.glob("*.json"))}
    for owner, facts in first.items():
        while not watch.is_dead(owner):
            sleep(1.0)
            now = _facts_of(folder, owner)
            if now and now.get("beat") != facts.get("beat"):
                raise RigError(
                    f"the results folder is in use by {now.get('task')}, {owner}",
                    where=str(results),
                    hint="wait until it ends, or name another folder with --results",
                )
            if not now:
                break  # it has ended meanwhile
    shutil.rmtree(folder, ignore_errors=True)


def _beat_of(folder: Path, owner: str) -> Path:
    return folder / f"{owner}.json"


def _facts_of(folder: Path, owner: str) -> dict[str, Any]:
    """What an owner's beat says; nothing where it is missing or cannot be read."""
    try:
        facts = json.loads(_beat_of(folder, owner).read_text(encoding="utf-8"))
        return {**facts, "process": int(facts["process"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _machine() -> str:
    """Names this start of this machine and this namespace of processes: equal names, comparable process numbers."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
