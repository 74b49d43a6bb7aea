# SPDX-License-Identifier: Apache-2.0
"""Paths of studies and results."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from longfat.system.cache import SHIPPED
from longfat.system.errors import StudyError
from longfat.system.text import has_controls

MANIFEST = "study.yaml"
PREFIX = "paper-"  # optional at the beginning of a study's name


def repository_root() -> Path:
    """Return the folder with ``experiments/`` and ``results/``: ``$LONGFAT_ROOT``, else the current folder."""
    return Path(os.environ.get("LONGFAT_ROOT") or Path.cwd())


def homes() -> tuple[Path, ...]:
    """Return the folders with ``experiments/``: the user's, then the one in an installed package."""
    return (repository_root(), SHIPPED) if SHIPPED.is_dir() else (repository_root(),)


def study_names() -> list[str]:
    """List the studies under ``experiments/``, the user's first; a study of a collection is COLLECTION/STUDY."""
    found = []
    for home in (root / "experiments" for root in homes()):
        places = [*sorted(home.glob(f"*/{MANIFEST}")), *sorted(home.glob(f"*/*/{MANIFEST}"))]
        found += [path.parent.relative_to(home).as_posix() for path in places]
    return list(dict.fromkeys(found))


def study_path(name: str) -> Path:
    """Return the folder of a study, given its name under ``experiments/`` or the path of its folder or manifest.

    Raises StudyError with the nearest name for an unknown one.
    """
    given, spellings = Path(name), (name, name.removeprefix(PREFIX), f"{PREFIX}{name}")
    named = [root / "experiments" / spelling for root in homes() for spelling in spellings]
    if name.startswith((".", "/")):  # a path takes precedence over names in experiments/
        named = []
    for folder in (*named, given, given.parent if given.name == MANIFEST else given):
        if name and (folder / MANIFEST).is_file():
            if has_controls(folder.resolve().name) or "\n" in folder.resolve().name:
                raise StudyError(f"the folder's name has control characters: {folder.resolve().name!r}", where=name)
            return folder
    for folder in (*named, given) if name else ():
        if folder.is_dir() and not any(folder.glob(f"*/{MANIFEST}")):
            raise StudyError(f"the folder has no {MANIFEST}", where=str(folder))
    known = study_names()
    inner = [other for other in known if other.endswith(f"/{name}")]
    collected = [other for other in known if other.startswith(f"{name}/")]
    near = inner or difflib.get_close_matches(name.removeprefix(PREFIX), known, n=1)
    raise StudyError(
        f"no study {name!r}; there are {', '.join(known) if known else f'none in {repository_root()}/experiments'}",
        hint=f"it is a collection: give one of {', '.join(collected)}"
        if collected
        else f"did you mean {near[0]!r}?"
        if near
        else f"give a name, or the folder of a {MANIFEST}",
    )
