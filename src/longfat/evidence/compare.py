# SPDX-License-Identifier: Apache-2.0
"""The choice of a sample of rows, and comparisons: of a repeated run with its row, and of rows with the parent commit.

Rows are withdrawn and never removed, so every loss since the parent commit, which git(1) has, is a fault.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from longfat.dataset.load import Dataset, Run
from longfat.evidence.collect import key_for, value_of
from longfat.evidence.criteria import CRITERIA
from longfat.evidence.rows import Row, ValueKey, canonical, read_line
from longfat.evidence.store import EVIDENCE, SUFFIX
from longfat.metrics import METRICS
from longfat.system.processes import git

Item = TypeVar("Item")
LEAST_SHARE = 20  # runs of the smallest sample in percent
PARENT = "HEAD^"


def sample_of(items: Sequence[tuple[str, str, Item]], wanted: str, seed: int) -> list[Item]:
    """Draw a number of items, or a percentage (``5%``, at least 20), by the seed.

    Each item has a group and a name; the sample takes one item of every group, then a second one, and so on. It does
    not depend on the order of items. Raises ValueError.
    """
    digits = wanted.removesuffix("%")
    number = float(digits) if digits.replace(".", "", 1).isdecimal() else 0.0
    if number <= 0 or (number > 100 if wanted.endswith("%") else number != int(number)):
        raise ValueError(f"{wanted!r} is not a sample; allowed: a number of runs, or a percentage such as 5%")
    count = max(LEAST_SHARE, round(number * len(items) / 100)) if wanted.endswith("%") else int(number)
    drawn = sorted(items, key=lambda item: hashlib.sha256(f"{seed} {item[1]}".encode()).hexdigest())
    before: Counter[str] = Counter()
    turns = []
    for group, _, item in drawn:
        turns.append((before[group], item))
        before[group] += 1
    return [item for _, item in sorted(turns, key=lambda turn: turn[0])[:count]]


def difference(row: Row, dataset: Dataset, run: Run) -> str | None:
    """Return the first difference between a run and its row, a value or the digest of measurements; None if equal.

    Values of a metric whose definition has changed are not compared.
    """
    if row.measured is None or run.status != "ok":
        before, now = (reason or "valid" for reason in (row.reason, run.reason))
        return None if before == now else f"the run is {before} in the evidence and {now} here"
    for name, stored in row.values.items():
        key = ValueKey.read(name)
        if key.metric not in METRICS:
            continue
        selection = key.selection(run.experiment)
        if key_for(selection) != key:
            continue
        known, required = METRICS[key.metric].parameters, {*METRICS[key.metric].required} - {"flow"}
        if not required <= {*selection.parameters} <= {*known}:
            return f"{name} has parameters that its metric lacks: {', '.join(known) or 'none'}"
        again = canonical(value_of(dataset, run, selection))
        if again != stored:
            return f"{name} is {stored!r} in the evidence and {again!r} here"
    if run.measured != row.measured:
        digests = f"{row.measured[:16]} in the evidence and {str(run.measured)[:16]} here"
        return f"every value is equal, but the digest of the measurements is {digests}"
    return None


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
            kept = [read_line(line) for line in now]
            lost = [one for one in map(read_line, before) if not any(_replaces(other, one) for other in kept)]
            gone += [f"{name}: the record of claim {one['claim']} on {one['day']} is gone" for one in lost]
            continue
        old, rows = list(_rows(before)), list(_rows(now))
        lines = {row.line() for row in old}
        new |= {(parts[1], line) for row in rows if (line := row.line()) not in lines}
        gone += [f"{name}: {text}" for text in _losses(old, rows)]
    return Since(frozenset(new), tuple(gone))


def _replaces(record: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a record has another's criterion, and is as old: a merge keeps the older of two."""
    same = all(record[key] == other[key] for key in ("claim", "sha256"))
    return same and (record["rows"], record["day"]) <= (other["rows"], other["day"])


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
