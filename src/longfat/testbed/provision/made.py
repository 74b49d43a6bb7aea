# SPDX-License-Identifier: Apache-2.0
"""The files in a lab's folder that were made for the user, to remove them unless the user has changed them.

Owns made.json: the SHA-256 of each such file. It is written before the file: no made file is mistaken for the user's
own, and none of the user's for a made one.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from longfat.files import write_whole

NOTES = "made.json"
OWNERS = 0o600  # a lab has keys and addresses


def make_file(path: Path, content: bytes) -> None:
    """Write a file of the lab in ``path``'s folder, and note that it was made."""
    notes = _read(path.parent)
    write_whole(path.parent / NOTES, _as_json(notes | {path.name: hashlib.sha256(content).hexdigest()}), OWNERS)
    write_whole(path, content, OWNERS)


def made_files(folder: Path) -> tuple[Path, ...]:
    """The files that were made in this folder and are unchanged."""
    return tuple(
        folder / name
        for name, digest in _read(folder).items()
        if (folder / name).is_file() and hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    )


def _read(folder: Path) -> dict[str, str]:
    try:
        notes = json.loads((folder / NOTES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # nothing is known to be made, so nothing of it will go
    return {str(name): str(digest) for name, digest in notes.items()} if isinstance(notes, dict) else {}


def _as_json(notes: dict[str, str]) -> bytes:
    return (json.dumps(notes, indent=1, sort_keys=True) + "\n").encode()
