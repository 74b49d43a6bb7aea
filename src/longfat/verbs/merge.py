# SPDX-License-Identifier: Apache-2.0
"""The command ``merge``: the records of several results folders in one, under one lock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from longfat.errors import Problem, RigError, StudyError
from longfat.execute.results import full_disk, no_room, open_results
from longfat.files import write_once
from longfat.plan.lockfile import LOCK, read_lock, require_same
from longfat.record.merge import merge_records
from longfat.relations.firsts import FIRST
from longfat.seals import check_seal, seal, seal_of
from longfat.verbs.say import WARNING, print_json, say

FORMAT = 1


def merge(target: Path, folders: Sequence[Path], console: Console, *, as_json: bool = False) -> bool:
    """Merge the records and the lock of ``folders`` into ``target``; return whether no record is damaged.

    Raises StudyError if a folder has no records or the locks differ, RecordError if records of one run differ, before
    anything is copied.
    """
    raws = _raw_folders(target, folders)
    lock = _one_lock([target, *folders])
    with open_results(target) as results:
        try:
            joined = merge_records(results.raw, raws)
            if lock is not None and write_once(results.lock, lock.read_bytes()):
                seal(results.path, "lock", [results.lock])
            _keep_first(results.path, folders)
        except OSError as error:
            if no_room(error):
                raise full_disk(results.path, error) from error
            raise RigError(f"the records cannot be merged: {error.strerror}", where=str(error.filename)) from error
        for text in joined.damaged:
            say(console, f"damaged: {text}", WARNING)
        text = f"{joined.copied} records copied, {joined.kept} kept"
        if results.lock.exists():
            planned = {run.run_id for run in read_lock(results.lock).runs}
            text += f"; {len(planned & joined.ok)} of {len(planned)} runs of the lock are recorded as ok"
        say(console, text)
    if as_json:
        counts = {"copied": joined.copied, "kept": joined.kept, "damaged": list(joined.damaged)}
        print_json({"format": FORMAT, "results": str(target), **counts})
    return not joined.damaged


def _raw_folders(target: Path, folders: Sequence[Path]) -> list[Path]:
    """Return the folders of the records. Raises StudyError with all folders that are missing or the target."""
    problems = []
    for folder in folders:
        if not folder.is_dir():
            problems.append(Problem(str(folder), None, "", "no such folder", "name results folders"))
        elif folder.resolve() in (target.resolve(), (target / "raw").resolve()):
            problems.append(Problem(str(folder), None, "", "it is the target itself"))
    if problems:
        raise StudyError("the records cannot be merged", problems=tuple(problems))
    return [folder / "raw" if (folder / "raw").is_dir() else folder for folder in folders]


def _one_lock(folders: Sequence[Path]) -> Path | None:
    """Return the first lock. Raises StudyError if another differs, RecordError if one was changed."""
    locks = [folder / LOCK for folder in folders if (folder / LOCK).exists()]
    for lock in locks:
        if seal_of(lock.parent, "lock").exists():
            check_seal(lock.parent, "lock")
        require_same(_text(locks[0]), str(locks[0]), _text(lock), str(lock))
    return locks[0] if locks else None


def _text(lock: Path) -> str:
    return lock.read_text(encoding="ascii", errors="replace")


def _keep_first(target: Path, folders: Sequence[Path]) -> None:
    """Copy the oldest record of the claims (docs/formats.md), unless the target has one."""
    firsts = [folder / FIRST for folder in folders if (folder / FIRST).exists()]
    if firsts:
        write_once(target / FIRST, min(firsts, key=_time_of).read_bytes())


def _time_of(first: Path) -> str:
    """Return the time at which the claims were kept, in UTC."""
    try:
        return str(json.loads(first.read_bytes())["time"])
    except (ValueError, KeyError, TypeError) as error:
        raise RigError(f"the first claims of these results cannot be read: {error!r}", where=str(first)) from error
