# SPDX-License-Identifier: Apache-2.0
"""Debian's copyright files, which the guest's image lacks and a published container needs."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from longfat.builds.image import ImageRecipe, write_userland
from longfat.builds.programs import run_program
from longfat.system.errors import RigError

DOCUMENTS = "usr/share/doc"


def add_copyright_files(userland: Path, recipe: ImageRecipe, packages: Iterable[str]) -> None:
    """Write ``usr/share/doc/PACKAGE/copyright`` of all packages into ``userland``, from a second, whole userland.

    Packages of one source may share a file by a link. Raises RigError with the packages that have none.
    """
    with tempfile.TemporaryDirectory(prefix="documents-", dir=userland.parent) as scratch:
        tar = Path(scratch) / "whole.tar"
        write_userland(replace(recipe, path_excludes=()), tar)
        names = Path(scratch) / "names"
        with tarfile.open(tar) as files:
            names.write_text("".join(f"{file.name}\n" for file in files if _wanted(file)))
        run_program("tar", "-x", f"-f{tar}", f"-C{userland}", "--no-same-owner", f"--files-from={names}")
    lacking = [name for name in packages if not (userland / DOCUMENTS / name / "copyright").is_file()]
    if lacking:
        raise RigError(f"no copyright file of {', '.join(lacking)}", hint="remove the cached image, and build it again")


def _wanted(file: tarfile.TarInfo) -> bool:
    folder, _, name = file.name.removeprefix("./").rpartition("/")
    return (name == "copyright" and folder.startswith(f"{DOCUMENTS}/")) or (file.issym() and folder == DOCUMENTS)
