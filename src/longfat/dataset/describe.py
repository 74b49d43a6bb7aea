# SPDX-License-Identifier: Apache-2.0
"""The meaning of the dataset's columns: a phrase, a unit, and the values that mean "none".

Owns these words, which ``datapackage.json`` contains. Reads no dataset.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from longfat.dataset.columns import FACTOR_PREFIX
from longfat.study.traffic import TABLES as OF_TRAFFIC

TABLES: Mapping[str, str] = {
    "runs": "One row for each entry of the lock, whatever its outcome, with its factors.",
    "flows": "One row for each TCP flow of a run: its settings and its results.",
    "sockets": "Samples of every sending socket: congestion window, threshold, round-trip time, retransmissions.",
    "cca_state": "Samples of what the congestion control of a sending socket exports, one row for each number.",
    "queues": "Samples of the queue in front of every shaped interface; counters count from the start of the run.",
    "arrivals": "Samples of the packets received by each host, for runs in which a queue marks packets.",
    "outstanding": "Data in flight by the packet capture (tcptrace), of flows captured at their sender.",
    "throughput": "Rate by the packet capture (tcptrace): averages of 500 packets, of flows captured at their sender.",
    "counters": "Kernel counters that metrics use, as differences over the run.",
    "achieved": "One row for each interface: its settings as read back from the kernel.",
    **{table.name: table.what for table in OF_TRAFFIC},
}

SENTINELS: Mapping[str, int] = {"ssthresh_segments": 0x7FFFFFFF, "min_rtt_us": 0xFFFFFFFF, "srtt_us": 0}
"""Numbers that the kernel writes before there is a value (tcp_input.c, tcp_minisocks.c): null in a frame."""

STATES: Mapping[str, Mapping[str, str]] = {
    "state": {
        "1": "established",
        "2": "syn-sent",
        "3": "syn-recv",
        "4": "fin-wait-1",
        "5": "fin-wait-2",
        "6": "time-wait",
        "7": "close",
        "8": "close-wait",
        "9": "last-ack",
        "10": "listen",
        "11": "closing",
        "12": "new-syn-recv",
    },
    "ca_state": {"0": "open", "1": "disorder", "2": "cwr", "3": "recovery", "4": "loss"},
}
"""Names of the kernel's numbers (include/net/tcp_states.h, enum tcp_ca_state in include/uapi/linux/tcp.h)."""

_UNITS = {
    "us": "microseconds",
    "ns": "nanoseconds",
    "bytes": "bytes",
    "bps": "bit/s",
    "segments": "segments",
    "packets": "packets",
    "per_s": "bytes/s",
    "bits": "bits",
}
_COUNTS = {
    **dict.fromkeys(("drops", "deliberate_drops", "drops_total", "marked_total", "packets"), "packets"),
    "retrans_total": "segments",
    **dict.fromkeys(("bytes_received", "bytes_acked"), "bytes"),
}

