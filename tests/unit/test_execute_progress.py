# SPDX-License-Identifier: Apache-2.0
"""The console shows how far the runs are and how long the rest will take."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from longfat.execute.progress import Display, time_left
from longfat.system.events import Event, Kind, Level


def shown(events: list[Event], *, terminal: bool) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None)
    with Display(console) as display:
        for event in events:
            display(event)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def finished(done: int) -> Event:
    facts = {"done": done, "total": 2, "wall_seconds": 1.25}
    return Event(Kind.RUN_FINISHED, f"a.r0{done}", facts=facts)


EVENTS = [Event(Kind.RUNS_STARTED, "2 of 3 runs to execute", facts={"total": 2}), finished(1), finished(2)]


def test_without_a_terminal_each_run_is_a_line_with_the_time_left() -> None:
    lines = shown(EVENTS, terminal=False).splitlines()
    assert lines[0] == "2 of 3 runs to execute"
    assert lines[1].startswith("[1/2] a.r01 (1.2 s), about ")
    assert lines[2].startswith("[2/2] a.r02 (1.2 s), about 0 s left")


def test_on_a_terminal_a_bar_counts_the_runs_and_only_failures_are_lines() -> None:
    facts = {"done": 2, "total": 2, "wall_seconds": 1.0}
    failure = Event(Kind.RUN_FAILED, "a.r02 failed: the guest stopped [kernel panic]", Level.ERROR, facts)
    text = shown([*EVENTS[:2], failure], terminal=True)
    assert "2/2" in text
    assert "[1/2]" not in text
    assert "[2/2] a.r02 failed: the guest stopped [kernel panic]" in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.4, "about 4 s left"), (89, "about 89 s left"), (600, "about 10 min left")]
)
def test_the_time_left_is_as_coarse_as_an_estimate_deserves(seconds: float, text: str) -> None:
    assert time_left(seconds) == text
