# SPDX-License-Identifier: Apache-2.0
"""The user's consent to programs in a study's folder, which run with the user's rights.

Studies of this checkout and of the folder in LONGFAT_ROOT are trusted. Owns the list of other programs that the user
trusts, by SHA-256, in the cache folder.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from longfat.system.cache import HOME, cache_folder
from longfat.system.errors import StudyError
from longfat.system.files import write_whole
from longfat.system.locks import hold

LIST = "trusted-programs"


def require_trust(path: Path, content: bytes) -> None:
    """Raise StudyError unless the program is the user's own or the user trusts it."""
    homes = {HOME, Path(os.environ.get("LONGFAT_ROOT") or HOME).resolve()}
    if any(path.resolve().is_relative_to(home / "experiments") for home in homes) or _digest(content) in _agreed():
        return
    raise StudyError(
        "this is a program, and it would run with your rights",
        where=str(path),
        hint=f"read it; if you trust it, `./just check {path.parent} --trust` remembers this content",
    )


def agree(content: bytes) -> None:
    """Remember that the user trusts a program. Raises OSError, RigError."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with hold(cache_folder() / f"{LIST}.lock"):
        known = _agreed() | {_digest(content)}
        write_whole(cache_folder() / LIST, "".join(f"{digest}\n" for digest in sorted(known)), 0o600)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _agreed() -> frozenset[str]:
    try:
        return frozenset((cache_folder() / LIST).read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return frozenset()