_MEANINGS = {
    "run_id": "identity of the run: SHA-256 of everything that can change its outcome",
    "experiment": "experiment of the study",
    "scenario": "point of the experiment's sweep, as text",
    "repetition": "number of the repetition, from 1",
    "seed": "seed of the run",
    "stack": "stack profile: the settings that make the kernel resemble one of an era",
    "status": "ok, invalid (a setting was not achieved), failed or missing",
    "reason": "why the run is not ok",
    "end_us": "end, counted from the start of the measurement",
    "measured_sha256": "digest of all that was measured; runs with equal digests are one observation",
    "kernel_version": "release that the kernel was built from",
    "kernel_pinned": "whether this is the release of the references",
    "kernel_sha256": "digest of the kernel's source, patches and configuration",
    "kernel_patches": "patches of the kernel in their order, then files of the study's own; digests in lock.json",
    "flow": "name of the flow in the study",
    "sender": "host that sends",
    "receiver": "host that receives",
    "cca": "congestion control by its name in the kernel",
    "window_bytes": "socket buffer that was requested; null where the kernel decides",
    "streams": "parallel connections of the flow",
    "start_us": "start, counted from the start of the measurement",
    "bytes_received": "amount that the receiver had received by `last_byte_us`",
    "goodput_bps": "goodput as the receiving end reports it, over all streams",
    "first_byte_us": "start of the receiving time, over which goodput is a mean",
    "last_byte_us": "end of the receiving time: arrival of the last byte, by its acknowledgment less the delay of the "
    "reverse path; socket buffers may hold bytes after `end_us`. For transfers it ends with the flow",
    "transfers": "complete transfers; null where the flow is a single one",
    "retrans_segments": "retransmitted segments",
    "min_rtt_us": "smallest round-trip time that the kernel has seen",
    "node": "host or router",
    "interface": "network interface",
    "mtu_bytes": "maximum transmission unit",
    "rate_bps": "rate of the interface",
    "delay_us": "delay that the interface adds",
    "queue_kind": "kind of the queue",
    "limit_packets": "length of the queue in packets",
    "limit_bytes": "length of the queue in bytes",
    "drops": "packets that the queue dropped",
    "deliberate_drops": "packets dropped deliberately, by the study",
    "sent_bytes": "amount sent, framing included",
    "busy_ns": "time in which the wire had a frame to send",
    "t_us": "time since the start of the measurement",
    "stream": "number of the connection in its flow, from 0",
    "state": "state of the connection (RFC 9293)",
    "ca_state": "state of loss recovery in the sender",
    "cwnd_segments": "congestion window",
    "ssthresh_segments": "slow-start threshold; null before the first cut",
    "inflight_segments": "segments sent and neither acknowledged nor given up",
    "srtt_us": "smoothed round-trip time; null before the first measurement",
    "retrans_total": "retransmissions so far",
    "lost_segments": "segments that the sender considers lost at this moment",
    "bytes_acked": "amount acknowledged so far",
    "delivered_segments": "segments delivered so far",
    "dwnd_segments": "delay window of Compound TCP; null for other algorithms",
    "capacity_bits": "amount that the wire could have sent so far, by its rate over time",
    "pacing_bps": "pacing rate, in force where the congestion control or the queue fq paces; null if unlimited",
    "delivery_bps": "latest sample of the delivery rate",
    "app_limited": "1 where the application limited this sample of the delivery rate",
    "busy_us": "time with data to send or to be acknowledged, so far",
    "rwnd_limited_us": "part of it in which the receiver's window was the limit",
    "sndbuf_limited_us": "part of it in which the send buffer was the limit",
    "app_limited_us": "time since the connection's first sample in which the application had given nothing to send",
    "notsent_bytes": "data in the send buffer that was never sent",
    "snd_wnd_bytes": "window that the receiver offers",
    "retrans_bytes": "bytes retransmitted so far",
    "delivered_ce_segments": "segments delivered so far whose acknowledgments reported a mark",
    "reordering_total": "reordering events so far",
    "name": "name of the number",
    "qdisc": "kind of the queue in the kernel",
    "backlog_packets": "length of the queue",
    "backlog_bytes": "length of the queue",
    "drops_total": "packets dropped so far",
    "sent_packets": "packets sent so far",
    "marked_total": "packets marked by ECN so far",
    "packets": "packets received so far",
    "marked_packets": "packets received so far that are marked CE (RFC 3168)",
    "outstanding_bytes": "data sent and not acknowledged",
    "bytes_per_s": "rate of the sent data",
    "counter": "name of the counter, as in /proc/net/snmp and /proc/net/netstat",
    "value": "difference over the run",
}
_OF_TABLE = {
    ("cca_state", "value"): "value in the unit at the end of its name",
    ("queues", "rate_bps"): "rate of the interface by the study, before any change",
    ("throughput", "t_us"): "time of the last of the packets averaged",
    **{(table.name, column): text for table in OF_TRAFFIC for column, text in table.meanings.items()},
}


def meaning(table: str, column: str) -> str:
    """Return the meaning of a column."""
    if column.startswith(FACTOR_PREFIX):
        return f"factor `{column.removeprefix(FACTOR_PREFIX)}` of the study; null where the experiment does not have it"
    return _OF_TABLE.get((table, column)) or _MEANINGS.get(column, column)


def unit(column: str) -> str:
    """Return the unit of a column; "" if it has none, or, for a factor, if only the study defines it."""
    if column.startswith(FACTOR_PREFIX):
        return ""
    return _COUNTS.get(column) or next((name for end, name in _UNITS.items() if column.endswith(f"_{end}")), "")


def type_name(kind: pa.DataType) -> str:
    """Return the name of a type in Frictionless Table Schema."""
    names = {pa.string(): "string", pa.int64(): "integer", pa.float64(): "number", pa.bool_(): "boolean"}
    return names[kind]
