# SPDX-License-Identifier: Apache-2.0
"""The event stream of a command, on the console and in its results folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from longfat.events import Event, EventSink, Kind, broadcast, log_to
from longfat.execute.progress import Display
from longfat.execute.results import Results


@contextmanager
def listen(results: Results, console: Console) -> Iterator[EventSink]:
    """The event stream of a command: to the console and to the results folder."""
    with Display(console) as display:
        yield broadcast(log_to(results.events), display)


def stage(events: EventSink, message: str) -> None:
    """Say what begins now."""
    events(Event(Kind.STAGE_STARTED, message))
