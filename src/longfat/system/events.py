# SPDX-License-Identifier: Apache-2.0
"""The stream of events for the console and ``results/STUDY/events.jsonl``.

Owns the form of an event and its destinations. Must not decide anything: no code reads events back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """Kinds of events, a closed set."""

    STAGE_STARTED = "stage_started"
    JOBS_LIMITED = "jobs_limited"
    KERNEL_DOUBTED = "kernel_doubted"
    RUNS_STARTED = "runs_started"
    RUN_FINISHED = "run_finished"
    RUN_RETRIED = "run_retried"
    RUN_FAILED = "run_failed"
    WORKERS_AWAITED = "workers_awaited"
    WORKER_LOST = "worker_lost"
    RUNS_ENDED = "runs_ended"
    RUNS_STOPPED = "runs_stopped"
    RECORD_SET_ASIDE = "record_set_aside"
    LEFTOVER_REMOVED = "leftover_removed"


class Level(StrEnum):
    """Importance of an event; look at warnings before you trust the results."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Event:
    """One event. ``facts`` has its numbers and names, with unit suffixes."""

    kind: Kind
    message: str
    level: Level = Level.INFO
    facts: Mapping[str, int | float | str] = field(default_factory=dict)


EventSink = Callable[[Event], None]


def discard(event: Event) -> None:
    """Ignore an event."""


def log_to(path: Path) -> EventSink:
    """Return a sink that appends each event to ``path`` as one line of JSON with the time in UTC.

    The sink raises OSError if the line cannot be written.
    """

    def append(event: Event) -> None:
        line = {
            "utc": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "kind": event.kind,
            "level": event.level,
            "message": event.message,
            **event.facts,
        }
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    return append
