# SPDX-License-Identifier: Apache-2.0
"""Shows the event stream on a console: a bar with the time left on a terminal, otherwise one line for each run.

An event sink and nothing else; leaving the ``with`` block removes the bar.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from longfat.system.events import Event, Kind, Level

_COLOURS = {Level.INFO: "default", Level.WARNING: "yellow", Level.ERROR: "red"}


class Display:
    """Prints events to ``console`` as they arrive."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.started = 0.0
        self.progress = Progress(
            TextColumn("runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.bar = self.progress.add_task("runs", visible=False, left="")

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if event.kind is Kind.RUNS_STARTED:
            self.started = time.monotonic()
            self.progress.update(self.bar, total=int(event.facts["total"]), visible=True)
        if event.kind in (Kind.RUNS_ENDED, Kind.RUNS_STOPPED):
            self.progress.update(self.bar, visible=False)
            self.progress.refresh()
        if event.kind not in (Kind.RUN_FINISHED, Kind.RUN_FAILED):
            self.print(event.message, event.level)
            return
        done, total = int(event.facts["done"]), int(event.facts["total"])
        left = time_left((time.monotonic() - self.started) / done * (total - done))
        self.progress.update(self.bar, completed=done, left=left)
        if not self.console.is_terminal or event.kind is Kind.RUN_FAILED:
            seconds = float(event.facts["wall_seconds"])
            self.print(f"[{done}/{total}] {event.message} ({seconds:.1f} s), {left}", event.level)

    def print(self, message: str, level: Level) -> None:
        """Print a line above the bar."""
        self.progress.console.print(f"[{_COLOURS[level]}]{escape(message)}[/]", highlight=False, soft_wrap=True)


def time_left(seconds: float) -> str:
    """Format the time left, such as ``about 3 min left``."""
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left"
