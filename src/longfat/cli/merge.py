# SPDX-License-Identifier: Apache-2.0
"""``merge``: combine the records of several results folders with equal locks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from longfat.cli.console import WARNING, Output, say
from longfat.cli.outcome import expect
from longfat.execute.record.merge import merge_records
from longfat.execute.results import full_disk, no_room, open_results
from longfat.plan.lockfile import LOCK, read_lock, require_same
from longfat.relations.firsts import FIRST, read_first
from longfat.system.checksums import checksums_of, verify_checksums, write_checksums
from longfat.system.errors import Problem, RecordError, RigError, StudyError
from longfat.system.files import read_plain, write_whole

MOST_BYTES = 256 << 20  # of a file of others: a lock has kilobytes for each run


def merge(
    out: Output,
    results: Annotated[Path, typer.Argument(help="results folder that takes the records; created if missing")],
    folders: Annotated[list[Path], typer.Argument(help="results folders, or folders of records")],
) -> bool:
    """Merge the records of other results folders into one, and verify each record.

    All locks must be equal, and so must be the measurements of two records of one run; otherwise nothing is copied.
    """
    raws = _raw_folders(results, folders)
    lock = _one_lock([results, *folders])
    first = _oldest_first(folders)
    with open_results(results) as target:
        try:
            joined = merge_records(target.raw, raws)
            if lock is not None and not target.lock.exists():
                write_whole(target.lock, lock.read_bytes())
                write_checksums(target.path, "lock", [target.lock])
            if first is not None and not (target.path / FIRST).exists():
                write_whole(target.path / FIRST, first)
        except OSError as error:
            if no_room(error):
                raise full_disk(target.path, error) from error
            where = str(error.filename or results)
            raise RigError(f"the records cannot be merged: {error.strerror or error}", where=where) from error
        for text in joined.damaged:
            say(out, f"damaged: {text}", WARNING)
        text = f"{joined.copied} records copied, {joined.kept} kept"
        if target.lock.exists():
            planned = {run.run_id for run in read_lock(target.lock).runs}
            text += f"; {len(planned & joined.ok)} of {len(planned)} runs of the lock are recorded as ok"
        say(out, text)
    out.result(results=str(results), copied=joined.copied, kept=joined.kept, damaged=list(joined.damaged))
    return expect(not joined.damaged, "some records are damaged and were not merged; their runs count as missing")


def _raw_folders(target: Path, folders: Sequence[Path]) -> list[Path]:
    """Return the folders of the records. Raises StudyError with all folders that are missing or the target."""
    problems = []
    for folder in folders:
        if not folder.is_dir():
            problems.append(Problem(str(folder), None, "", "no such folder", "name results folders"))
        elif folder.resolve() in (target.resolve(), (target / "raw").resolve()):
            problems.append(Problem(str(folder), None, "", "the folder is the target itself"))
    if problems:
        raise StudyError("the records cannot be merged", problems=tuple(problems))
    return [folder / "raw" if (folder / "raw").is_dir() else folder for folder in folders]


def _one_lock(folders: Sequence[Path]) -> Path | None:
    """Return the first lock. Raises StudyError if another differs, RecordError if one was changed."""
    locks = [folder / LOCK for folder in folders if (folder / LOCK).exists()]
    for lock in locks:
        if checksums_of(lock.parent, "lock").exists():
            verify_checksums(lock.parent, "lock")
        texts = [_read(path).decode("ascii", errors="replace") for path in (locks[0], lock)]
        require_same(texts[0], str(locks[0]), texts[1], str(lock))
    if locks:
        read_lock(locks[0])
    return locks[0] if locks else None


def _read(path: Path) -> bytes:
    """Return the content of a file of others. Raises RecordError if it is not a plain file."""
    try:
        return read_plain(path, path.parent, MOST_BYTES)
    except OSError as error:
        raise RecordError(f"the file cannot be read: {error.strerror}", where=str(path)) from error


def _oldest_first(folders: Sequence[Path]) -> bytes | None:
    """Return the oldest record of the claims (docs/data.md). Raises RecordError or RigError for an unusable one."""
    found: dict[datetime, bytes] = {}
    for path in (folder / FIRST for folder in folders if (folder / FIRST).exists()):
        content = _read(path)
        found[datetime.fromisoformat(read_first(path).time)] = content
    return found[min(found)] if found else None
