# SPDX-License-Identifier: Apache-2.0
"""Files of a study that its manifest names: they lie beside it. Owns where they are, not what they say."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema

from longfat.schema.fields import fault, matching
from longfat.schema.names import shown

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}")


@dataclass(frozen=True)
class StudyFile:
    """A file beside the manifest."""

    path: Path

    @property
    def name(self) -> str:
        """Its name."""
        return self.path.name

    @property
    def digest(self) -> str:
        """The SHA-256 of its content, in hexadecimal digits."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def within(folder: Path, path: Path) -> bool:
    """Whether a file is in the folder itself, and not a link to any other file of the user's."""
    return path.resolve().is_relative_to(folder.resolve())


def _beside(given: Any, info: ValidationInfo) -> StudyFile:
    """The file of a name, which has to exist where the manifest's folder is known (context ``folder``)."""
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise fault(f"{shown(given)} is not the name of a file", "it is beside study.yaml; name it without a folder")
    folder = (info.context or {}).get("folder")
    file = StudyFile(Path(folder or ".") / given)
    if folder is not None and not file.path.is_file():
        raise fault(f"there is no file {given!r} beside study.yaml")
    if folder is not None and not within(Path(folder), file.path):
        raise fault(f"{given!r} is a link that leads out of the study's folder", "copy the file there")
    return file


FileName = Annotated[str, matching(_NAME, "the name of a file, without a folder")]

OwnFile = Annotated[
    Any,
    AfterValidator(_beside),
    WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"}),
    Field(description="a file beside study.yaml"),
]
