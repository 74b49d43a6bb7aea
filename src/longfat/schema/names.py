# SPDX-License-Identifier: Apache-2.0
"""Findings and the wording for unknown names. Must not know the meaning of any name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
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
    names = list(allowed)
    prefix, number = _numbered(str(given).lower())
    alike = [name for name in names if _numbered(name.lower())[0] == prefix and _numbered(name)[1] >= 0]
    # Where there are many numbers, another one is not a likely slip of the finger: fig-99 is not meant as fig-39.
    unlikely = alike if number >= 0 and len(alike) > 2 else ()
    by_lower = {name.lower(): name for name in names if name not in unlikely}
    near = difflib.get_close_matches(str(given).lower(), by_lower, n=1, cutoff=0.5)
    return f"did you mean {by_lower[near[0]]!r}?" if near else None


def unknown(what: str, given: object, allowed: Iterable[str]) -> tuple[str, str | None]:
    """Message and hint for a name that is not among the ``allowed`` ones."""
    names = list(dict.fromkeys(str(name) for name in allowed))
    listing = ", ".join(_ranges(names)) if names else "none"
    return f"unknown {what} {shown(given)}; allowed: {listing}", nearest(given, names)


def _ranges(names: Iterable[str]) -> Iterator[str]:
    """The names in their order; those that are alike but for a last number stand together, three or more as a range."""
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
    """A name without its last number, and that; -1 where it ends with none, or with one that is written in full."""
    match = re.fullmatch(r"(.*\D)(0|[1-9]\d{0,5})", name)
    return (match[1], int(match[2])) if match else (name, -1)


def shown(given: object) -> str:
    """A value as the manifest words it, cut when it is long."""
    words = {None: "null", True: "true", False: "false"}
    text = words[given] if given is None or isinstance(given, bool) else repr(given)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def key_text(path: Path) -> str:
    """A path as a reader writes it: ``experiments[0].flows[1].window``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
