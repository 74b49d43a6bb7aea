# SPDX-License-Identifier: Apache-2.0
"""The closed schema of the dataset: its tables, and the names, types and order of their columns.

A unit is the last part of a column's name. Reads and writes no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from longfat.spec.runspec import Scalar
from longfat.study.traffic import TABLES as OF_TRAFFIC
from longfat.study.traffic.kind import Table

FACTOR_PREFIX = "factor_"
STATUSES = ("ok", "invalid", "failed", "missing")

_TYPES = {"text": pa.string(), "whole": pa.int64(), "real": pa.float64()}
_TEXTS = {
    *("run_id", "experiment", "scenario", "stack", "status", "reason", "measured_sha256", "kernel_version"),
    *("kernel_sha256", "kernel_patches", "flow", "sender", "receiver", "cca", "node", "interface", "queue_kind"),
    *("state", "ca_state", "name", "qdisc", "counter"),
}


def _schema(*names: str, real: str = "", truth: str = "") -> pa.Schema:
    """Return a schema: the names in ``_TEXTS`` are texts, all others except ``real`` and ``truth`` whole numbers."""
    types = {**dict.fromkeys(_TEXTS, pa.string()), real: pa.float64(), truth: pa.bool_()}
    return pa.schema([(name, types.get(name, pa.int64())) for name in names])


_RUNS = _schema(
    *("run_id", "experiment", "scenario", "repetition", "seed", "stack", "status", "reason", "end_us"),
    *("measured_sha256", "kernel_version", "kernel_pinned", "kernel_sha256", "kernel_patches"),
    truth="kernel_pinned",
)
FLOWS = _schema(
    *("run_id", "flow", "sender", "receiver", "cca", "window_bytes", "streams", "start_us", "end_us"),
    *("bytes_received", "goodput_bps", "first_byte_us", "last_byte_us", "transfers", "retrans_segments", "min_rtt_us"),
    real="goodput_bps",
)
ACHIEVED = _schema(
    *("run_id", "node", "interface", "mtu_bytes", "rate_bps", "delay_us", "queue_kind", "limit_packets"),
    *("limit_bytes", "drops", "deliberate_drops", "sent_bytes", "busy_ns"),
)
SOCKETS = _schema(
    *("run_id", "t_us", "flow", "stream", "state", "ca_state", "cwnd_segments", "ssthresh_segments"),
    *("inflight_segments", "srtt_us", "min_rtt_us", "retrans_total", "lost_segments", "bytes_acked"),
    *("delivered_segments", "dwnd_segments", "pacing_bps", "delivery_bps", "app_limited", "busy_us"),
    *("rwnd_limited_us", "sndbuf_limited_us", "notsent_bytes", "snd_wnd_bytes", "retrans_bytes"),
    *("delivered_ce_segments", "reordering_total", "app_limited_us"),
)
OF_KERNELS = tuple(SOCKETS.names[SOCKETS.get_field_index("pacing_bps") :])
"""Columns of ``sockets`` that simulators lack; the last one is derived from others."""

CCA_STATE = _schema("run_id", "t_us", "flow", "stream", "name", "value", real="value")
QUEUES = _schema(
    *("run_id", "t_us", "node", "interface", "qdisc", "backlog_packets", "backlog_bytes", "drops_total"),
    *("sent_packets", "sent_bytes", "marked_total", "rate_bps", "capacity_bits"),
)
ARRIVALS = _schema("run_id", "t_us", "node", "packets", "marked_packets")
OUTSTANDING = _schema("run_id", "flow", "t_us", "outstanding_bytes")
THROUGHPUT = _schema("run_id", "flow", "t_us", "bytes_per_s")
COUNTERS = _schema("run_id", "node", "counter", "value")


def schema_of(table: Table) -> pa.Schema:
    """Return the columns of a traffic kind's own table."""
    return pa.schema((("run_id", pa.string()), *((name, _TYPES[kind]) for name, kind in table.columns.items())))


SCHEMAS: Mapping[str, pa.Schema] = {
    "runs": _RUNS,  # and the study's factors: `runs_schema`
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
    """Return the schema of ``runs``: the fixed columns, then ``factor_<name>`` by name, with a type for all values."""
    values: dict[str, list[Scalar]] = {}
    for row in factors:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    extra = [pa.field(FACTOR_PREFIX + name, _type_of(values[name])) for name in sorted(values)]
    return pa.schema([*_RUNS, *extra])


def factor_value(value: Scalar | None, kind: pa.DataType) -> Scalar | None:
    """Return the value as its column stores it; a text column stores the text of every value."""
    return str(value) if value is not None and kind == pa.string() else value


def _type_of(values: list[Scalar]) -> pa.DataType:
    if all(isinstance(value, bool) for value in values):
        return pa.bool_()
    if any(isinstance(value, str | bool) for value in values):
        return pa.string()
    return pa.int64() if all(isinstance(value, int) for value in values) else pa.float64()
