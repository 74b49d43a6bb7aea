# SPDX-License-Identifier: Apache-2.0
"""The verb ``merge``: the records of shards, from wherever they ran, in one results folder under one lock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from longfat.cli.console import WARNING, print_json, say
from longfat.errors import Problem, RecordError, RigError, StudyError
from longfat.execute.results import full_disk, no_room, open_results
from longfat.files import write_once
from longfat.plan.lockfile import LOCK, read_lock, require_same
from longfat.record.bucket import Bucket
from longfat.record.merge import merge_records
from longfat.relations.firsts import FIRST
from longfat.seals import check_seal, seal, seal_of

FORMAT = 1
AT_ONCE = 8  # objects that are fetched: a request takes long, and little of this machine


class Merged(NamedTuple):
    """How many records were taken over, and how many were there already; what is damaged, with the reason."""

    copied: int
    kept: int
    damaged: tuple[str, ...]


def merge(target: Path, places: Sequence[str], console: Console, *, as_json: bool = False) -> bool:
    """Join the records of ``places`` in ``target``: folders, and addresses of stores; whether no record is damaged."""
    folders = [Path(place) for place in places if "://" not in place]
    merged = [_fetch(target, place, console) for place in places if "://" in place]
    merged += [merge_folders(target, folders, console)] if folders else []
    damaged = [text for one in merged for text in one.damaged]
    if as_json:
        counts = {"copied": sum(one.copied for one in merged), "kept": sum(one.kept for one in merged)}
        print_json({"format": FORMAT, "results": str(target), **counts, "damaged": damaged})
    return not damaged


def _fetch(target: Path, address: str, console: Console) -> Merged:
    """Fetch from a store what ``target`` does not have, and the lock."""
    store = Bucket(address)
    with open_results(target) as results:
        lock = store.text(LOCK)
        if lock is not None:
            there = results.lock.read_text(encoding="ascii") if results.lock.exists() else lock
            require_same(lock, address, there, str(results.lock))
            if write_once(results.lock, lock):
                seal(results.path, "lock", [results.lock])
        names = store.names()
        wanted = [key for name, key in names.items() if not (results.raw / name).exists()]

        def problem_of(key: str) -> str | None:
            try:
                store.get(key, results.raw)
            except RecordError as error:
                return str(error)
            return None

        with ThreadPoolExecutor(AT_ONCE) as pool:
            damaged = tuple(problem for problem in pool.map(problem_of, wanted) if problem)
        for problem in damaged:
            say(console, f"damaged: {problem}", WARNING)
    merged = Merged(len(wanted) - len(damaged), len(names) - len(wanted), damaged)
    say(console, f"{merged.copied} records fetched, {merged.kept} there already")
    return merged


def merge_folders(target: Path, folders: Sequence[Path], console: Console) -> Merged:
    """Join the records and lock of ``folders`` in ``target``.

    Raises StudyError when a folder has no records or locks differ, RecordError when records do, before anything is
    copied.
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
            raise RigError(f"the records cannot be joined: {error.strerror}", where=str(error.filename)) from error
        for text in joined.damaged:
            say(console, f"damaged: {text}", WARNING)
        text = f"{joined.copied} records copied, {joined.kept} kept"
        if results.lock.exists():
            planned = {run.run_id for run in read_lock(results.lock).runs}
            text += f"; {len(planned & joined.ok)} of {len(planned)} runs of the lock are recorded as ok"
        say(console, text)
    return Merged(joined.copied, joined.kept, joined.damaged)


def _raw_folders(target: Path, folders: Sequence[Path]) -> list[Path]:
    """Where the records of each folder are. Raises StudyError with all folders that have none, or are the target."""
    problems = []
    for folder in folders:
        if not folder.is_dir():
            problems.append(Problem(str(folder), None, "", "no such folder", "give results folders of shards"))
        elif folder.resolve() in (target.resolve(), (target / "raw").resolve()):
            problems.append(Problem(str(folder), None, "", "it is the folder to join records in itself"))
    if problems:
        raise StudyError("the records cannot be joined", problems=tuple(problems))
    return [folder / "raw" if (folder / "raw").is_dir() else folder for folder in folders]


def _one_lock(folders: Sequence[Path]) -> Path | None:
    """The first lock that there is. Raises StudyError when another differs, RecordError when one was changed."""
    locks = [folder / LOCK for folder in folders if (folder / LOCK).exists()]
    for lock in locks:
        if seal_of(lock.parent, "lock").exists():
            check_seal(lock.parent, "lock")
        require_same(_text(locks[0]), str(locks[0]), _text(lock), str(lock))
    return locks[0] if locks else None


def _text(lock: Path) -> str:
    return lock.read_text(encoding="ascii", errors="replace")


def _keep_first(target: Path, folders: Sequence[Path]) -> None:
    """Take over the claims that any of the folders saw first, unless the target has seen some."""
    firsts = [folder / FIRST for folder in folders if (folder / FIRST).exists()]
    if firsts:
        write_once(target / FIRST, min(firsts, key=_time_of).read_bytes())


def _time_of(first: Path) -> str:
    """When the claims were kept, in UTC."""
    try:
        return str(json.loads(first.read_bytes())["time"])
    except (ValueError, KeyError, TypeError) as error:
        raise RigError(f"the first claims of these results cannot be read: {error!r}", where=str(first)) from error
