# SPDX-License-Identifier: Apache-2.0
"""The study of a report card with its candidate, a kernel algorithm or a C file in a copy of the study.

Owns the text of the copy. The C file is checked as in any study (docs/own-algorithm.md).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from longfat.data.study_folder import MANIFEST, StudyFolder
from longfat.metrics.registry import OWN_METRICS
from longfat.study.catalog.ccas import CCAS
from longfat.study.schema.names import unknown
from longfat.system.errors import RigError, StudyError
from longfat.system.files import write_whole
from longfat.system.trust import agree

UNKNOWN = "algorithm"
_UNKNOWNS = re.compile(r"(?ms)^unknowns:\n.*?(?=^\S)")
_CANDIDATE = re.compile(r'\{cca: "\$\{algorithm\}"\}')


def candidate(folder: StudyFolder, given: str, home: Path) -> tuple[str, StudyFolder]:
    """Return the name of an algorithm, given as a name or C file, and the study with this candidate.

    Raises StudyError for an unknown algorithm or a faulty file.
    """
    if given.endswith(".c") or "/" in given:
        source = Path(given)
        if not source.is_file():
            hint = (
                "give a C file with a congestion control (docs/own-algorithm.md), or the name of a kernel's algorithm"
            )
            raise StudyError("no such file", where=given, hint=hint)
        name = source.stem.removeprefix("tcp_")
        study = study_with(folder, source, home / name / folder.name)
        study.check()
        return name, study
    if given not in CCAS:
        message, suggestion = unknown("algorithm", given, CCAS)
        raise StudyError(message, hint=suggestion)
    return given, folder.assuming({UNKNOWN: given})


def study_with(folder: StudyFolder, source: Path, to: Path) -> StudyFolder:
    """Copy the study to a folder of the same name, with the C file as its candidate. Raises RigError."""
    try:
        to.mkdir(parents=True, exist_ok=True)
        for path in folder.path.iterdir():
            if path.is_file() and path.name != MANIFEST:
                shutil.copyfile(path, to / path.name)
        shutil.copyfile(source, to / source.name)
        for program in (to / OWN_METRICS, source):  # the project's own, and a file that the user names
            agree(program.read_bytes())
        text = (folder.path / MANIFEST).read_text(encoding="utf-8")
        write_whole(to / MANIFEST, _CANDIDATE.sub(f"{{source: {source.name}}}", _UNKNOWNS.sub("", text)))
    except OSError as error:
        raise RigError(f"the study cannot be copied: {error}", where=str(to)) from error
    return StudyFolder(to)
