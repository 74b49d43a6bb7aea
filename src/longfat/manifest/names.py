# SPDX-License-Identifier: Apache-2.0
"""Findings and the wording for unknown names. Must not know the meaning of any name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

Path = tuple[str | int, ...]

_SHOWN = 60  # characters of a value that a message repeats


@dataclass(frozen=True)
class Finding:
    """One fault at a place of the document, before file and line are known."""

    path: Path
    message: str
    hint: str | None = None

    def below(self, *prefix: str | int) -> Finding:
        """The same finding with its path seen from further up."""
        return Finding((*prefix, *self.path), self.message, self.hint)


def nearest(given: object, allowed: Iterable[str]) -> str | None:
    """A question that names the nearest allowed name, or None when none is near."""
    by_lower = {name.lower(): name for name in allowed}
    near = difflib.get_close_matches(str(given).lower(), by_lower, n=1, cutoff=0.5)
    return f"did you mean {by_lower[near[0]]!r}?" if near else None


def unknown(what: str, given: object, allowed: Iterable[str]) -> tuple[str, str | None]:
    """Message and hint for a name that is not among the ``allowed`` ones."""
    names = list(dict.fromkeys(str(name) for name in allowed))
    listing = ", ".join(names) if names else "none"
    return f"unknown {what} {shown(given)}; allowed: {listing}", nearest(given, names)


def shown(given: object) -> str:
    """A value as the manifest words it, cut when it is long."""
    words = {None: "null", True: "true", False: "false"}
    text = words[given] if given is None or isinstance(given, bool) else repr(given)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def key_text(path: Path) -> str:
    """A path as a reader writes it: ``experiments[0].flows[1].window``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
