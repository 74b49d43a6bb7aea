# SPDX-License-Identifier: Apache-2.0
"""Comparison of the evidence with the parent commit: new rows, and lost rows, values and records.

Rows are withdrawn and never removed, so every loss is a fault. Needs git(1) and a parent commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from longfat.evidence.criteria import CRITERIA
from longfat.evidence.rows import Row, read_line
from longfat.evidence.store import EVIDENCE, SUFFIX
from longfat.system.tools import git

PARENT = "HEAD^"


@dataclass(frozen=True)
class Since:
    """Changes since the parent commit: new or changed rows as (study's folder, line), and lines about all losses."""

    new: frozenset[tuple[str, str]]
    gone: tuple[str, ...]


def since_parent(root: Path, study: str | None = None) -> Since | None:
    """Compare the evidence of a study, or of all, with the parent commit; None without git or a parent commit.

    Raises ValueError or KeyError for a line that cannot be read.
    """
    where = f"experiments/{study}" if study else "experiments"
    names = _git(root, "diff", "--name-only", "--no-renames", PARENT, "--", where)
    if names is None:
        return None
    new: set[tuple[str, str]] = set()
    gone: list[str] = []
    for name in names.splitlines():
        parts = Path(name).parts
        if len(parts) < 3 or not name.endswith(SUFFIX) or (parts[2] != CRITERIA and EVIDENCE not in parts[2:3]):
            continue
        before = (_git(root, "show", f"{PARENT}:{name}") or "").splitlines()
        now = (root / name).read_text(encoding="ascii").splitlines() if (root / name).is_file() else []
        if parts[2] == CRITERIA:
            lost = (read_line(line) for line in before if line not in now)
            gone += [f"{name}: the record of claim {one['claim']} on {one['day']} is gone" for one in lost]
            continue
        old, rows = list(_rows(before)), list(_rows(now))
        lines = {row.line() for row in old}
        new |= {(parts[1], line) for row in rows if (line := row.line()) not in lines}
        gone += [f"{name}: {text}" for text in _losses(old, rows)]
    return Since(frozenset(new), tuple(gone))


def _losses(old: list[Row], now: list[Row]) -> Iterator[str]:
    """Yield each row that is missing without a withdrawal, and each changed or missing value."""
    present: dict[object, dict[str, float | str]] = {}
    for row in now:
        present.setdefault(row.outcome, {}).update(row.values)
    withdrawn = {row.outcome for row in now if row.withdrawn is not None}
    for row in old:
        if row.outcome not in present:
            yield f"{row.name} is gone without a withdrawal"
        elif row.outcome not in withdrawn:
            values = present[row.outcome]
            for key in (key for key, value in row.values.items() if values.get(key) != value):
                yield f"{row.name}: {key} was {row.values[key]!r}, is {values.get(key, 'gone')!r}"


def _rows(lines: list[str]) -> Iterator[Row]:
    for data in map(read_line, lines):
        if "format" not in data:
            yield Row.read(data)


def _git(root: Path, *arguments: str) -> str | None:
    """Return the output of a git command; None if it fails."""
    try:
        done = git(root, *arguments)
    except FileNotFoundError:
        return None
    return done.stdout.decode() if done.returncode == 0 else None
