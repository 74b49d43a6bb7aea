# SPDX-License-Identifier: Apache-2.0
"""One attempt to execute one run, from the empty partial folder to the commit.

Must not retry, and is independent of other runs; ``study`` decides the consequence of a crash.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from longfat.backends.protocol import Backend
from longfat.execute.record.bundle import Bundle, RunFacts, RunStatus
from longfat.execute.results import no_room
from longfat.spec.gates import Evidence
from longfat.spec.gates.behaviour import cpu_sufficed
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError, SettledError
from longfat.system.text import sentence

STARVED_REPEATS = 3  # most repetitions of a run in real time that lacked CPU
STOPPED = "the study was stopped"


@dataclass(frozen=True)
class Attempt:
    """Attempt ``number`` at a run, from 1; the ``last`` one is recorded whatever its outcome.

    If the backend ``repeats`` runs exactly, a failure that it reports is recorded at once. ``starved`` counts the
    attempts that lacked CPU.
    """

    name: str
    spec: RunSpec
    number: int
    last: bool
    repeats: bool = False
    starved: int = 0


@dataclass(frozen=True)
class Outcome:
    """The end of an attempt; ``reason`` is None if the run is recorded as ok.

    ``settled`` means that it is recorded; ``starved`` means that the machine was too busy, so it does not count.
    """

    reason: str | None
    wall_seconds: float
    settled: bool = True
    starved: bool = False


def attempt_run(backend: Backend, attempt: Attempt, raw: Path, stop: threading.Event | None = None) -> Outcome:
    """Execute a run; record it under ``raw`` if it succeeded or this is the last attempt.

    Records nothing after ``stop`` was set. Raises OSError if the file system is full, RecordError if a record has that
    name.
    """
    started_utc = datetime.now(UTC).isoformat(timespec="seconds")
    start = time.monotonic()
    with Bundle(raw, attempt.name, attempt.spec) as bundle:
        reason, certain = _crash_of(backend, attempt, bundle.folder)
        seconds = round(time.monotonic() - start, 3)
        if stop is not None and stop.is_set():
            return Outcome(STOPPED, seconds, settled=False)
        if reason is None and attempt.starved < STARVED_REPEATS and (starved := _starved(attempt.spec, bundle.folder)):
            return Outcome(starved, seconds, settled=False, starved=True)
        settled = reason is None or attempt.last or certain
        if settled:
            status: RunStatus = "ok" if reason is None else "failed"
            run_id = attempt.spec.run_id
            facts = RunFacts(run_id, status, reason, attempt.number, backend.name, seconds, started_utc, node_name())
            bundle.commit(facts)
    return Outcome(reason, seconds, settled)


def node_name() -> str:
    """Return this machine's name in its cluster, else its host name."""
    return os.environ.get("SLURMD_NODENAME") or os.environ.get("NODE_NAME") or os.uname().nodename


def _crash_of(backend: Backend, attempt: Attempt, folder: Path) -> tuple[str | None, bool]:
    """Execute the run; return the reason why it failed, or None, and whether it is certain to fail again."""
    try:
        backend.run(attempt.spec, folder)
        outcome = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
        if outcome["status"] != "ok":
            return f"the guest reports: {sentence(outcome['reason'])}", attempt.repeats
    except RigError as error:
        return str(error), isinstance(error, SettledError)
    except Exception as error:  # a defect of a backend costs one run, not the study
        if isinstance(error, OSError) and no_room(error):
            raise
        return f"the backend failed: {error!r}", False
    return None, False


def _starved(spec: RunSpec, folder: Path) -> str | None:
    """Return why the run would be invalid for lack of a CPU, or None; the dataset reports unreadable files."""
    try:
        achieved = json.loads((folder / "achieved.json").read_text(encoding="utf-8"))
        return next(cpu_sufficed(Evidence(spec, achieved, [])), None)
    except (OSError, ValueError, TypeError, AttributeError):
        return None
