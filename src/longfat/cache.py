# SPDX-License-Identifier: Apache-2.0
"""Where built kernels and images are kept. Owns the location only; never creates or removes anything."""

from __future__ import annotations

import os
from pathlib import Path

from longfat.errors import RigError


def cache_folder() -> Path:
    """The absolute path of the cache folder, which need not exist.

    It is ``$LONGFAT_CACHE``, else ``$XDG_CACHE_HOME/longfat``, else ``~/.cache/longfat``; a relative
    ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification demands.
    Raises RigError when ``LONGFAT_CACHE`` is relative, or without a home folder to fall back on.
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
            "there is no home folder to keep built kernels and images in",
            hint="set LONGFAT_CACHE to an absolute path",
        ) from None
