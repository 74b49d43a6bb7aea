# SPDX-License-Identifier: Apache-2.0
"""Plain data as YAML of the kind that people write: short mappings and lists on one line, the others line by line.

Owns layout and quoting. It must not know the meaning of the keys.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from longfat.manifest.names import Path

WIDTH = 120
# Texts that need no quotes: on a line with others, and on a separate line.
_PLAIN = re.compile(r"[A-Za-z0-9_/]([^\x00-\x1f:#,\[\]{}\x7f]*[^\s:#,\[\]{}\x00-\x1f\x7f])?")
_ALONE = re.compile(r"(?!.*(: | #))[A-Za-z0-9_/]([^\x00-\x1f{}\x7f]*[^\s:{}\x00-\x1f\x7f])?")
_OTHER_TYPE = re.compile(r"true|false|null|[-+]?[0-9][0-9_]*(\.[0-9]*)?([eE][-+]?[0-9]+)?")


class Lines(list[str]):
    """Texts that are each written on a separate line, however short they are."""


def emitted(data: Any, indent: int = 0, comments: Mapping[Path, Iterable[str]] | None = None) -> list[str]:
    """The lines of a mapping or a list, with ``comments`` above the parts that they are of."""
    return _block(data, indent, (), comments or {})


def entry(data: Mapping[str, Any], comments: Mapping[Path, Iterable[str]]) -> list[str]:
    """The lines of an entry of a section's list, a line or more to each key."""
    lines = emitted(data, 4, comments)
    first = next(index for index, line in enumerate(lines) if not line.lstrip().startswith("#"))
    lines[first] = f"  - {lines[first].lstrip()}"
    return lines


def scalar(value: Any, plain: re.Pattern[str] = _PLAIN) -> str:
    """A single value as YAML, quoted where it would be read as something else."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")
    if isinstance(value, str):
        bare = plain.fullmatch(value) and not _OTHER_TYPE.fullmatch(value)
        return value if bare else json.dumps(value, ensure_ascii=False)
    return str(value)


def _key(key: str) -> str:
    """A key, which is a text whatever it looks like."""
    return key if _PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def inline(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {inline(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return scalar(value)


def _block(data: Any, indent: int, path: Path, comments: Mapping[Path, Iterable[str]]) -> list[str]:
    lines: list[str] = []
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in entries:
        below = (*path, key)
        lines += [" " * indent + comment for comment in comments.get(below, ())]
        head = "- " if isinstance(data, list) else f"{_key(str(key))}:"
        lines += _entry(" " * indent + head, value, indent, below, comments)
    return lines


def _entry(head: str, value: Any, indent: int, path: Path, comments: Mapping[Path, Iterable[str]]) -> list[str]:
    if isinstance(value, str):
        return _text(head.rstrip(), value, indent)
    one_line = f"{head.rstrip()} {inline(value)}"
    remarked = any(one[: len(path)] == path and one != path for one in comments) or isinstance(value, Lines)
    if not isinstance(value, dict | list) or not value or (len(one_line) <= WIDTH and not remarked):
        return [one_line]
    if isinstance(value, list) and not remarked and _is_row(head, value, indent):
        return _wrapped(head.rstrip(), [inline(item) for item in value], indent)
    lines = _block(value, indent + 2, path, comments)
    if head.endswith("- ") and not lines[0].lstrip().startswith("#"):
        return [head + lines[0].lstrip(), *lines[1:]]
    return [head.rstrip(), *lines]


def _is_row(head: str, items: list[Any], indent: int) -> bool:
    """Whether items are written on one line: single values, and the cells of a table's row."""
    if head.endswith("- "):
        return all(len(inline(item)) <= WIDTH - indent - 3 for item in items)
    return not any(isinstance(item, dict | list) for item in items)


def _text(head: str, text: str, indent: int) -> list[str]:
    """A text after its key, folded where the line would be too long and its words are all that it holds."""
    one_line = f"{head} {scalar(text, _ALONE)}"
    if len(one_line) <= WIDTH or text.split(" ") != text.split():
        return [one_line]
    width = WIDTH - indent - 2
    words = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [f"{head} >-", *(" " * (indent + 2) + line for line in words)]


def _wrapped(head: str, items: list[str], indent: int) -> list[str]:
    """A list of single values over several lines."""
    lines, line = [f"{head} ["], " " * (indent + 2)
    for item in items:
        if len(line) + len(item) + 2 > WIDTH:
            lines.append(line.rstrip())
            line = " " * (indent + 2)
        line += f"{item}, "
    return [*lines, line.rstrip().rstrip(","), " " * indent + "]"]
