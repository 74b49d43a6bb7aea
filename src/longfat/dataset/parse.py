# SPDX-License-Identifier: Apache-2.0
"""Reader of the files of one committed run folder, as tables and plain data.

Owns the format of the run folder (docs/data.md); a readable run may still be invalid. All functions raise RecordError
with the file's name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from longfat.dataset import columns
from longfat.dataset.columns import SENTINELS
from longfat.spec.network import capacity_bits, course, ports, route
from longfat.spec.runspec import Flow, RunSpec
from longfat.study.traffic import TABLES as TRAFFIC_TABLES
from longfat.study.traffic.kind import Table
from longfat.system.errors import RecordError

# Counters of a node that metrics use: segments in and out, retransmissions, and segments out of order.
COUNTED = ("Tcp.InSegs", "Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPOFOQueue")
_NOT_SAMPLED = ("rate_bps", "capacity_bits")
_SAMPLED = pa.schema([one for one in columns.SCHEMAS["queues"] if one.name not in _NOT_SAMPLED])  # of queues.csv
TICK_US = 10_000  # tick of the kernel at the lowest HZ
CLOSED = "7"  # TCP_CLOSE: the state of a connection's last sample


@dataclass(frozen=True)
class ParsedRun:
    """One run from its folder: its tables, and the plain JSON data of its other files.

    ``told`` contains the reports of traffic kinds with their own tables, by table.
    """

    end_us: int | None
    achieved: dict[str, Any]
    reports: list[dict[str, Any]]
    told: dict[str, list[dict[str, Any]]]
    tables: dict[str, pa.Table]


def parse_run(folder: Path, run_id: str, spec: RunSpec) -> ParsedRun:
    """Read all measurements of a run. Raises RecordError if a file is missing or malformed."""
    with _reading(folder):
        return _parsed(folder, run_id, spec)


def _parsed(folder: Path, run_id: str, spec: RunSpec) -> ParsedRun:
    reports, achieved = _read_json(folder / "flows.json", list), _read_json(folder / "achieved.json", dict)
    written = [table for table in TRAFFIC_TABLES if table.written(spec)]
    told = {table.name: _read_json(folder / table.file, list) for table in written if table.file.endswith(".json")}
    sockets, queues = columns.SCHEMAS["sockets"].empty_table(), _SAMPLED.empty_table()
    if spec.probes.socket_interval_us or (folder / "sockets.csv").exists():
        sockets = _sockets(folder / "sockets.csv", run_id)
    if spec.probes.queue_interval_us:
        queues = _read_csv(folder / "queues.csv", _SAMPLED, run_id)
    tables = {
        "flows": _flows(folder / "flows.json", reports, run_id, spec, sockets),
        "sockets": sockets,
        "queues": _with_rates(queues, spec),
        "outstanding": _captured(folder / "outstanding", columns.SCHEMAS["outstanding"], run_id, spec),
        "throughput": _captured(folder / "throughput", columns.SCHEMAS["throughput"], run_id, spec),
        "counters": _counters(folder / "counters.json", run_id),
        "achieved": _interfaces(folder / "achieved.json", achieved, run_id),
        **{table.name: _observed(table, folder, told, run_id, spec) for table in written},
    }
    if (folder / "cca_state.csv").exists():  # simulators have none
        tables["cca_state"] = _read_csv(folder / "cca_state.csv", columns.SCHEMAS["cca_state"], run_id)
    if spec.marks and spec.probes.queue_interval_us:
        tables["arrivals"] = _read_csv(folder / "arrivals.csv", columns.SCHEMAS["arrivals"], run_id)
    return ParsedRun(_end_us(folder / "outcome.json"), achieved, reports, told, tables)


def _flows(path: Path, reports: list[dict[str, Any]], run_id: str, spec: RunSpec, sockets: pa.Table) -> pa.Table:
    declared = {flow.name: flow for flow in spec.flows}
    rows = []
    with _reading(path):
        for report in sorted(reports, key=lambda item: str(item["flow"])):
            name = report["flow"]
            row = {key: report.get(key) for key in columns.SCHEMAS["flows"].names}
            row |= {"run_id": run_id, "goodput_bps": float(report["goodput_bps"])}
            row |= {"window_bytes": declared[name].window_bytes, "streams": declared[name].streams}
            row |= receiving_time(report, row, spec, declared[name], sockets)
            rows.append(row | _socket_facts(sockets, name))
        names = [str(report["flow"]) for report in reports]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"reported twice: {', '.join(twice)}")
        return pa.Table.from_pylist(rows, schema=columns.SCHEMAS["flows"])


def receiving_time(
    report: Mapping[str, Any], row: Mapping[str, Any], spec: RunSpec, flow: Flow, sockets: pa.Table
) -> dict[str, int]:
    """Return the times of a flow's first and last byte at its receiver; a flow of transfers begins at its start.

    A connection begins at the receiver one and a half round trips after the flow's start. After a lost SYN it begins
    later: this time follows from its end and its duration at the sender, to a tick.
    """
    took_us = 8e6 * row["bytes_received"] / row["goodput_bps"] if row["goodput_bps"] else 0.0
    chosen = pc.and_(pc.equal(sockets["flow"], flow.name), pc.equal(sockets["state"], CLOSED))
    closed_us, sending_us = pc.max(sockets.filter(chosen)["t_us"]).as_py(), report.get("sending_us")
    first_us = row["start_us"]
    if flow.transfer_bytes is None and closed_us is not None and sending_us is not None:
        there_us = _way_us(spec, flow.sender, flow.receiver)
        first_us += 2 * there_us + _way_us(spec, flow.receiver, flow.sender)
        seen_us = closed_us - sending_us + there_us
        first_us = seen_us if seen_us > first_us + TICK_US else first_us
    return {"first_byte_us": round(first_us), "last_byte_us": round(first_us + took_us)}


def _way_us(spec: RunSpec, start: str, end: str) -> float:
    return sum(course(port.egress, spec.end_us)[0].delay_ns for port in route(spec, start, end)) / 1000


def _interfaces(path: Path, achieved: Mapping[str, Any], run_id: str) -> pa.Table:
    """Return the settings of each interface as read back; null if the backend's kernel does not show them."""
    with _reading(path):
        rows = [{**found, "run_id": run_id} for found in achieved["interfaces"]]
        return pa.Table.from_pylist(rows, schema=columns.SCHEMAS["achieved"])


