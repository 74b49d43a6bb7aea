# SPDX-License-Identifier: Apache-2.0
"""One attempt at one run: the work of a worker process, from the empty partial folder to the commit.

Must not retry and must not know of other runs; ``study`` decides the consequence of a crash.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from longfat.backends.protocol import Backend
from longfat.errors import RecordError, RigError, SettledError
from longfat.execute.node import node_name
from longfat.execute.results import no_room
from longfat.gates import Evidence
from longfat.gates.behaviour import cpu_sufficed
from longfat.record.bucket import object_name, pack
from longfat.record.bundle import Bundle, RunFacts, RunStatus
from longfat.record.verify import read_record
from longfat.runspec import RunSpec

STARVED_REPEATS = 3  # a run in real time is repeated so often when the machine had no CPU for it


@dataclass(frozen=True)
class Attempt:
    """A run to be tried for the ``number``-th time, from 1; the ``last`` attempt is recorded anyway.

    Where a run ``repeats``, the laboratory's report is recorded at once, because it would report the same again.
    ``starved`` counts the attempts in which the machine had no CPU for it. ``outbox`` is the folder that the record is
    packed into, if it is not committed.
    """

    name: str
    spec: RunSpec
    number: int
    last: bool
    repeats: bool = False
    starved: int = 0
    outbox: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended; ``reason`` is None when the run is recorded as ok.

    ``settled`` means that it is recorded, ``starved`` that the machine was too busy for it to count.
    """

    reason: str | None
    wall_seconds: float
    settled: bool = True
    starved: bool = False


def attempt_run(backend: Backend, attempt: Attempt, raw: Path) -> Outcome:
    """Have the backend do the run; record it under ``raw`` if it went well or this was the last attempt.

    Raises OSError when the file system can take no more, RecordError when the folder holds another run.
    """
    started_utc = datetime.now(UTC).isoformat(timespec="seconds")
    start = time.monotonic()
    with Bundle(raw, attempt.name, attempt.spec) as bundle:
        reason, certain = _crash_of(backend, attempt, bundle.folder)
        seconds = round(time.monotonic() - start, 3)
        if reason is None and attempt.starved < STARVED_REPEATS and (starved := _starved(attempt.spec, bundle.folder)):
            return Outcome(starved, seconds, settled=False, starved=True)
        settled = reason is None or attempt.last or certain
        if settled:
            status: RunStatus = "ok" if reason is None else "failed"
            run_id = attempt.spec.run_id
            facts = RunFacts(run_id, status, reason, attempt.number, backend.name, seconds, started_utc, node_name())
            reason = _commit(bundle, facts, attempt.outbox)
    return Outcome(reason, seconds, settled)


def death(backend_name: str, attempt: Attempt, raw: Path) -> Outcome:
    """The outcome of an attempt whose worker process died; records it if it was the last."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    reason: str | None = "the worker process died (killed, or out of memory)"
    facts = RunFacts(attempt.spec.run_id, "failed", reason, attempt.number, backend_name, 0.0, now, node_name())
    if attempt.last:
        with Bundle(raw, attempt.name, attempt.spec) as bundle:
            reason = _commit(bundle, facts, attempt.outbox)
    return Outcome(reason, 0.0, attempt.last)


def _commit(bundle: Bundle, facts: RunFacts, outbox: Path | None) -> str | None:
    """Commit the run; the reason why it is recorded as failed, or None.

    A run whose worker died before its result was fetched is repeated, and a worker outlives a killed command by a
    moment. Where the same run is recorded already, that record is kept.
    """
    if outbox is not None:
        bundle.finish(facts)
        name = object_name(bundle.final.name, ok=facts.reason is None)
        pack(bundle.folder, bundle.folder / name)
        (bundle.folder / name).rename(outbox / name)
        return facts.reason
    try:
        bundle.commit(facts)
        return facts.reason
    except RecordError:
        record = read_record(bundle.final)
        if record.run_id != facts.run_id:
            raise
        return record.reason


def _crash_of(backend: Backend, attempt: Attempt, folder: Path) -> tuple[str | None, bool]:
    """Do the run; the reason why it failed, or None, and whether it is certain to fail again."""
    try:
        backend.run(attempt.spec, folder)
        outcome = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
        if outcome["status"] != "ok":
            return f"the laboratory reports: {outcome['reason']}", attempt.repeats
    except RigError as error:
        return str(error), isinstance(error, SettledError)
    except Exception as error:  # whatever a backend does wrong costs one run, not the study
        if isinstance(error, OSError) and no_room(error):
            raise
        return f"the backend failed: {error!r}", False
    return None, False


def _starved(spec: RunSpec, folder: Path) -> str | None:
    """Why the run would be invalid for want of a CPU, or None; the dataset reports files that cannot be read."""
    try:
        achieved = json.loads((folder / "achieved.json").read_text(encoding="utf-8"))
        return next(cpu_sufficed(Evidence(spec, achieved, [])), None)
    except (OSError, ValueError, TypeError, AttributeError):
        return None
