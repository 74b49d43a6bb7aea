# SPDX-License-Identifier: Apache-2.0
"""The study of a card with a C file as its candidate: a copy in which the file stands in the place of a kernel's name.

Owns the copy's text. The file itself is checked as any study's is (docs/own-algorithm.md).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from longfat.card.document import FILE
from longfat.errors import RigError, StudyError
from longfat.files import write_whole
from longfat.metrics.registry import OWN_METRICS
from longfat.studies import CLAIMS, MANIFEST, StudyFolder

_UNKNOWNS = re.compile(r"(?ms)^unknowns:\n.*?(?=^\S)")
_CANDIDATE = re.compile(r'\{cca: "\$\{algorithm\}"\}')


def is_file(candidate: str) -> bool:
    """Whether what is to be evaluated is a C file, and not the name of one of the kernel's algorithms."""
    return candidate.endswith(".c") or "/" in candidate


def name_of(source: Path) -> str:
    """The algorithm's name, by that of its file: tcp_NAME.c."""
    return source.stem.removeprefix("tcp_")


def require_source(source: Path) -> None:
    """Raise StudyError for a file that there is not."""
    if not source.is_file():
        hint = "give a C file with a congestion control (docs/own-algorithm.md), or the name of one that the kernel has"
        raise StudyError("there is no such file", where=str(source), hint=hint)


def own_study(folder: StudyFolder, source: Path, home: Path) -> StudyFolder:
    """A copy of the study below ``home`` whose candidate is the C file. Raises RigError when it cannot be written.

    The copy's folder has the study's name, by which its own metrics are known.
    """
    to = home / name_of(source) / folder.name
    try:
        to.mkdir(parents=True, exist_ok=True)
        for name in (CLAIMS, FILE, OWN_METRICS):
            shutil.copyfile(folder.path / name, to / name)
        shutil.copyfile(source, to / source.name)
        text = (folder.path / MANIFEST).read_text(encoding="utf-8")
        write_whole(to / MANIFEST, _CANDIDATE.sub(f"{{source: {source.name}}}", _UNKNOWNS.sub("", text)))
    except OSError as error:
        raise RigError(f"the study cannot be copied: {error}", where=str(to)) from error
    return StudyFolder(to)
