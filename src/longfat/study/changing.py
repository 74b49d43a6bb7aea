# SPDX-License-Identifier: Apache-2.0
"""Changes of a path's rate and delay during a run: steps, outages, traces of mahimahi; and aggregation.

Owns their keys, their checks, and the reading of traces.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, ValidationInfo, WithJsonSchema, model_validator

from longfat.spec.runspec import Trace
from longfat.spec.units import Duration, Quantity, Rate, Size
from longfat.study.queues.kind import QueueKind
from longfat.study.queues.limit import Place
from longfat.study.schema import fields as f
from longfat.study.schema.files import read_file
from longfat.study.schema.names import Finding, shown
from longfat.study.schema.names import Path as KeyPath

MOST_ROWS = 36_000
MOST_STEPS = 100_000
"""Most steps of a run: each one is in its lock."""
_COLUMNS: dict[str, tuple[type[Quantity], int]] = {
    "time": (Duration, 10**16),
    "rate": (Rate, f.FASTEST.value),
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


FOLDER = "folder"
"""Key of the study's folder in the validation context; traces are read from there."""
LONGEST_TRACE_MS = 3_600_000


@dataclass(frozen=True)
class TraceFile:
    """A trace by its name in the manifest, with its content unless the study's folder is unknown."""

    name: str
    trace: Trace | None = None
    series: Series | None = None

    def __str__(self) -> str:
        return self.name


def _read(given: object, info: ValidationInfo) -> TraceFile:
    if not isinstance(given, str) or not given.strip():
        raise f.fault(f"{shown(given)} is not the name of a file in the study's folder")
    folder = (info.context or {}).get(FOLDER)
    if folder is None or f.REFERENCE.fullmatch(given):
        return TraceFile(given)
    content = read_file(Path(folder), given)
    if given.endswith(".csv"):
        return TraceFile(given, series=series_of(content, given))
    return TraceFile(given, trace_of(content, given))


TraceName = Annotated[TraceFile, PlainValidator(_read), WithJsonSchema({"type": "string"})]


def trace_of(content: bytes, name: str) -> Trace:
    """Parse a mahimahi trace: each line is the millisecond in which one packet may leave.

    The trace repeats after its last line. Raises a pydantic error that names the wrong line.
    """
    lines = content.decode("utf-8", errors="replace").splitlines()
    times = [_millisecond(line, f"line {number} of {name!r}") for number, line in enumerate(lines, 1)]
    for number, (before, then) in enumerate(pairwise(times), 2):
        if then < before:
            raise f.fault(f"line {number} of {name!r} is {then}, less than the {before} before it; allowed: no less")
    if not times or not times[-1]:
        raise f.fault(f"{name!r} has no packet after 0 ms: it ends where it begins")
    packets = [0] * times[-1]
    for time in times:
        packets[max(time, 1) - 1] += 1  # a packet leaves in the millisecond that ends with its time
    words = ((count, sum(1 for _ in equal)) for count, equal in groupby(packets))
    text = " ".join(f"{count}*{number}" if number > 1 else str(count) for count, number in words)
    return Trace(hashlib.sha256(content).hexdigest(), text)


def _millisecond(line: str, where: str) -> int:
    if not (line.isascii() and line.isdigit()) or int(line) > LONGEST_TRACE_MS:
        allowed = f"a whole number of milliseconds, at most {LONGEST_TRACE_MS}"
        raise f.fault(f"{where} is {shown(line)}; allowed: {allowed}")
    return int(line)


HoldTime = Annotated[Duration, f.Within("0 us", "1 s")]


class Change(f.Closed):
    """New values of a path, from a given time on."""

    examples: ClassVar[tuple[str, ...]] = (
        "{at: 200 ms, outage: 100 ms}",
        "{at: 400 ms, rate: 5 Mbit/s, rtt: 80 ms}",
    )

    at: f.Start = Field(description="when, from the start of the measurement")
    rate: f.LinkRate | None = Field(default=None, description="the new `rate` (default: as before)")
    rtt: f.Delay | None = Field(default=None, description="the new `rtt` (default: as before)")
    outage: f.Length | None = Field(
        default=None,
        description="time for which no packet leaves in either direction; arriving packets wait in the queues",
    )

    @model_validator(mode="after")
    def _check_content(self) -> Change:
        if self.rate is None and self.rtt is None and self.outage is None:
            raise f.fault("changes nothing; give rate, rtt or outage")
        return self


