# SPDX-License-Identifier: Apache-2.0
"""The closed column schema of the dataset: the tables, and the content of each column.

Owns names, types and order of the columns; a unit is the last part of a name. Must not read or write files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from longfat.runspec import Scalar
from longfat.traffic import TABLES as OF_TRAFFIC
from longfat.traffic.kind import Table

FACTOR_PREFIX = "factor_"
STATUSES = ("ok", "invalid", "failed", "missing")

_RUNS = (
    ("run_id", pa.string()),
    ("experiment", pa.string()),
    ("scenario", pa.string()),
    ("repetition", pa.int64()),
    ("seed", pa.int64()),
    ("stack", pa.string()),
    ("status", pa.string()),
    ("reason", pa.string()),
    ("end_us", pa.int64()),
    ("measured_sha256", pa.string()),
    ("kernel_version", pa.string()),
    ("kernel_pinned", pa.bool_()),
    ("kernel_sha256", pa.string()),
    ("kernel_patches", pa.string()),
)

FLOWS = pa.schema(
    (
        ("run_id", pa.string()),
        ("flow", pa.string()),
        ("sender", pa.string()),
        ("receiver", pa.string()),
        ("cca", pa.string()),
        ("window_bytes", pa.int64()),
        ("streams", pa.int64()),
        ("start_us", pa.int64()),
        ("end_us", pa.int64()),
        ("bytes_received", pa.int64()),
        ("goodput_bps", pa.float64()),
        ("first_byte_us", pa.int64()),
        ("last_byte_us", pa.int64()),
        ("transfers", pa.int64()),
        ("retrans_segments", pa.int64()),
        ("min_rtt_us", pa.int64()),
    )
)

ACHIEVED = pa.schema(
    (
        ("run_id", pa.string()),
        ("node", pa.string()),
        ("interface", pa.string()),
        ("mtu_bytes", pa.int64()),
        ("rate_bps", pa.int64()),
        ("delay_us", pa.int64()),
        ("queue_kind", pa.string()),
        ("limit_packets", pa.int64()),
        ("limit_bytes", pa.int64()),
        ("drops", pa.int64()),
        ("deliberate_drops", pa.int64()),
        ("sent_bytes", pa.int64()),
        ("busy_ns", pa.int64()),
    )
)

SOCKETS = pa.schema(
    (
        ("run_id", pa.string()),
        ("t_us", pa.int64()),
        ("flow", pa.string()),
        ("stream", pa.int64()),
        ("state", pa.string()),
        ("ca_state", pa.string()),
        ("cwnd_segments", pa.int64()),
        ("ssthresh_segments", pa.int64()),
        ("inflight_segments", pa.int64()),
        ("srtt_us", pa.int64()),
        ("min_rtt_us", pa.int64()),
        ("retrans_total", pa.int64()),
        ("lost_segments", pa.int64()),
        ("bytes_acked", pa.int64()),
        ("delivered_segments", pa.int64()),
        ("dwnd_segments", pa.int64()),
        ("pacing_bps", pa.int64()),
        ("delivery_bps", pa.int64()),
        ("app_limited", pa.int64()),
        ("busy_us", pa.int64()),
        ("rwnd_limited_us", pa.int64()),
        ("sndbuf_limited_us", pa.int64()),
        ("notsent_bytes", pa.int64()),
        ("snd_wnd_bytes", pa.int64()),
        ("retrans_bytes", pa.int64()),
        ("delivered_ce_segments", pa.int64()),
        ("reordering_total", pa.int64()),
        ("app_limited_us", pa.int64()),
    )
)
OF_KERNELS = tuple(SOCKETS.names[SOCKETS.get_field_index("pacing_bps") :])
"""Columns of ``sockets`` that kernels have and simulators lack; the last is not sampled but follows from others."""

CCA_STATE = pa.schema(
    (
        ("run_id", pa.string()),
        ("t_us", pa.int64()),
        ("flow", pa.string()),
        ("stream", pa.int64()),
        ("name", pa.string()),
        ("value", pa.float64()),
    )
)

QUEUES = pa.schema(
    (
        ("run_id", pa.string()),
        ("t_us", pa.int64()),
        ("node", pa.string()),
        ("interface", pa.string()),
        ("qdisc", pa.string()),
        ("backlog_packets", pa.int64()),
        ("backlog_bytes", pa.int64()),
        ("drops_total", pa.int64()),
        ("sent_packets", pa.int64()),
        ("sent_bytes", pa.int64()),
        ("marked_total", pa.int64()),
        ("rate_bps", pa.int64()),
        ("capacity_bits", pa.int64()),
    )
)

ARRIVALS = pa.schema(
    (
        ("run_id", pa.string()),
        ("t_us", pa.int64()),
        ("node", pa.string()),
        ("packets", pa.int64()),
        ("marked_packets", pa.int64()),
    )
)

OUTSTANDING = pa.schema(
    (
        ("run_id", pa.string()),
        ("flow", pa.string()),
        ("t_us", pa.int64()),
        ("outstanding_bytes", pa.int64()),
    )
)

THROUGHPUT = pa.schema(
    (
        ("run_id", pa.string()),
        ("flow", pa.string()),
        ("t_us", pa.int64()),
        ("bytes_per_s", pa.int64()),
    )
)

COUNTERS = pa.schema(
    (
        ("run_id", pa.string()),
        ("node", pa.string()),
        ("counter", pa.string()),
        ("value", pa.int64()),
    )
)

_TYPES = {"text": pa.string(), "whole": pa.int64(), "real": pa.float64()}


def schema_of(table: Table) -> pa.Schema:
    """The columns of a table that one kind of traffic has for itself."""
    return pa.schema((("run_id", pa.string()), *((name, _TYPES[kind]) for name, kind in table.columns.items())))


SCHEMAS: Mapping[str, pa.Schema] = {
    "runs": pa.schema(_RUNS),  # and the study's factors: `runs_schema`
    "flows": FLOWS,
    "sockets": SOCKETS,
    "cca_state": CCA_STATE,
    "queues": QUEUES,
    "arrivals": ARRIVALS,
    "outstanding": OUTSTANDING,
    "throughput": THROUGHPUT,
    "counters": COUNTERS,
    "achieved": ACHIEVED,
    **{table.name: schema_of(table) for table in OF_TRAFFIC},
}
TABLES = tuple(SCHEMAS)


def runs_schema(factors: Iterable[Mapping[str, Scalar]]) -> pa.Schema:
    """Schema of ``runs``: the fixed columns, then ``factor_<name>`` by name, with a type for all values."""
    values: dict[str, list[Scalar]] = {}
    for row in factors:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    extra = [(FACTOR_PREFIX + name, _type_of(values[name])) for name in sorted(values)]
    return pa.schema((*_RUNS, *extra))


def factor_value(value: Scalar | None, kind: pa.DataType) -> Scalar | None:
    """The value as its column stores it; a text column stores the text of every value."""
    return str(value) if value is not None and kind == pa.string() else value


def _type_of(values: list[Scalar]) -> pa.DataType:
    if all(isinstance(value, bool) for value in values):
        return pa.bool_()
    if any(isinstance(value, str | bool) for value in values):
        return pa.string()
    return pa.int64() if all(isinstance(value, int) for value in values) else pa.float64()