def _sockets(path: Path, run_id: str) -> pa.Table:
    """Return the samples of sockets; a simulator's samples are null in the columns that only kernels have."""
    derived = columns.OF_KERNELS[-1]
    sampled = pa.schema([field for field in columns.SCHEMAS["sockets"] if field.name != derived])
    if "pacing_bps" in _header(path):
        table = _read_csv(path, sampled, run_id)
        return table.append_column(columns.SCHEMAS["sockets"].field(derived), _app_limited_us(table))
    table = _read_csv(path, pa.schema([one for one in sampled if one.name not in columns.OF_KERNELS]), run_id)
    for name in columns.OF_KERNELS:
        table = table.append_column(columns.SCHEMAS["sockets"].field(name), pa.nulls(table.num_rows, pa.int64()))
    return table


def _app_limited_us(sockets: pa.Table) -> pa.Array:
    """Return each connection's idle time since its first sample, without data to send or unacknowledged data."""
    first: dict[tuple[str, int], int] = {}
    rows = zip(*(sockets[name].to_pylist() for name in ("flow", "stream", "t_us", "busy_us")), strict=True)
    idle = [
        max(0, t_us - busy_us - first.setdefault((flow, stream), t_us - busy_us))
        for flow, stream, t_us, busy_us in rows
    ]
    return pa.array(idle, pa.int64())


def _header(path: Path) -> list[str]:
    with _reading(path), path.open(encoding="utf-8") as file:
        return file.readline().rstrip("\n").split(",")


def _socket_facts(sockets: pa.Table, flow: str) -> dict[str, int | None]:
    """Return a flow's retransmitted segments and its smallest RTT; None without samples."""
    own = sockets.filter(pc.equal(sockets["flow"], flow))
    if not own.num_rows:
        return {"retrans_segments": None, "min_rtt_us": None}
    last = own.group_by("stream").aggregate([("retrans_total", "max")])
    # Before the first RTT sample the kernel reports its largest number, and simulators report 0.
    rtts = own["min_rtt_us"]
    known = rtts.filter(pc.and_(pc.greater(rtts, 0), pc.less(rtts, SENTINELS["min_rtt_us"])))
    return {
        "retrans_segments": pc.sum(last["retrans_total_max"]).as_py(),
        "min_rtt_us": pc.min(known).as_py(),
    }


