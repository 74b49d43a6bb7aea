# SPDX-License-Identifier: Apache-2.0
"""Series of a link's rate and round-trip time in a CSV file, as measurements publish them. Pure.

The header names the columns with their units: ``time (s),rate (Mbit/s),rtt (ms)``, the last one optional.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from longfat.spec.units import Duration, Quantity, Rate
from longfat.study.schema import fields as f
from longfat.study.schema.names import shown

MOST_ROWS = 36_000
MOST_STEPS = 100_000
"""Most steps of a run: each one is in its lock."""
_COLUMNS: dict[str, tuple[type[Quantity], int]] = {
    "time": (Duration, 10**16),
    "rate": (Rate, 10**12),
    "rtt": (Duration, 3_600_000_000),
}
"""Kind and largest value of each column, in base units; times may be UNIX timestamps."""
_LONGEST_US = 3_600_000_000
_HEAD = re.compile(r"\s*([a-z]+)\s*\(([^()]+)\)\s*")
_NUMBER = re.compile(r"\s*\d{1,15}(\.\d{1,15})?\s*", re.ASCII)
_MOST_PROBLEMS = 5


@dataclass(frozen=True)
class Row:
    """Rate (0: nothing leaves) and, if given, round-trip time from ``at_us`` on, counted from the first row."""

    at_us: int
    rate_bps: int
    rtt_us: int | None = None


@dataclass(frozen=True)
class Series:
    """Rows in the order of time. Of several, the last one lasts as long as the one before it; then they repeat."""

    rows: tuple[Row, ...]

    @property
    def has_rtt(self) -> bool:
        """Whether the rows have round-trip times."""
        return self.rows[0].rtt_us is not None

    @property
    def period_us(self) -> int | None:
        """Time after which the rows repeat; None for a single row."""
        return 2 * self.rows[-1].at_us - self.rows[-2].at_us if len(self.rows) > 1 else None

    def steps(self, end_us: int) -> int:
        """Return the largest number of rows before ``end_us``."""
        return len(self.rows) * (1 + end_us // self.period_us) if self.period_us else 1

    def until(self, end_us: int) -> Iterator[Row]:
        """Yield the rows before ``end_us``, repeated."""
        start_us = 0
        while True:
            for row in self.rows:
                if start_us + row.at_us >= end_us:
                    return
                yield Row(start_us + row.at_us, row.rate_bps, row.rtt_us)
            if not self.period_us:
                return
            start_us += self.period_us


def series_of(content: bytes, name: str) -> Series:
    """Parse a CSV file; values are rounded to microseconds and bits per second.

    Raises a pydantic error with the first wrong lines.
    """
    lines = content.decode("utf-8-sig", errors="replace").splitlines()
    if len(lines) > MOST_ROWS + 1:
        raise f.fault(f"{shown(name)} has {len(lines) - 1} rows; allowed: at most {MOST_ROWS}")
    units = _units(lines[0] if lines else "", name)
    faults: list[str] = []
    rows = [row for number, line in enumerate(lines[1:], 2) if (row := _row(line, number, units, faults))]
    for number, (before, then) in enumerate(pairwise(rows), 3):
        if not faults and then["time"] <= before["time"]:
            faults.append(f"line {number}: its time is not after the time before it")
    if not faults and rows and rows[-1]["time"] - rows[0]["time"] > _LONGEST_US:
        faults.append(f"line {len(lines)}: more than 3600 s after the first row")
    if not faults and not any(row["rate"] for row in rows):
        faults.append("line 2: no row has a rate above 0")
    if faults:
        more = f"; and {len(faults) - _MOST_PROBLEMS} more" if len(faults) > _MOST_PROBLEMS else ""
        raise f.fault(f"{shown(name)}, {'; '.join(faults[:_MOST_PROBLEMS])}{more}")
    return Series(tuple(Row(row["time"] - rows[0]["time"], row["rate"], _even(row.get("rtt"))) for row in rows))


def _units(header: str, name: str) -> dict[str, int]:
    """Return the size of each column's unit, in the order of the columns."""
    found: dict[str, int] = {}
    for cell in next(csv.reader([header]), []):
        match = _HEAD.fullmatch(cell)
        column, unit = match.groups() if match else ("", "")
        kind, _ = _COLUMNS.get(column, (None, 0))
        if kind is None or unit not in kind.units or column in found:
            kinds = (f"{column} ({'|'.join(kind.units)})" for column, (kind, _) in _COLUMNS.items())
            raise f.fault(f"{shown(name)}, line 1: column {shown(cell)}; allowed: each once of {', '.join(kinds)}")
        found[column] = kind.units[unit]
    if missing := [column for column in ("time", "rate") if column not in found]:
        raise f.fault(
            f"{shown(name)}, line 1: no column {missing[0]!r}", 'the first line is such as "time (s),rate (Mbit/s)"'
        )
    return found


def _row(line: str, number: int, units: dict[str, int], faults: list[str]) -> dict[str, int] | None:
    """Return the values of a line in base units, or None with its fault."""
    cells = line.split(",")
    if len(cells) != len(units):
        faults.append(f"line {number} has {len(cells)} values; allowed: {len(units)}")
        return None
    found: dict[str, int] = {}
    for cell, (column, unit) in zip(cells, units.items(), strict=True):
        most = _COLUMNS[column][1]
        if not _NUMBER.fullmatch(cell) or Fraction(cell) * unit > most:
            faults.append(f"line {number}: {column} is {shown(cell)}; allowed: a number from 0 to {most // unit}")
            return None
        found[column] = round(Fraction(cell) * unit)
    return found


def _even(rtt_us: int | None) -> int | None:
    """Round to two equal delays in whole microseconds."""
    return None if rtt_us is None else rtt_us // 2 * 2
