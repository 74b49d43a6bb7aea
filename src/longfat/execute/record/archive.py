# SPDX-License-Identifier: Apache-2.0
"""A record as one archive, to travel from the machine that executed the run to the results folder.

Owns what an archive may contain: plain files of the record, in its folder, within limits. A received record becomes
one in the results folder only after all of its checksums were verified.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

from longfat.execute.record.bundle import PARTIAL_PREFIX, commit_folder
from longfat.execute.record.verify import Record, read_record
from longfat.system.errors import RecordError

MOST_FILES = 10_000
MOST_BYTES = 8 << 30


def pack(folder: Path) -> bytes:
    """Return a tar archive of a record, its checksums included: equal records give equal bytes. Raises OSError."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
    return content.getvalue()


def receive(content: bytes, raw: Path, name: str, run_id: str) -> Record:
    """Write the record of a run below ``raw`` in the folder ``name``, complete or not at all.

    Raises RecordError if the archive is not a valid record of this run, or another record has that name.
    """
    draft = raw / f"{PARTIAL_PREFIX}{name}-{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        unpack(content, draft)
        record = read_record(draft)
        if record.run_id != run_id:
            raise RecordError(f"the record received is of the run {record.run_id[:8]}, not {run_id[:8]}", where=name)
        commit_folder(draft, raw / name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return replace(record, folder=raw / name)


def unpack(content: bytes, folder: Path, *, most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES) -> None:
    """Unpack a record's archive into a new folder.

    Raises RecordError for anything that is not a plain file inside the folder, and for too many files or bytes. The
    archive is not compressed, so no file in it is larger than the archive.
    """
    if len(content) > most_bytes:
        raise _refused(f"it has {len(content)} bytes, more than {most_bytes}")
    folder.mkdir(parents=True)
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for number, entry in enumerate(archive, 1):
                if number > most_files:
                    raise _refused(f"it has more than {most_files} files")
                _write(archive, entry, folder)
    except (tarfile.TarError, OSError, ValueError) as error:
        raise _refused(f"it cannot be unpacked: {error}") from error


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path) -> None:
    name = PurePosixPath(entry.name)
    if not entry.isreg() or entry.issparse() or name.is_absolute() or ".." in name.parts or not name.parts:
        raise _refused(f"{entry.name!r} is not a plain file of a record")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    source = archive.extractfile(entry)
    assert source is not None  # a regular file has a content
    with path.open("xb") as target:
        shutil.copyfileobj(source, target)


def _refused(reason: str) -> RecordError:
    return RecordError(f"the archive of a record is refused: {reason}")
