# SPDX-License-Identifier: Apache-2.0
"""Findings, and messages for unknown names. Must not know the meaning of any name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Path = tuple[str | int, ...]

_SHOWN = 60  # characters of a value in a message


@dataclass(frozen=True)
class Finding:
    """One fault at a place of the document, without file and line."""

    path: Path
    message: str
    hint: str | None = None

    def below(self, *prefix: str | int) -> Finding:
        """Return the finding with a prefix before its path."""
        return Finding((*prefix, *self.path), self.message, self.hint)


def nearest(given: object, allowed: Iterable[str]) -> str | None:
    """Return a question with the nearest allowed name, or None if no name is near."""
    names = list(allowed)
    prefix, number = _numbered(str(given).lower())
    numbered = [name for name in names if _numbered(name.lower())[0] == prefix and _numbered(name)[1] >= 0]
    # Among many numbers another one is not a likely typing error: fig-99 does not mean fig-39.
    unlikely = numbered if number >= 0 and len(numbered) > 2 else ()
    by_lower = {name.lower(): name for name in names if name not in unlikely}
    near = difflib.get_close_matches(str(given).lower(), by_lower, n=1, cutoff=0.5)
    return f"did you mean {by_lower[near[0]]!r}?" if near else None


def unknown(what: str, given: object, allowed: Iterable[str]) -> tuple[str, str | None]:
    """Return message and hint for a name that is not among the ``allowed`` ones."""
    names = list(dict.fromkeys(str(name) for name in allowed))
    listing = ", ".join(_ranges(names)) if names else "none"
    return f"unknown {what} {shown(given)}; allowed: {listing}", nearest(given, names)


def _ranges(names: Iterable[str]) -> Iterator[str]:
    """Yield the names in order; three or more that differ only in consecutive final numbers become a range."""
    groups: dict[str, list[int]] = {}
    for name in names:
        prefix, number = _numbered(name)
        groups.setdefault(prefix, []).append(number)
    for prefix, numbers in groups.items():
        runs: list[list[int]] = []
        for number in sorted(numbers):
            if runs and number == runs[-1][-1] + 1 and number > 0:
                runs[-1].append(number)
            else:
                runs.append([number])
        for run in runs:
            if len(run) > 2:
                yield f"{prefix}{run[0]} to {prefix}{run[-1]}"
            else:
                yield from (f"{prefix}{number}" if number >= 0 else prefix for number in run)


def _numbered(name: str) -> tuple[str, int]:
    """Split a name into prefix and final number; the number is -1 if it has none, or one with leading zeros."""
    match = re.fullmatch(r"(.*\D)(0|[1-9]\d{0,5})", name)
    return (match[1], int(match[2])) if match else (name, -1)


def shown(given: object) -> str:
    """Format a value as a manifest has it; a long one is cut."""
    words = {None: "null", True: "true", False: "false"}
    text = words[given] if given is None or isinstance(given, bool) else repr(given)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def key_text(path: Path) -> str:
    """Format a path as readers write it: ``experiments[0].flows[1].window``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
