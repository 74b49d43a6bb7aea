# SPDX-License-Identifier: Apache-2.0
"""Transport of a record as an archive, and merging of the records of several raw folders: all are verified on arrival.

Owns the choice between two records of one run. Must not change the source folders.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from longfat.backends.collect import unpack
from longfat.execute.record.bundle import PARTIAL_PREFIX, commit_folder, measured_digest
from longfat.execute.record.verify import SUPERSEDED, Record, find_records, read_record, remove_leftovers, set_aside
from longfat.system.errors import RecordError


def pack(folder: Path) -> bytes:
    """Return a tar archive of a record with its checksums; equal records give equal bytes. Raises OSError."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
    return content.getvalue()


def receive(content: bytes, raw: Path, name: str, run_id: str) -> Record:
    """Write the record of a run atomically to the folder ``name`` below ``raw``.

    Raises RigError if the archive has anything except files and folders, RecordError if it is not a valid record of
    this run, or if a record has that name.
    """
    draft = raw / f"{PARTIAL_PREFIX}{name}-{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        unpack(io.BytesIO(content), draft)
        record = read_record(draft)
        if record.run_id != run_id:
            raise RecordError(f"the received record is of the run {record.run_id[:8]}, not {run_id[:8]}", where=name)
        commit_folder(draft, raw / name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return replace(record, folder=raw / name)


SHOWN = 20  # most conflicts in an error


@dataclass(frozen=True)
class Joined:
    """Numbers of copied records, and of runs that the target already had.

    ``ok`` has the run_ids of all valid records that are ok, ``damaged`` the damaged records with the reason.
    """

    copied: int
    kept: int
    ok: frozenset[str]
    damaged: tuple[str, ...]


def merge_records(target: Path, sources: Sequence[Path]) -> Joined:
    """Copy to ``target`` the records of runs that it lacks, and ok records of runs that failed there.

    Two ok records of one run must be the same observation; the first is kept. Raises RecordError, with both places of
    each pair that differs, before anything is copied, and OSError. Copied records stay after an interrupt.
    """
    remove_leftovers(target)
    damaged: list[str] = []
    there = find_records(target, lambda event: damaged.append(event.message))
    chosen = dict(there)
    conflicts = []
    for record in _records(sources, damaged):
        known = chosen.get(record.run_id)
        if known is None or (known.status, record.status) == ("failed", "ok"):
            chosen[record.run_id] = record
        elif (known.status, record.status) == ("ok", "ok") and _measured(known) != _measured(record):
            conflicts.append(f"{known.folder} and {record.folder}")
    if conflicts:
        more = f"\n  and {len(conflicts) - SHOWN} more" if len(conflicts) > SHOWN else ""
        raise RecordError(
            "records of the same run have different measurements:"
            + "".join(f"\n  {two}" for two in conflicts[:SHOWN])
            + more,
            hint="find out which machine is at fault, move its records away, and merge again; nothing was copied",
        )
    new = [record for run_id, record in chosen.items() if record is not there.get(run_id)]
    for record in new:
        _copy(record, target, there.get(record.run_id))
    ok = frozenset(run_id for run_id, record in chosen.items() if record.status == "ok")
    return Joined(len(new), len(chosen) - len(new), ok, tuple(damaged))


def _records(raws: Iterable[Path], damaged: list[str]) -> Iterable[Record]:
    for raw in raws:
        for folder in sorted(path for path in raw.iterdir() if path.name[0] != "." and path.is_dir()):
            try:
                _require_plain(folder)
                yield read_record(folder)
            except RecordError as error:
                damaged.append(str(error))


def _require_plain(folder: Path) -> None:
    """Raise RecordError for links, which may lead out of the folder, and for devices and pipes."""
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise RecordError(f"{path.name} is neither a file nor a folder", where=str(folder))


def _measured(record: Record) -> str:
    return measured_digest(record.folder)


def _copy(record: Record, target: Path, superseded: Record | None) -> None:
    """Copy a record atomically to its name in ``target``."""
    draft = target / f"{PARTIAL_PREFIX}{record.folder.name}-{os.getpid()}"
    try:
        shutil.copytree(record.folder, draft)
        if read_record(draft).run_id != record.run_id:
            raise RecordError("the record changed while it was copied", where=str(record.folder))
        if superseded is not None:
            set_aside(superseded.folder, SUPERSEDED)
        commit_folder(draft, target / record.folder.name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
