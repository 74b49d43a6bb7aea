# SPDX-License-Identifier: Apache-2.0
"""The content of a simulated run's raw files by construction: settings as declared, reports in the form of iperf2.

Shared by the backends that have no kernel. A simulator has only the settings that it was given, so nothing can
contradict them. Its measurements are written by the backends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from longfat.network import Port, base_rtt_us, buffers_bytes, impairment_seed, lay_out, steps
from longfat.runspec import Queue, RunSpec

SOURCES = (Path(__file__), Path(__file__).parents[1] / "network.py")
"""Files that the pins of a simulator cover in addition to its own code."""


def achieved(spec: RunSpec) -> dict[str, Any]:
    """achieved.json, as declared."""
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
    """What is read back from a queue beside its kind and its limit in packets."""
    if queue.kind != "red":
        limit = {"limit_bytes": queue.limit_bytes} if queue.limit_bytes is not None else {}
        return limit | ({"queue_parameters": dict(queue.parameters)} if queue.parameters else {})
    asked = {
        key: queue.parameters[key] for key in ("min", "max", "probability", "ecn", "gentle") if key in queue.parameters
    }
    return {"limit_bytes": queue.limit_bytes, "queue_parameters": {**asked, "ewma": queue.red_weight_log}}


def followed(spec: RunSpec, port: Port) -> dict[str, Any]:
    """What is read back from a policer, and a wire that has followed its steps, while nothing crossed them."""
    ways = steps(port.egress, spec.end_us)
    policed = {"policer": asdict(port.egress.policer) | {"drops": 0}} if port.egress.policer else {}
    if not ways:
        return policed
    last = {"rate_bps": ways[-1].rate_bps or None, "delay_us": ways[-1].delay_ns // 1000}
    return policed | last | {"steps": len(ways), "late_ns": 0, "offered_bits": 0, "taken_bytes": 0}


def drawn(spec: RunSpec, port: Port) -> dict[str, Any]:
    """What is read back from an impaired delay element, or a card, that nothing has passed yet."""
    if port.egress.card:
        return {"card": [{k: v for k, v in one.items() if k != "latency"} for one in port.egress.card.settings()]}
    if not port.egress.impairment:
        return {}
    return {
        "impairment": port.egress.impairment.settings() | {"seed": impairment_seed(spec, port)},
        "passed_packets": 0,
    }


def flow_reports(spec: RunSpec, received: Mapping[str, tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Entries of flows.json; ``received`` has by flow its bytes and the microsecond of the last."""
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
            # As iperf2 has it: until the connection ends, even when a starved flow's last byte came long before.
            "goodput_bps": round(8e6 * amount / max(last_us - flow.start_us, flow.duration_us)),
        }
