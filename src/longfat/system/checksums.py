# SPDX-License-Identifier: Apache-2.0
"""Checksums of the files that each step made and used, by which later changes are detected and refused.

Owns ``checksums/STEP.json`` in a results folder (docs/data.md). A step's checksums include the checksums of the steps
before it, and every reader of a step's files checks them. Must not know their content. They are not a signature: anyone
with write access to the folder can make them again.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from longfat.system.errors import RecordError
from longfat.system.files import file_sha256, write_whole

CHECKSUMS = "checksums"
FORMAT = 1
SHOWN = 5  # most files that an error names
RAW = "raw/"  # if all records are removed together, the files made from them stay valid

Step = Literal["lock", "dataset", "verdicts", "figures", "report"]


_STEPS: Mapping[Step, tuple[str, str]] = {
    "lock": ("the plan was locked", "`./just run STUDY` writes it again; valid runs are kept"),
    "dataset": ("the dataset was built", "`./just report STUDY` rebuilds it from the raw records"),
    "verdicts": ("the claims were judged", "`./just report STUDY` judges them again"),
    "figures": ("the figures were drawn", "`./just report STUDY` draws them again"),
    "report": ("the report was written", "`./just report STUDY` writes it again"),
}
"""The step in messages, and the remedy for its changed files."""


def write_checksums(
    results: Path, step: Step, files: Iterable[Path], study: Mapping[str, str | None] = MappingProxyType({})
) -> None:
    """Write the checksums of a step: ``files`` of the results folder that it made or used, and of the ``study``.

    A file of the study has the SHA-256 of the bytes that were read, which may differ from its content now; None if it
    was missing.
    """
    data: dict[str, object] = {
        "format": FORMAT,
        "results": {path.relative_to(results).as_posix(): _digest(path) for path in files},
        "study": dict(study),
    }
    data["sha256"] = _own(data)
    place = checksums_of(results, step)
    place.parent.mkdir(exist_ok=True)
    write_whole(place, json.dumps(data, sort_keys=True, indent=1) + "\n")


def checksums_of(results: Path, step: Step) -> Path:
    """Return the file of a step's checksums, which is among the files of later steps."""
    return results / CHECKSUMS / f"{step}.json"


def verify_checksums(results: Path, step: Step, study: Path | None = None) -> None:
    """Raise RecordError, with the names of the files, if files have changed since the step.

    If ``study`` is given, its files are compared, too.
    """
    (since, remedy), place = _STEPS[step], checksums_of(results, step)
    try:
        data = json.loads(place.read_text(encoding="ascii"))
        if data["format"] != FORMAT:
            raise ValueError(f"format is {data['format']!r}, not {FORMAT}")
        if data.pop("sha256") != _own(data):
            raise ValueError("the checksums were changed")
        listed = dict(data["results"]), dict(data["study"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = "the file is missing" if isinstance(error, FileNotFoundError) else repr(error)
        raise RecordError(f"the checksums cannot be read: {reason}", where=str(place), hint=remedy) from error
    changed = list(_changed(results, listed[0])) + (list(_changed(study, listed[1])) if study else [])
    if changed:
        more = f", and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        message = f"changed after {since}: {', '.join(changed[:SHOWN])}{more}"
        raise RecordError(message, where=str(results), hint=remedy)


def _changed(folder: Path, listed: Mapping[str, str | None]) -> Iterator[str]:
    """Yield changed files and the kind of change."""
    records = [name for name in listed if name.startswith(RAW)]
    gone = {*records} if not any((folder / name).exists() for name in records) else {*()}
    for name, digest in listed.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            yield f"{name} (outside of the folder)"
            continue
        try:
            now = _digest(path) if path.exists() or path.is_symlink() else None
        except OSError as error:
            yield f"{path} ({(error.strerror or str(error)).lower()})"
            continue
        if now != digest and name not in gone:
            yield f"{path} ({'missing' if now is None else 'added' if digest is None else 'changed'})"


def _own(data: Mapping[str, object]) -> str:
    """Return the digest of the other checksums, which distinguishes damaged checksums from damaged files."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    """Return a file's digest. Raises OSError for a pipe or device, whose reading may never end."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    return file_sha256(path)
