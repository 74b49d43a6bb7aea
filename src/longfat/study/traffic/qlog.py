# SPDX-License-Identifier: Apache-2.0
"""Reader of the qlog files that programs keep: congestion control of a QUIC sender over time.

Owns the subset of draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events that becomes rows. A file comes
from a program, so every value is checked; a faulty file makes its run invalid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from longfat.spec.runspec import Program, RunSpec
from longfat.study.traffic.kind import Column, Table

SUFFIXES = (".qlog", ".sqlog")
MOST_EVENTS = 200_000
LARGEST = 2**53  # whole numbers up to it are exact in JSON
STATE_CHARS = 40
RECORD_SEPARATOR = b"\x1e"  # of JSON text sequences (RFC 7464)
METRICS: Mapping[str, tuple[str, float]] = {  # member of metrics_updated: column, factor
    "congestion_window": ("cwnd_bytes", 1),
    "bytes_in_flight": ("inflight_bytes", 1),
    "smoothed_rtt": ("srtt_us", 1000),
    "min_rtt": ("min_rtt_us", 1000),
    "pacing_rate": ("pacing_bps", 1),
    "bandwidth": ("bandwidth_bps", 1),
    "pacing_gain": ("pacing_gain", 1),
    "cwnd_gain": ("cwnd_gain", 1),
}
REALS = ("pacing_gain", "cwnd_gain")
COLUMNS = {
    "t_us": Column("whole"),
    "programs": Column("text", "name of the programs in the study"),
    "state": Column("text", "state of the congestion control by its own name"),
    "cwnd_bytes": Column("whole", "congestion window"),
    "inflight_bytes": Column("whole", "bytes in flight"),
    "srtt_us": Column("whole", "smoothed round-trip time"),
    "min_rtt_us": Column("whole", "smallest round-trip time"),
    "pacing_bps": Column("whole", "pacing rate"),
    "bandwidth_bps": Column("whole", "estimated bandwidth, a member that qlog does not define"),
    "pacing_gain": Column("real", "pacing gain, a member that qlog does not define"),
    "cwnd_gain": Column("real", "gain of the congestion window, a member that qlog does not define"),
    "lost_packets": Column("whole", "packets declared lost so far"),
}


def is_qlog(name: str) -> bool:
    """Return whether a file is a qlog, by its name."""
    return name.endswith(SUFFIXES)


def read_qlogs(folder: Path, spec: RunSpec) -> Iterator[dict[str, Any]]:
    """Yield the rows of all qlog files of a run, each a sample at the time of one or more events.

    A missing file yields none: a gate reports it. Raises ValueError for a faulty one.
    """
    for one in spec.programs:
        for name in filter(is_qlog, one.keep):
            path = folder / "programs" / one.name / name
            if not path.exists():
                continue
            try:
                yield from ({"programs": one.name, **row} for row in _rows(path, one.start_us, spec.end_us))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{one.name}/{name}: {error}") from error


def _rows(path: Path, start_us: int, end_us: int) -> Iterator[dict[str, Any]]:
    """Yield one row for each time, with the last known values."""
    row: dict[str, Any] = {**dict.fromkeys(COLUMNS), "lost_packets": 0}
    del row["programs"]
    for t_us, name, data in _events(path, start_us):
        if not start_us <= t_us <= end_us:
            allowed = f"{start_us / 1e6:g} to {end_us / 1e6:g} s"
            raise ValueError(f"an event is at {t_us / 1e6:g} s of the run, allowed {allowed}")
        if row["t_us"] is not None and t_us != row["t_us"]:
            if t_us < row["t_us"]:
                raise ValueError(f"an event at {t_us / 1e6:g} s follows one at {row['t_us'] / 1e6:g} s")
            yield dict(row)
        row["t_us"] = t_us
        if name == "packet_lost":
            row["lost_packets"] += 1
        elif name == "congestion_state_updated":
            row["state"] = _state(data.get("new"))
        else:
            for key, (column, factor) in METRICS.items():
                if key in data:
                    value = factor * _number(key, data[key])
                    row[column] = float(value) if column in REALS else round(value)
    if row["t_us"] is not None:
        yield row


def _events(path: Path, start_us: int) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Yield time, name without prefixes, and data of each event that becomes a part of a row."""
    form, first, last = "relative", None, 0.0
    for count, item in enumerate(_items(path)):
        if count > MOST_EVENTS:
            raise ValueError(f"more than {MOST_EVENTS} events")
        if "name" not in item:
            form = _form(item, form)
            continue
        given = _number("time", item.get("time"))
        first = given if first is None else first
        last = last + given if form == "delta" else given
        name = str(item["name"]).rpartition(":")[2].removeprefix("recovery_")
        if name in ("metrics_updated", "congestion_state_updated", "packet_lost"):
            data = item.get("data", {})
            if not isinstance(data, dict):
                raise ValueError(f"the data of an event {name} are not an object")
            yield start_us + round(1000 * (last - first if form == "absolute" else last)), name, data


def _form(header: Mapping[str, Any], form: str) -> str:
    """Return the format of times in a header or trace: ``relative``, ``delta`` or ``absolute``."""
    for part in (header, header.get("trace")):
        common = part.get("common_fields") if isinstance(part, dict) else None
        if isinstance(common, dict) and "time_format" in common:
            form = str(common["time_format"])
    known = {"relative_to_epoch": "relative", "relative_to_previous_event": "delta"}
    if (form := known.get(form, form)) not in ("relative", "delta", "absolute"):
        allowed = ", ".join(("relative", "delta", "absolute", *known))
        raise ValueError(f"unknown time_format {form[:STATE_CHARS]!r}; allowed: {allowed}")
    return form


def _items(path: Path) -> Iterator[dict[str, Any]]:
    """Yield headers, traces and events of a file: a JSON text sequence, JSON lines, or one object with traces.

    An unfinished last line, as a terminated program leaves it, is dropped.
    """
    if path.stat().st_size > Program.most_kept_bytes:
        raise ValueError(f"more than {Program.most_kept_bytes >> 20} MiB")
    content = path.read_bytes()
    lines = content.split(b"\n")
    try:
        head = _object(lines[0])
    except json.JSONDecodeError:  # an object over several lines
        lines, head = [b""], _object(content)
    yield head
    traces = head.get("traces", [])
    if not isinstance(traces, list):
        raise ValueError("traces are not a list")
    for trace in map(_checked, traces):
        yield {key: value for key, value in trace.items() if key == "common_fields"}
        events = trace.get("events")
        if not isinstance(events, list):
            raise ValueError("a trace has no list of events")
        yield from map(_checked, events)
    for line in filter(None, lines[1:-1]):
        yield _object(line)


def _object(text: bytes) -> dict[str, Any]:
    return _checked(json.loads(text.removeprefix(RECORD_SEPARATOR), parse_constant=_refuse))


def _checked(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{str(value)[:STATE_CHARS]!r} is not an object")
    return value


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not a number of JSON")


def _number(key: str, value: object) -> float:
    """Return a number that is not negative."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise ValueError(f"{key} is {str(value)[:STATE_CHARS]!r}, allowed: a number from 0 to 2^53")
    return value


def _state(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > STATE_CHARS:
        raise ValueError(f"new is {str(value)[:STATE_CHARS]!r}, allowed: a name of at most {STATE_CHARS} characters")
    return value


TABLE = Table(
    "qlog",
    "programs",
    COLUMNS,
    written=lambda spec: any(is_qlog(name) for one in spec.programs for name in one.keep),
    what="Samples of congestion control from the qlog files that programs keep, with the last known values.",
    rows=read_qlogs,
)