def _observed(
    table: Table, folder: Path, told: Mapping[str, list[dict[str, Any]]], run_id: str, spec: RunSpec
) -> pa.Table:
    """Return the rows of a traffic kind's table; reports give one row each, sorted by name."""
    schema = columns.schema_of(table)
    if table.rows:
        with _reading(folder / table.file):
            found = [{"run_id": run_id, **row} for row in table.rows(folder, spec)]
            return pa.Table.from_pylist(found, schema=schema)
    if table.name not in told:
        return _read_csv(folder / table.file, schema, run_id)
    name = next(iter(table.columns))
    with _reading(folder / table.file):
        rows = [
            {key: row.get(key) for key in table.columns} | {"run_id": run_id}
            for row in map(table.row, sorted(told[table.name], key=lambda report: str(report[name])))
        ]
        return pa.Table.from_pylist(rows, schema=schema)


def _end_us(path: Path) -> int | None:
    """Return the end of the run, in microseconds since its start; None if it is not recorded."""
    found = _read_json(path, dict).get("end_us")
    if found is not None and not (type(found) is int and 0 <= found < 1 << 53):
        raise RecordError(f"end_us is {found!r}, not a time in microseconds", where=str(path))
    return found


def _counters(path: Path, run_id: str) -> pa.Table:
    """Return the counters that metrics use, of every node in which they changed."""
    with _reading(path):
        rows = [
            {"run_id": run_id, "node": node, "counter": name, "value": value}
            for node, changed in sorted(_read_json(path, dict).items())
            for name, value in sorted(changed.items())
            if name in COUNTED
        ]
        return pa.Table.from_pylist(rows, schema=columns.SCHEMAS["counters"])


def _with_rates(queues: pa.Table, spec: RunSpec) -> pa.Table:
    """Add each interface's declared rate and capacity so far to the samples of queues; null without a rate."""
    shaped = {port.name: port.egress for port in ports(spec) if port.egress.rate_bps}
    courses = {name: course(egress, spec.end_us) for name, egress in shaped.items()}
    names, times = queues["interface"].to_pylist(), queues["t_us"].to_pylist()
    rates = [shaped[name].wire_bps if name in shaped else None for name in names]
    capacities = [
        capacity_bits(courses[name], t_us) if name in shaped else None for name, t_us in zip(names, times, strict=True)
    ]
    queues = queues.append_column(columns.SCHEMAS["queues"].field("rate_bps"), pa.array(rates, pa.int64()))
    return queues.append_column(columns.SCHEMAS["queues"].field("capacity_bits"), pa.array(capacities, pa.int64()))


def _captured(folder: Path, schema: pa.Schema, run_id: str, spec: RunSpec) -> pa.Table:
    """Return the series of all flows that are captured at their sender, one file each."""
    parts = []
    for flow in sorted(flow.name for flow in spec.traced):
        table = _read_csv(folder / f"{flow}.csv", schema, run_id, flow)
        parts.append(table.sort_by("t_us"))
    return join(schema, parts)


def join(schema: pa.Schema, parts: Iterable[pa.Table]) -> pa.Table:
    """Join all parts into one table with contiguous columns, so that equal rows give equal bytes."""
    return pa.concat_tables([schema.empty_table(), *parts]).combine_chunks()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise RecordError with the file if the code inside cannot read it."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        text = str(error) if isinstance(error, OSError | ValueError) else repr(error)
        raise RecordError(f"the file cannot be read: {text}", where=str(path)) from error


def _read_json(path: Path, kind: type) -> Any:
    with _reading(path):
        data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, kind):
        raise RecordError(f"the file contains {type(data).__name__}, not {kind.__name__}", where=str(path))
    return data


def _read_csv(path: Path, schema: pa.Schema, run_id: str, flow: str | None = None) -> pa.Table:
    """Read the columns of ``schema`` except those given by the caller: run_id, and flow if not None."""
    given = {"run_id": run_id} | ({} if flow is None else {"flow": flow})
    expected = [name for name in schema.names if name not in given]
    options = pyarrow.csv.ConvertOptions(
        column_types={name: schema.field(name).type for name in expected}, strings_can_be_null=False
    )
    # One thread: several threads may divide the rows into different blocks.
    reading = pyarrow.csv.ReadOptions(use_threads=False)
    with _reading(path):
        table = pyarrow.csv.read_csv(path, read_options=reading, convert_options=options)
    if table.column_names != expected:
        raise RecordError(f"the columns are {','.join(table.column_names)}, not {','.join(expected)}", where=str(path))
    for name, value in given.items():
        table = table.append_column(name, pa.repeat(pa.scalar(value), table.num_rows))
    return table.select(schema.names).cast(schema)
