# SPDX-License-Identifier: Apache-2.0
"""Turns a file of format 1 into format 2: one section is rewritten, and everything else stays.

Owns the fate of the comments. It must not know the meaning of the section's entries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from longfat.manifest.emit import entry
from longfat.manifest.names import Path
from longfat.manifest.source import Source


def rewritten(
    text: str, source: Source, section: str, entries: Sequence[Mapping[str, Any]], before: Sequence[str] = ()
) -> str:
    """The text with other ``entries`` in a section, one for each that it had, and the lines ``before`` above it.

    Comments stay above their keys; comments of removed keys go above the entry.
    """
    lines = text.splitlines()
    first = source.lines[(section,)] - 1
    last = _end_of(lines, first)
    comments = _comments(lines, source, section)
    body: list[str] = []
    for index, data in enumerate(entries):
        body += ([""] if index else []) + _entry(data, comments.get(index, {}))
    head, tail = ([re.sub(r"^format:.*", "format: 2", line) for line in part] for part in (lines[:first], lines[last:]))
    return "\n".join([*head, *before, f"{section}:" if body else f"{section}: []", *body, *tail]).rstrip("\n") + "\n"


def _end_of(lines: list[str], first: int) -> int:
    """The line after the section that begins on line ``first``; comments above the next section belong to that one."""
    last = next((at for at in range(first + 1, len(lines)) if re.match(r"[A-Za-z]", lines[at])), len(lines))
    while last > first and re.match(r"\s*(#|$)", lines[last - 1]):
        last -= 1
    return last


def _comments(lines: list[str], source: Source, section: str) -> dict[int, dict[Path, list[str]]]:
    """The comments above each part of each entry; where parts begin on one line, the outermost has them."""
    result: dict[int, dict[Path, list[str]]] = {}
    taken: set[int] = set()
    for path in sorted(source.lines, key=lambda one: (source.lines[one], len(one))):
        line = source.lines[path]
        if path[:1] != (section,) or len(path) < 2 or line in taken:
            continue
        taken.add(line)
        at = line - 1
        while at and (lines[at - 1].lstrip().startswith("#") or (len(path) == 2 and not lines[at - 1].strip())):
            at -= 1
        if found := [one.strip() for one in lines[at : line - 1] if one.strip()]:
            result.setdefault(int(path[1]), {})[path[2:]] = found
    return result


def _entry(data: Mapping[str, Any], comments: Mapping[Path, list[str]]) -> list[str]:
    """The lines of an entry; comments of keys that it no longer has go above it."""
    there = {path: found for path, found in comments.items() if path and _has(data, path)}
    lost = [line for path, found in comments.items() if path not in there for line in found]
    return [*(f"  {line}" for line in lost), *entry(data, there)]


def _has(data: Any, path: Path) -> bool:
    for part in path:
        inside = isinstance(data, Mapping) and part in data
        inside = inside or (isinstance(data, Sequence) and isinstance(part, int) and part < len(data))
        if not inside:
            return False
        data = data[part]
    return True
