# SPDX-License-Identifier: Apache-2.0
"""The image's recipe as data: the files of ``images/``, their digest, and the command line that builds the image.

Pure except for reading the recipe's files. Must not run anything or look at the machine.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from longfat.errors import RigError

Mode = Literal["root", "unshare"]

# The files that make up the recipe, without the README next to them.
RECIPE_FILES = ("recipe.toml", "packages.txt", "path-excludes.txt", "customize.sh")


@dataclass(frozen=True)
class ImageRecipe:
    """One userland, complete. ``source_date_epoch`` is in seconds; ``digest`` covers all RECIPE_FILES."""

    suite: str
    variant: str
    architecture: str
    source_date_epoch: int
    packages: tuple[str, ...]
    path_excludes: tuple[str, ...]
    customize: str
    digest: str


def read_recipe(folder: Path) -> ImageRecipe:
    """Read the recipe in ``folder``. Raises RigError when a file or a key of ``recipe.toml`` is missing."""
    try:
        texts = {name: (folder / name).read_text(encoding="utf-8") for name in RECIPE_FILES}
    except OSError as error:
        raise RigError(
            f"the image's recipe cannot be read: {error.strerror}",
            where=str(error.filename),
            hint="git status shows what is missing from the checkout",
        ) from error
    digest = hashlib.sha256()
    for name in RECIPE_FILES:
        digest.update(f"{name} {len(texts[name])}\n{texts[name]}".encode())
    try:
        settings = tomllib.loads(texts["recipe.toml"])
        return ImageRecipe(
            suite=settings["suite"],
            variant=settings["variant"],
            architecture=settings["architecture"],
            source_date_epoch=settings["source_date_epoch"],
            packages=list_entries(texts["packages.txt"]),
            path_excludes=list_entries(texts["path-excludes.txt"]),
            customize=texts["customize.sh"],
            digest=digest.hexdigest(),
        )
    except tomllib.TOMLDecodeError as error:
        raise RigError(f"not TOML: {error}", where=str(folder / "recipe.toml")) from error
    except KeyError as error:
        raise RigError(f"the key {error} is missing", where=str(folder / "recipe.toml")) from error


def mmdebstrap_argv(recipe: ImageRecipe, *, mode: Mode, sources: Sequence[str], target: Path) -> list[str]:
    """The command that writes the userland to the tar file ``target``, with the same bytes in either mode."""
    return [
        "mmdebstrap",
        f"--mode={mode}",
        f"--variant={recipe.variant}",
        f"--architectures={recipe.architecture}",
        "--format=tar",
        f"--include={','.join(recipe.packages)}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in recipe.path_excludes),
        f"--customize-hook={recipe.customize}",
        recipe.suite,
        str(target),
        *sources,
    ]


def list_entries(text: str) -> tuple[str, ...]:
    """The entries of a list with one in each line and comments after ``#``."""
    lines = (line.split("#", 1)[0].strip() for line in text.splitlines())
    return tuple(line for line in lines if line)
