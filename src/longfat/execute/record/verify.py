# SPDX-License-Identifier: Apache-2.0
"""Reading of run folders, with verification of every checksum.

Owns the definition of a valid record and the folder of damaged ones. Must not delete anything except the partial
folders of processes that have ended.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.execute.record.bundle import PARTIAL_PREFIX, RUN_FORMAT, SUMS, RunStatus, checksums, measured_digest
from longfat.system.errors import RecordError
from longfat.system.events import Event, EventSink, Kind, Level, discard
from longfat.system.processes import is_running

DAMAGED = ".damaged"
SUPERSEDED = ".superseded"


@dataclass(frozen=True)
class Record:
    """A committed run whose checksums are right. ``reason`` states why a ``failed`` one failed.

    ``node`` is the machine that executed it, ``wall_seconds`` its duration.
    """

    folder: Path
    run_id: str
    status: RunStatus
    reason: str | None
    attempt: int
    node: str = ""
    wall_seconds: float = 0.0


def read_record(folder: Path) -> Record:
    """Verify a committed run folder and read its ``run.json``.

    Raises RecordError if a file is missing, altered or not listed, or differs from docs/data.md.
    """
    where = str(folder)
    try:
        declared = (folder / SUMS).read_text(encoding="utf-8")
        found = checksums(folder)
        if declared != found:
            raise RecordError(_difference(declared, found), where=where)
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        identity = hashlib.sha256((folder / "spec.json").read_bytes()).hexdigest()
        if run["format"] != RUN_FORMAT:
            raise RecordError(f"run.json has format {run['format']!r}, not {RUN_FORMAT}", where=where)
        if run["run_id"] != identity:
            raise RecordError(f"run.json says {run['run_id']!r}, spec.json is {identity!r}", where=where)
        if run["status"] not in ("ok", "failed"):
            raise RecordError(f"run.json has status {run['status']!r}, not ok or failed", where=where)
        place, seconds = run.get("node", ""), float(run["wall_seconds"])  # early records have no node
        if not 0 <= seconds < math.inf:
            raise RecordError(f"run.json has a wall time of {seconds} s", where=where)
        reason, attempt = run["reason"], run["attempt"]
        if not (isinstance(reason, str | None) and isinstance(attempt, int) and isinstance(place, str)):
            raise RecordError("run.json has a value of another type than docs/data.md states", where=where)
        return Record(folder, identity, run["status"], reason, attempt, place, seconds)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise RecordError(f"the record cannot be read: {error!r}", where=where) from error


def read_facts(folder: Path) -> dict[str, Any]:
    """Return the content of ``run.json`` of a committed run folder; no other file is verified.

    Raises RecordError if it was altered or is not listed.
    """
    path = folder / "run.json"
    try:
        content, declared = path.read_bytes(), (folder / SUMS).read_text(encoding="utf-8")
        line = f"{hashlib.sha256(content).hexdigest()}  {path.name}\n"
        if line not in declared.splitlines(keepends=True):
            raise RecordError(f"its digest differs from {SUMS}", where=str(path))
        facts: dict[str, Any] = json.loads(content)
        return facts
    except (OSError, ValueError) as error:
        raise RecordError(f"the record cannot be read: {error!r}", where=str(path)) from error


def find_records(raw: Path, events: EventSink = discard) -> dict[str, Record]:
    """Return all valid records under ``raw`` by run_id, preferring ``ok`` ones.

    A damaged record is moved to ``raw/.damaged`` and reported as a warning: its run counts as missing. Raises
    RecordError for two ok records of one run with different measurements.
    """
    records: dict[str, Record] = {}
    if not raw.is_dir():
        return records
    for folder in sorted(path for path in raw.iterdir() if path.name[0] != "." and path.is_dir()):
        try:
            record = read_record(folder)
        except RecordError as error:
            place = set_aside(folder, DAMAGED)
            message = f"damaged record set aside as {place}: {error.message}"
            events(Event(Kind.RECORD_SET_ASIDE, message, Level.WARNING, {"folder": folder.name}))
            continue
        known = records.get(record.run_id)
        if known is None or known.status != "ok":
            records[record.run_id] = record
        elif record.status == "ok" and measured_digest(known.folder) != measured_digest(folder):
            message = f"it has other measurements of the same run than {known.folder.name}"
            raise RecordError(message, where=str(folder), hint="find out which is wrong, and move it away")
    return records


def set_aside(folder: Path, place: str) -> Path:
    """Move a run folder to ``raw/<place>/<name>.<n>``, with the first free number from 1; return its new path."""
    target = folder.parent / place
    target.mkdir(exist_ok=True)
    number = 1
    while (target / f"{folder.name}.{number}").exists():
        number += 1
    return folder.rename(target / f"{folder.name}.{number}")


def remove_leftovers(raw: Path, events: EventSink = discard) -> None:
    """Remove the partial folders of processes that no longer run."""
    for folder in sorted(raw.glob(f"{PARTIAL_PREFIX}*")):
        process = folder.name.rpartition("-")[2]
        if process.isdigit() and not is_running(int(process)):
            shutil.rmtree(folder, ignore_errors=True)
            message = f"removed the partial folder of an interrupted run: {folder.name}"
            events(Event(Kind.LEFTOVER_REMOVED, message, facts={"folder": folder.name}))


def _difference(declared: str, found: str) -> str:
    """Name the first file in which the declared and the found checksums differ."""
    listed = {line[66:]: line[:64] for line in declared.splitlines()}
    present = {line[66:]: line[:64] for line in found.splitlines()}
    for name in sorted({*listed, *present}):
        if name not in present:
            return f"{name} is missing"
        if name not in listed:
            return f"{name} is not listed in {SUMS}"
        if listed[name] != present[name]:
            return f"{name} has SHA-256 {present[name][:16]}..., not {listed[name][:16]}..."
    return f"{SUMS} is not sorted or has a duplicate line"
