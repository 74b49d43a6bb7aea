# SPDX-License-Identifier: Apache-2.0
"""Findings, and messages for unknown names. Must not know the meaning of any name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from longfat.system.errors import StudyError

Path = tuple[str | int, ...]

_SHOWN = 60  # characters of a value in a message
_LISTED = 40  # names in a message


@dataclass(frozen=True)
class Finding:
    """One fault at a path of the document, without file and line."""

    path: Path
    message: str
    hint: str | None = None

    def below(self, *prefix: str | int) -> Finding:
        """Return the finding with a prefix before its path."""
        return Finding((*prefix, *self.path), self.message, self.hint)


def nearest(given: object, allowed: Iterable[str]) -> str | None:
    """Return a question with the nearest allowed name, or None if no name is near."""
    by_lower = {name.lower(): name for name in allowed}
    near = difflib.get_close_matches(str(given).lower(), by_lower, n=1, cutoff=0.5)
    return f"did you mean {by_lower[near[0]]!r}?" if near else None


def unknown(what: str, given: object, allowed: Iterable[str]) -> tuple[str, str | None]:
    """Return message and hint for a name that is not among the ``allowed`` ones."""
    names = list(dict.fromkeys(str(name) for name in allowed))
    listing = ", ".join(names[:_LISTED]) if names else "none"
    further = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"unknown {what} {shown(given)}; allowed: {listing}{further}", nearest(given, names)


def require(what: str, given: str, allowed: Iterable[str], where: str | None = None) -> None:
    """Raise StudyError with the allowed names unless the name is one of them."""
    names = tuple(allowed)
    if given not in names:
        message, hint = unknown(what, given, names)
        raise StudyError(message, where=where, hint=hint)


def shown(given: object) -> str:
    """Format a value as in a manifest; a long one is cut."""
    words = {None: "null", True: "true", False: "false"}
    text = words[given] if given is None or isinstance(given, bool) else repr(given)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def key_text(path: Path) -> str:
    """Format a path for people: ``experiments[0].flows[1].window``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