class Changing(f.Closed):
    """A path whose rate and delay may change while a run lasts."""

    changes: tuple[Change, ...] = Field(
        default=(), description="new values of `rate` and `rtt`, and outages, by time (default: none)"
    )
    trace: TraceName | None = Field(
        default=None,
        description="file in the study's folder, as mahimahi's mm-link reads it: the rate towards the receivers while "
        "the run lasts, over and over; each line is the millisecond in which a packet of 1500 bytes may leave; or a "
        "file whose name ends in .csv, with columns such as `time (s)`, `rate (Mbit/s)` and optionally `rtt (ms)`",
    )
    reverse_trace: TraceName | None = Field(default=None, description="the same for the rate towards the senders")

    aggregation: HoldTime | None = Field(
        default=None,
        description="time for which packets are held before their receiver, from the first one that arrives on; then "
        "all leave together (default: none)",
    )
    reverse_aggregation: HoldTime | None = Field(
        default=None, description="the same for packets that leave the receiver, such as its acknowledgments"
    )

    @property
    def is_impaired(self) -> bool:
        """Whether the path has random losses or delays."""
        return False

    def queues(self, mtu: Size) -> tuple[tuple[KeyPath, QueueKind, Place], ...]:
        """Return the queue of each router, with its path below the topology and its place."""
        return ()

    def change_findings(self, end_us: int, *, reverse_rate: bool) -> Iterator[Finding]:
        """Yield changes out of order or in conflict, in a run that ends at ``end_us``.

        ``reverse_rate`` is whether the port of `reverse_trace` has a rate.
        """
        for key, trace in (("trace", self.trace), ("reverse_trace", self.reverse_trace)):
            if series := trace and trace.series:
                yield from self._series_findings(("topology", key), series, end_us)
        over = Duration(0)
        for index, change in enumerate(self.changes):
            at = ("topology", "changes", index)
            if index and change.at <= self.changes[index - 1].at:
                yield Finding((*at, "at"), f"{change.at} is not after the change before it; changes are in order")
            if change.at.value >= end_us:
                yield Finding((*at, "at"), f"{change.at} is not before the end of the run at {Duration(end_us)}")
            if change.at < over:
                yield Finding((*at, "at"), f"{change.at} is within the outage before it, which ends at {over}")
            if change.outage:
                over = Duration(change.at.value + change.outage.value)
            if change.rate and self.trace:
                yield Finding((*at, "rate"), "cannot be combined with trace, which gives the rate at all times")
            if change.rtt and change.rtt.value % 2 and getattr(self, "delay_placement", "split") == "split":
                yield Finding((*at, "rtt"), f"{change.rtt} cannot be split into two whole microseconds")
            if (change.rtt or change.outage) and self.is_impaired:
                key = "rtt" if change.rtt else "outage"
                yield Finding((*at, key), "cannot be combined with loss or jitter: only wires can change their delay")
        if self.reverse_trace and not reverse_rate:
            yield Finding(("topology", "reverse_trace"), "needs a port with a rate", "give a reverse_queue")

    def _series_findings(self, path: KeyPath, series: Series, end_us: int) -> Iterator[Finding]:
        if self.changes:
            yield Finding(path, "a CSV file cannot be combined with changes")
        if series.has_rtt and path[-1] == "reverse_trace":
            yield Finding(path, "has a column rtt; allowed: only in `trace`, for both directions")
        elif series.has_rtt and self.is_impaired:
            yield Finding(path, "has a column rtt, which cannot be combined with loss or jitter")
        if series.steps(end_us) > MOST_STEPS:
            yield Finding(path, f"has {series.steps(end_us)} steps in this run; allowed: at most {MOST_STEPS}")


def changed(topology: Any, change: Change) -> Any:
    """Return the topology with the new values of a change."""
    given = {"rate": change.rate, "rtt": change.rtt}
    return topology.model_copy(update={key: value for key, value in given.items() if value is not None})
