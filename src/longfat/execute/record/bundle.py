# SPDX-License-Identifier: Apache-2.0
"""Writer of the folder of one run: a partial folder, committed by one atomic rename.

Owns the names of run folders and of the files ``spec.json``, ``run.json`` and ``SHA256SUMS``. Independent of the files
of a backend; never changes a committed folder. A killed process leaves a partial folder, which is never read as a
result, or a complete one.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from longfat.spec.runspec import RunSpec
from longfat.study.traffic.qlog import SUFFIXES as QLOG
from longfat.system.errors import RecordError

RUN_FORMAT = 1
PARTIAL_PREFIX = ".partial-"
SUMS = "SHA256SUMS"
RunStatus = Literal["ok", "failed"]


@dataclass(frozen=True)
class RunFacts:
    """Content of ``run.json``, the only file of a record with wall-clock time and the name of the ``node``."""

    run_id: str
    status: RunStatus
    reason: str | None
    attempt: int
    backend: str
    wall_seconds: float
    started_utc: str
    node: str = ""


def run_folder_name(scenario: str, repetition: int, run_id: str) -> str:
    """Return ``<scenario>.r<NN>.<id8>``, which is readable and unique."""
    return f"{scenario}.r{repetition:02d}.{run_id[:8]}"


class Bundle:
    """The partial folder of a run, to be committed or discarded; the end of the ``with`` block discards it.

    ``folder`` takes the backend's files. Opening creates ``raw`` if it is missing, and ``spec.json``.
    """

    def __init__(self, raw: Path, name: str, spec: RunSpec) -> None:
        self.final = raw / name
        self.folder = raw / f"{PARTIAL_PREFIX}{name}-{os.getpid()}"
        # A folder of this name is left by a dead process with the same number.
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            self.folder.mkdir(parents=True)
            (self.folder / "spec.json").write_text(spec.to_json(), encoding="ascii")
        except BaseException:  # an interrupt, too: the `with` block has not begun
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)  # missing after a commit

    def commit(self, facts: RunFacts) -> Path:
        """Write ``run.json`` and ``SHA256SUMS``, flush all to disk and give the folder its final name.

        Raises RecordError if a folder of that name exists already; it is not changed.
        """
        text = json.dumps({"format": RUN_FORMAT, **dataclasses.asdict(facts)}, sort_keys=True, indent=1)
        (self.folder / "run.json").write_text(text + "\n", encoding="utf-8")
        (self.folder / SUMS).write_text(checksums(self.folder), encoding="utf-8")
        commit_folder(self.folder, self.final)
        return self.final


def commit_folder(draft: Path, final: Path) -> None:
    """Flush a complete record to disk and give it its final name.

    Raises RecordError if a folder of that name exists already.
    """
    for path in (*sorted(draft.rglob("*")), draft):
        flush(path)
    try:
        # rename(2) replaces an empty folder only, and a committed one is never empty.
        draft.rename(final)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        raise RecordError("the run is recorded already and a record is never overwritten", where=str(final)) from error
    flush(final.parent)


def checksums(folder: Path) -> str:
    """Return the text of ``SHA256SUMS``: a line ``<sha256>  <path>`` for every other file, sorted by path."""
    lines = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != SUMS:
            with path.open("rb") as file:
                lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n")
    return "".join(lines)


def flush(path: Path) -> None:
    """Flush a file or folder to the disk (fsync(2))."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


NOT_MEASURED = ("run.json", "spec.json", "outcome.json", "environment.json", "achieved.json", "hosts.json")
"""Reports about the execution of a run, not about its measurements (docs/data.md)."""


def is_measured(name: str) -> bool:
    """Return whether a raw file, given by its name, has measurements: every table, every qlog, and some reports."""
    return name.endswith((".csv", *QLOG)) or (name.endswith(".json") and "/" not in name and name not in NOT_MEASURED)


def measured_digest(folder: Path) -> str:
    """Return the SHA-256 (hex) of names and checksums of the measured files of a committed run folder.

    The checksums come from its SHA256SUMS, which ``read_record`` verifies. Raises OSError if that is missing.
    """
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    measured = [line for line in lines if is_measured(line[66:])]
    return hashlib.sha256("\n".join(measured).encode()).hexdigest()
