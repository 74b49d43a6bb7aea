# SPDX-License-Identifier: Apache-2.0
"""Changes of a path's rate and delay during a run: steps, outages, traces of mahimahi; and aggregation.

Owns their keys, their checks, and the reading of traces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, ValidationInfo, WithJsonSchema, model_validator

from longfat.spec.runspec import Trace
from longfat.spec.units import Duration, Size
from longfat.study.queues.kind import QueueKind
from longfat.study.queues.limit import Place
from longfat.study.schema import fields as f
from longfat.study.schema.closed import Closed
from longfat.study.schema.files import read_file
from longfat.study.schema.names import Finding, shown
from longfat.study.schema.names import Path as KeyPath
from longfat.study.series import MOST_STEPS, Series, series_of

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


class Change(Closed):
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


class Changing(Closed):
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
