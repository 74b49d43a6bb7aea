# SPDX-License-Identifier: Apache-2.0
"""The event stream on a console: live lines on a terminal, otherwise at most one progress line per minute.

An event sink and nothing else; leaving the ``with`` block removes the live lines.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Self

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from longfat.system.events import Event, Kind, Level

PERIOD_S = 60.0
_COLOURS = {Level.INFO: "default", Level.WARNING: "yellow", Level.ERROR: "red"}


class _Live(Progress):
    """A bar, and below it the last run and the number of failed runs."""

    last = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the lines."""
        yield from super().get_renderables()
        if self.last:
            yield Text(self.last, style="dim", no_wrap=True, overflow="ellipsis")


class Display:
    """Prints events to ``console`` as they arrive; if it is ``quiet``, only warnings and errors."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self.console = console
        self.quiet = quiet
        self.started = self.printed = 0.0
        self.failed = 0
        self.progress = _Live(
            TextColumn("runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self.bar = self.progress.add_task("runs", visible=False, left="")

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if event.kind is Kind.RUNS_STARTED:
            self.started = self.printed = time.monotonic()
            self.progress.update(self.bar, total=int(event.facts["total"]), visible=True)
        if event.kind in (Kind.RUNS_ENDED, Kind.RUNS_STOPPED):
            self.progress.last = ""
            self.progress.update(self.bar, visible=False)
            self.progress.refresh()
        if event.kind not in (Kind.RUN_FINISHED, Kind.RUN_FAILED):
            self.print(event.message, event.level)
            return
        done, total = int(event.facts["done"]), int(event.facts["total"])
        left = time_left((time.monotonic() - self.started) / done * (total - done))
        self.progress.update(self.bar, completed=done, left=left)
        self.failed += event.kind is Kind.RUN_FAILED
        failed = f", {self.failed} failed" if self.failed else ""
        self.progress.last = f"  last: {event.facts['folder']} ({float(event.facts['wall_seconds']):.1f} s){failed}"
        if event.kind is Kind.RUN_FAILED:
            self.print(event.message, event.level)
        elif not self.console.is_terminal and time.monotonic() - self.printed >= PERIOD_S:
            self.printed = time.monotonic()
            self.print(f"{done} of {total} runs{failed}, {left}", event.level)

    def print(self, message: str, level: Level) -> None:
        """Print a line above the live lines."""
        if self.quiet and level is Level.INFO:
            return
        self.progress.console.print(f"[{_COLOURS[level]}]{escape(message)}[/]", highlight=False, soft_wrap=True)


def time_left(seconds: float) -> str:
    """Format the time left, such as ``about 3 min left``."""
    return f"{about(seconds)} left"


def about(seconds: float) -> str:
    """Format a time, such as ``about 3 min``."""
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"
