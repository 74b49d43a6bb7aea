# SPDX-License-Identifier: Apache-2.0
"""The version of the program: commit, and kernels and image in the cache folder. Builds nothing."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

from longfat.builds.image import RECIPE_FOLDER, read_recipe
from longfat.builds.kernel_recipe import Recipe
from longfat.builds.kernel_source import Source
from longfat.builds.kernel_targets import TARGETS
from longfat.study.catalog.kernels import KERNELS
from longfat.system.cache import HOME, cache_folder
from longfat.system.processes import git

SHOWN_DIGITS = 12
NOT_THERE = "not built yet"


def version_lines() -> list[str]:
    """Return four lines: version, commit, kernels, image."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cache = cache_folder()
    kernels = [f"{name} {_kernel(name, cache / 'kernels')}" for name in KERNELS]
    image = _facts(cache / "images" / read_recipe(RECIPE_FOLDER).digest / "image.json")
    return [
        f"longfat {project['version']}",
        f"commit: {commit()}",
        f"kernels: {'; '.join(kernels)}",
        f"image: {image['digest'][:SHOWN_DIGITS] if image else NOT_THERE}",
    ]


def _kernel(name: str, folder: Path) -> str:
    """Return release and digest of a guest kernel built from this checkout's recipe, not from a user's tree."""
    recipe, target = Recipe(name), TARGETS["um"]
    for path in sorted(folder.glob("*/kernel.json")):
        facts = _facts(path)
        if not facts or "tree" in facts:
            continue
        if recipe.digest(Source(path, facts["version"], facts["source_sha256"]), target) == facts["digest"]:
            return f"{facts['version']}, {facts['digest'][:SHOWN_DIGITS]}"
    return NOT_THERE


def _facts(path: Path) -> dict[str, str]:
    """Return the facts of a build; empty if it is damaged or absent."""
    try:
        facts: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts


def commit() -> str:
    """Return the commit of the checkout, with ``-dirty`` after an edit; ``unknown`` without git."""
    try:
        found = git(HOME, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*", seconds=10)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return found.stdout.decode().strip() or "unknown"
