# SPDX-License-Identifier: Apache-2.0
"""Files next to study.yaml that the manifest names. Owns their location, not their content."""

from __future__ import annotations

import errno
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema

from longfat.study.schema.fields import fault, matching
from longfat.study.schema.names import shown
from longfat.system.files import read_plain

MAX_BYTES = 64 << 20  # of a file next to the manifest; a trace of a link has a few megabytes

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}")


@dataclass(frozen=True)
class StudyFile:
    """A file next to the manifest."""

    path: Path

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def digest(self) -> str:
        """The SHA-256 of its content, in hexadecimal digits."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def read_file(folder: Path, name: str) -> bytes:
    """Return the content of a file in a study's folder. Raises a fault if it is elsewhere or cannot be read."""
    path = folder / name
    try:
        return read_plain(path, folder, MAX_BYTES)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise fault(
                f"{shown(name)} is not in the study's folder", "copy the file there, and give its name there"
            ) from error
        raise fault(f"{shown(name)} cannot be read: {error.strerror}", f"it must be in {folder}") from error


def _next_to_manifest(given: Any, info: ValidationInfo) -> StudyFile:
    """Return the named file; it must exist if the context has the manifest's ``folder``."""
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise fault(
            f"{shown(given)} is not the name of a file", "it must be next to study.yaml; name it without a folder"
        )
    folder = (info.context or {}).get("folder")
    if folder is not None:
        read_file(Path(folder), given)
    return StudyFile(Path(folder or ".") / given)


FileName = Annotated[str, matching(_NAME, "the name of a file, without a folder")]

OwnFile = Annotated[
    Any,
    AfterValidator(_next_to_manifest),
    WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"}),
    Field(description="a file next to study.yaml"),
]
