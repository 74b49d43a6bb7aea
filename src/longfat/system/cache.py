# SPDX-License-Identifier: Apache-2.0
"""Locations of the checkout, and of the user's own folders by the XDG Base Directory Specification.

Creates and removes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

from longfat.system.errors import RigError
from longfat.system.identity import PACKAGE

SHIPPED = PACKAGE / "checkout"  # exists in an installed package only; pyproject.toml lists its content
HOME = SHIPPED if SHIPPED.is_dir() else PACKAGE.parents[1]


def user_folder(variable: str, xdg: str, default: str, name: str) -> Path:
    """Return the folder in ``$variable``, else ``name`` in ``$xdg``, or in ``default`` below the home folder.

    A relative ``$xdg`` is ignored, as the specification requires. Raises RigError when ``$variable`` is relative, or
    without a home folder.
    """
    chosen = os.environ.get(variable, "")
    if chosen:
        if not Path(chosen).is_absolute():
            hint = f"{variable}={Path(chosen).absolute()}"
            raise RigError(f"{variable} is {chosen!r}, but must be an absolute path", hint=hint)
        return Path(chosen)
    shared = Path(os.environ.get(xdg, ""))
    try:
        return (shared if shared.is_absolute() else Path.home() / default) / name
    except RuntimeError:
        raise RigError("no home folder", hint=f"set {variable} to an absolute path") from None


def cache_folder() -> Path:
    """Return the absolute path of the folder of built kernels and images, which may be missing. Raises RigError."""
    return user_folder("LONGFAT_CACHE", "XDG_CACHE_HOME", ".cache", "longfat")
