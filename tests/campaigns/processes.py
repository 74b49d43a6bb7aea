# SPDX-License-Identifier: Apache-2.0
"""A command's processes: all below it, those that it left, and how to wait for them. Must strike no others."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

SLICE_S, LOOK_S = 1.0, 0.02


@dataclass(frozen=True)
class Process:
    """A process by its number and the time of its start, which no other has together."""

    number: int
    started: str
    line: str

    @property
    def lives(self) -> bool:
        """Whether it still runs; one that waits for its parent to look has ended."""
        return _started(self.number) == self.started

    @property
    def waits_for_a_start(self) -> bool:
        """Whether it is stopped and its session's first process has ended: a part of a killed guest, till the next."""
        fields = _fields(self.number)
        return self.lives and bool(fields) and fields[0] in ("T", "t") and _started(int(fields[3])) is None

    def strike(self, by: signal.Signals) -> bool:
        """Send a signal; whether it was still there."""
        try:
            if not self.lives:
                return False
            os.kill(self.number, by)
        except ProcessLookupError:
            return False
        return True


def below(number: int) -> list[Process]:
    """The process and all that are below it, however far down."""
    found: list[Process] = []
    numbers = [number]
    for one in numbers:  # it grows meanwhile
        started = _started(one)
        if started is None:
            continue
        try:
            line = Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            for task in Path(f"/proc/{one}/task").iterdir():
                numbers += map(int, (task / "children").read_text().split())
        except OSError:
            continue  # it ended meanwhile
        found.append(Process(one, started, line))
    return found


def marked(variable: str, value: str) -> list[Process]:
    """All processes with this in their environment, orphans included; not those that replace it, as a guest does."""
    wanted = f"{variable}={value}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found += below(int(folder.name))[:1]
        except OSError:
            continue
    return found


def await_end(ended: Callable[[], bool], tree: Callable[[], Iterable[Process]], seconds: float) -> bool:
    """Wait until ``ended`` says so, for so many seconds; whether it has.

    On a machine that does much else, processes stand in the queue for a CPU. Seconds in which one of ``tree`` does are
    no fault of its own: they count as a tenth, so that the patience is tenfold at most.
    """
    before = _queued(tree())
    while seconds > 0:
        began = time.monotonic()
        while (took := time.monotonic() - began) < min(SLICE_S, seconds):
            if ended():
                return True
            time.sleep(LOOK_S)
        now = _queued(tree())
        queued = sum(time_s - before.get(number, 0.0) for number, time_s in now.items())
        seconds -= max(took - queued, took / 10)
        before = now
    return ended()


def _queued(processes: Iterable[Process]) -> dict[int, float]:
    """The seconds that each has waited for a CPU, all its threads together; 0 where the kernel does not count them."""
    found = {}
    for one in processes:
        found[one.number] = 0.0
        for path in Path(f"/proc/{one.number}/task").glob("*/schedstat"):  # the kernel's sched-stats.rst
            try:
                found[one.number] += int(path.read_text().split()[1]) / 1e9
            except OSError:
                continue  # it ended meanwhile
    return found


def _started(number: int) -> str | None:
    """The process's time of start in ticks since boot; None where it has ended."""
    fields = _fields(number)
    return None if not fields or fields[0] in ("Z", "X") else fields[19]


def _fields(number: int) -> list[str]:
    """What proc(5) has of the process, from its state on: its session is the fourth, its start the twentieth."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
