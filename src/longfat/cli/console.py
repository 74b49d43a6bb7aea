# SPDX-License-Identifier: Apache-2.0
"""Output of commands: lines of text, links to files, JSON results, the event stream."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from longfat.execute.progress import Display
from longfat.execute.results import Results
from longfat.system.events import Event, EventSink, Kind, log_to
from longfat.system.text import visible

FORMAT = 1  # version of all results as JSON
WARNING = "yellow"

COLOURS = {
    "reproduced": "green",
    "compatible": "green",
    "not reproduced": "red",
    "undecided": "yellow",
    "not testable": "bright_black",
}
"""The colour of each verdict."""


class Screen(Console):
    """A console that shows control characters of untrusted texts as escape sequences."""

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        """Yield the segments of an object, with visible control characters."""
        for segment in super().render(*arguments, **options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class Output(Screen):
    """The console of a command with a result.

    With ``as_json`` only the result goes to standard output, and the console writes to standard error. With ``silent``
    it shows no progress.
    """

    def __init__(
        self, *, as_json: bool = False, silent: bool = False, file: IO[str] | None = None, width: int | None = None
    ) -> None:
        super().__init__(stderr=as_json, file=file, width=width)
        self.as_json = as_json
        self.silent = silent

    def result(self, **data: Any) -> None:
        """Print the result as JSON, with ``as_json``."""
        if self.as_json:
            print_json({"format": FORMAT, **data})


def print_json(data: Any) -> None:
    """Print data as JSON on standard output."""
    sys.stdout.write(json.dumps(data, indent=2) + "\n")


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print one line without wrapping, markup or highlighting."""
    console.print(text, style=style, soft_wrap=True, markup=False, highlight=False)


def say_place(console: Console, what: str, path: Path) -> None:
    """Print the path of a file or folder, as a link if the terminal supports OSC 8."""
    line = Text(f"{what}: ")
    line.append(str(path), style=f"link {path.resolve().as_uri()}")
    console.print(line, soft_wrap=True, highlight=False)


@contextmanager
def listen(results: Results, console: Console) -> Iterator[EventSink]:
    """Yield the event stream of a command, which goes to the console and to the results folder."""
    log = log_to(results.events)
    with Display(console, isinstance(console, Output) and console.silent) as display:

        def pass_on(event: Event) -> None:
            log(event)
            display(event)

        yield pass_on


def stage(events: EventSink, message: str) -> None:
    """Announce the start of a step."""
    events(Event(Kind.STAGE_STARTED, message))
