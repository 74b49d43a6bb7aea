# SPDX-License-Identifier: Apache-2.0
"""The location of built kernels and images. Creates and removes nothing."""

from __future__ import annotations

import os
from pathlib import Path

from longfat.system.errors import RigError


def cache_folder() -> Path:
    """Return the absolute path of the cache folder, which may be missing.

    It is ``$LONGFAT_CACHE``, else ``$XDG_CACHE_HOME/longfat``, else ``~/.cache/longfat``; a relative
    ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification requires.
    Raises RigError when ``LONGFAT_CACHE`` is relative, or without a home folder.
    """
    chosen = os.environ.get("LONGFAT_CACHE", "")
    if chosen:
        if not Path(chosen).is_absolute():
            raise RigError(
                f"LONGFAT_CACHE is {chosen!r}, but must be an absolute path",
                hint=f"LONGFAT_CACHE={Path(chosen).absolute()}",
            )
        return Path(chosen)
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():
        return shared / "longfat"
    try:
        return Path.home() / ".cache" / "longfat"
    except RuntimeError:
        raise RigError(
            "no home folder for built kernels and images",
            hint="set LONGFAT_CACHE to an absolute path",
        ) from None
