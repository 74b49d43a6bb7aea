# SPDX-License-Identifier: Apache-2.0
"""What the columns of the dataset mean: a sentence, a unit, and the values that stand for "none".

Owns these words, and docs/data.md, which it writes: ``python -m longfat.dataset.describe``. Must not read a dataset.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from longfat.dataset.columns import FACTOR_PREFIX, SCHEMAS

TABLES: Mapping[str, str] = {
    "runs": "One row for each entry of the lock, whatever became of it, with its factors.",
    "flows": "One row for each TCP flow of a run: what it was told to do, and what it achieved.",
    "sockets": "Samples of every sending socket: congestion window, threshold, round-trip time, retransmissions.",
    "queues": "Samples of the queue in front of every shaped interface; counters count from the start of the run.",
    "arrivals": "Samples of what has reached each receiver, for runs in which a queue marks packets.",
    "outstanding": "Data in flight by the packet capture (tcptrace), for captured flows.",
    "throughput": "Rate by the packet capture (tcptrace): averages of 500 data packets, for captured flows.",
    "counters": "The kernel's counters that metrics read, as differences over the run.",
    "achieved": "One row for each interface: its settings as read back from the kernel.",
    "web": "One row for each group of web users.",
    "requests": "One row for each group of users that request data over one connection each time.",
    "responses": "One row for each complete response to such a request.",
    "short_flows": "One row for each entry of short flows.",
    "completions": "One row for each short flow that ended in the run.",
    "video": "One row for each viewer of a video.",
    "video_segments": "One row for each complete segment of a video.",
    "incast": "One row for each receiver of an incast.",
    "incast_rounds": "One row for each request that all senders of an incast answered.",
    "programs": "One row for each pair of programs of the study's own, with what was counted on the wire.",
    "program_packets": "Samples of what has come to the receiver's interface from each program.",
    "datagrams": "Samples of what has reached the receiver of each UDP stream.",
    "pings": "One row for each answered ping.",
}

SENTINELS: Mapping[str, int] = {"ssthresh_segments": 0x7FFFFFFF, "min_rtt_us": 0xFFFFFFFF, "srtt_us": 0}
"""What the kernel writes where there is no value yet (tcp_input.c, tcp_minisocks.c of Linux): null in a frame."""

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
    "flow": "name of the flow in the study",
    "sender": "host that sends",
    "receiver": "host that receives",
    "cca": "congestion control by its name in the kernel",
    "window_bytes": "socket buffer that was requested; null where the kernel decides",
    "streams": "parallel connections of the flow",
    "start_us": "start, counted from the start of the measurement",
    "bytes_received": "amount that the receiver had received in the flow's time",
    "goodput_bps": "goodput as the receiving end reports it, over all streams",
    "transfers": "complete transfers; null where the flow is a single one",
    "retrans_segments": "segments sent again",
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
    "deliberate_drops": "packets dropped because the study asks for it",
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
    "lost_segments": "segments that the sender takes for lost at this moment",
    "bytes_acked": "amount acknowledged so far",
    "delivered_segments": "segments delivered so far",
    "dwnd_segments": "delay window of Compound TCP; null for other algorithms",
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
    "web": "name of the web traffic in the study",
    "requests": "name of the requests in the study",
    "model": "model of the users",
    "users": "number of users",
    "replies": "complete replies",
    "responses": "complete responses",
    "errors": "failed requests",
    "unfinished": "requests without a complete answer at the end",
    "mean_reply_us": "mean time from a request to its reply's last byte",
    "mean_response_us": "mean time from the start of a connection to the response's last byte",
    "user": "number of the user",
    "response_bytes": "size of the response",
    "response_us": "time from the start of the connection to the response's last byte",
    "short_flows": "name of the short flows in the study",
    "completed": "flows that ended in the run",
    "size_bytes": "size of the flow or segment",
    "completion_us": "time until the last byte, from the start of the connection or from the request",
    "ideal_us": "least time that the path allows: two round trips, and all frames at the rate of the slowest link",
    "video": "name of the video in the study",
    "segments": "complete segments of video",
    "mean_bps": "mean rate of the segments",
    "switches": "changes of the rate",
    "stalled_us": "time in which the picture stood still for want of a segment",
    "startup_us": "time until the first segment was complete",
    "bitrate_bps": "rate of the segment",
    "taken_us": "time from the segment's request to its last byte",
    "buffer_us": "video in the viewer's buffer after it",
    "incast": "name of the incast in the study",
    "senders": "how many answer at once",
    "rounds": "requests that all senders have answered",
    "mean_completion_us": "mean time from a request to the last byte of the slowest sender",
    "block_bytes": "what each sender answers",
    "fastest_us": "time from the request until the first sender's block was complete",
    "programs": "name of the program in the study",
    "payload_bytes": "bytes that UDP or TCP carried so far",
    "uncounted_packets": "packets that came and were not counted; a valid run has none",
    "udp": "name of the UDP stream in the study",
    "received_packets": "packets received so far",
    "received_bytes": "bytes received so far, IPv4 headers included",
    "rtt_us": "round-trip time",
}
_OF_TABLE = {
    ("queues", "rate_bps"): "rate of the interface by the study",
    ("responses", "t_us"): "time of the request",
    ("pings", "t_us"): "time of the request",
    ("throughput", "t_us"): "time of the last of the packets averaged",
}


def meaning(table: str, column: str) -> str:
    """What a column means, in a few words."""
    if column.startswith(FACTOR_PREFIX):
        return f"factor `{column.removeprefix(FACTOR_PREFIX)}` of the study; null where the experiment does not have it"
    return _OF_TABLE.get((table, column)) or _MEANINGS[column]


def unit(column: str) -> str:
    """The unit of a column; "" where it has none, or where only the study knows it, as that of a factor."""
    if column.startswith(FACTOR_PREFIX):
        return ""
    return _COUNTS.get(column) or next((name for end, name in _UNITS.items() if column.endswith(f"_{end}")), "")


def values(column: str) -> tuple[str, ...]:
    """The names that a frame has in place of the kernel's numbers; () for other columns."""
    return tuple(STATES.get(column, {}).values())


def type_name(kind: pa.DataType) -> str:
    """The type in the words of Frictionless Table Schema."""
    names = {pa.string(): "string", pa.int64(): "integer", pa.float64(): "number", pa.bool_(): "boolean"}
    return names[kind]


def reference() -> str:
    """The page docs/data.md after its hand-written head."""
    lines = []
    for table, schema in SCHEMAS.items():
        lines += [f"### `{table}`", "", TABLES[table], "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        for field in schema:
            name = field.name
            lines.append(f"| `{name}` | {type_name(field.type)} | {unit(name)} | {_told(table, name)} |")
        if table == "runs":
            lines.append("| `factor_*` | by its values | of the study | a column for each factor of the study |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _told(table: str, column: str) -> str:
    names = values(column)
    return f"{meaning(table, column)}: {', '.join(names)}" if names else meaning(table, column)


MARK = "<!-- Generated: python -m longfat.dataset.describe -->\n"


def with_reference(page: str) -> str:
    """The page with its generated part as it is now."""
    return page.split(MARK)[0] + MARK + "\n" + reference()


if __name__ == "__main__":
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/data.md")
    path.write_text(with_reference(path.read_text(encoding="utf-8")), encoding="utf-8")
