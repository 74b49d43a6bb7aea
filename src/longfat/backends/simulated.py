# SPDX-License-Identifier: Apache-2.0
"""Raw files of a simulated run: settings as declared, reports in iperf2's form, and the simulator's tables.

Shared by the backends without a kernel. A simulator uses the declared settings, so none is read back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from longfat.spec.network import base_rtt_us, buffers_bytes, lay_out
from longfat.spec.plain import canonical_json
from longfat.spec.runspec import Queue, RunSpec
from longfat.system.identity import PACKAGE, code_identity

SOURCES = (Path(__file__), PACKAGE / "spec" / "network.py")
SOCKET_COLUMNS = (
    "t_us,flow,stream,state,ca_state,cwnd_segments,ssthresh_segments,inflight_segments,srtt_us,min_rtt_us,"
    "retrans_total,lost_segments,bytes_acked,delivered_segments,dwnd_segments\n"
)
QUEUE_COLUMNS = (
    "t_us,node,interface,qdisc,backlog_packets,backlog_bytes,drops_total,sent_packets,sent_bytes,marked_total\n"
)


def pins(name: str, version: str, model: Path, translation: Path) -> dict[str, str]:
    """Return the pins of a simulator: its version as kernel, the digest of model and translation as code."""
    code = code_identity(PACKAGE, [translation, *SOURCES])
    digest = hashlib.sha256(model.read_bytes() + code.encode()).hexdigest()
    return {"backend": name, "kernel": f"ns-{version}", "image": "none", "code": digest}


def write_raw(
    spec: RunSpec,
    folder: Path,
    environment: Mapping[str, Any],
    received: Mapping[str, tuple[int, int]],
    sockets: Iterable[str],
    queues: Iterable[str],
) -> None:
    """Write the raw files of docs/data.md. ``sockets`` and ``queues`` are the rows of these tables.

    ``received`` has for each flow its bytes and the microsecond of the last byte.
    """
    files = {
        "outcome.json": canonical_json({"status": "ok", "reason": None, "end_us": spec.end_us}),
        "environment.json": canonical_json(environment),
        "achieved.json": canonical_json(achieved(spec)),
        "flows.json": json.dumps(list(flow_reports(spec, received))),
        "counters.json": canonical_json({node.name: {} for node in spec.nodes}),
        "sockets.csv": SOCKET_COLUMNS + "".join(sockets),
        "queues.csv": QUEUE_COLUMNS + "".join(queues),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def achieved(spec: RunSpec) -> dict[str, Any]:
    """Return achieved.json, as declared."""
    interfaces = []
    for port in lay_out(spec).all_ports():
        queue = port.egress.queue if port.egress.rate_bps else None
        found = {
            "node": port.node,
            "interface": port.name,
            "mtu_bytes": port.mtu_bytes,
            "rate_bps": port.egress.wire_bps,
            "queue_kind": queue.kind if queue else None,
            "limit_packets": queue.limit_packets if queue else None,
            "delay_us": port.egress.wire_delay_ns // 1000,
            "drops": 0,
            "deliberate_drops": len(port.egress.drops),
        }
        interfaces.append(found | (further(queue) if queue else {}))
    return {
        "nodes": {
            node.name: {"sysctls": dict(node.sysctls), "offloads_on": sorted(node.offloads)} for node in spec.nodes
        },
        "interfaces": interfaces,
        "flows": [
            {
                "flow": flow.name,
                "cca": flow.cca,
                "cca_parameters": {key: int(value) for key, value in spec.cca_parameters(flow).items()},
                "base_rtt_us": base_rtt_us(spec, flow),
                "send_buffer_bytes": buffers_bytes(spec, flow)[0],
            }
            for flow in spec.flows
        ],
        "receive_buffers": {flow.name: buffers_bytes(spec, flow)[1] for flow in spec.flows},
        "capture": {},
        "cpu_pressure_us": None,
        "memory_pressure": 0,
    }


def further(queue: Queue) -> dict[str, Any]:
    """Return the settings of a queue in achieved.json other than its kind and its limit in packets."""
    if queue.kind != "red":
        limit = {"limit_bytes": queue.limit_bytes} if queue.limit_bytes is not None else {}
        return limit | ({"queue_parameters": dict(queue.parameters)} if queue.parameters else {})
    asked = {
        key: queue.parameters[key] for key in ("min", "max", "probability", "ecn", "gentle") if key in queue.parameters
    }
    return {"limit_bytes": queue.limit_bytes, "queue_parameters": {**asked, "ewma": queue.red_weight_log}}


def flow_reports(spec: RunSpec, received: Mapping[str, tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Yield the entries of flows.json."""
    for flow in spec.flows:
        amount, last_us = received.get(flow.name, (0, 0))
        yield {
            "flow": flow.name,
            "sender": flow.sender,
            "receiver": flow.receiver,
            "cca": flow.cca,
            "start_us": flow.start_us,
            "end_us": flow.start_us + flow.duration_us,
            "bytes_sent": amount,
            "bytes_received": amount,
            # Like iperf2: until the end of the connection, even if the last byte arrived long before.
            "goodput_bps": round(8e6 * amount / max(last_us - flow.start_us, flow.duration_us)),
        }
