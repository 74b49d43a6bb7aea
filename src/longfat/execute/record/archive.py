# SPDX-License-Identifier: Apache-2.0
"""A record as one archive, for the transfer from the executing machine to the results folder.

Owns the acceptance of a received record, after the verification of all checksums.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

from longfat.backends.collect import unpack
from longfat.execute.record.bundle import PARTIAL_PREFIX, commit_folder
from longfat.execute.record.verify import Record, read_record
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
