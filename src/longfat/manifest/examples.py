# SPDX-License-Identifier: Apache-2.0
"""Examples of the manifest reference: paths, queues and traffic as they are written, by the titles of their tables.

Owns their texts alone. A test runs each of them (tests/virtual/test_reference_examples_run.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from longfat.traffic import SECTIONS

TOPOLOGIES: Mapping[str, tuple[str, ...]] = {
    "direct": (
        "{kind: direct, rate: 100 Mbit/s, rtt: 2 ms}",
        "{kind: direct, rate: 20 Mbit/s, rtt: 40 ms, trace: cell.trace, reverse_trace: cell.trace}",
    ),
    "delay": (
        "{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, delay_placement: forward, loss: 0.1 %, jitter: 2 ms}",
        "{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, reverse_loss: 1 %, reverse_jitter: 2 ms, jitter_order: kept}",
        "{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, overtaking: 1 %, reverse_overtaking: 1 %}",
    ),
    "dumbbell": (
        "{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 2, bottleneck_queue: {limit: 30 ms}}",
        "{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 2, receivers: 2, further_delays: [0 ms, 100 ms]}",
        "{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, reverse_queue: {limit: 20}, reverse_rate: 1 Mbit/s}",
        "{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, policer: {rate: 10 Mbit/s, burst: 30 kB}}",
        "{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, trace: cell.trace}",
    ),
    "parking_lot": ("{kind: parking_lot, bottlenecks: 3, rate: 20 Mbit/s, rtt: 60 ms, host_rate: 1 Gbit/s}",),
    "graph": (
        "{kind: graph, senders: [client1], receivers: [server], routers: [mast], links: "
        "[{between: [client1, mast], rate: 1 Gbit/s}, {between: [mast, server], rate: 20 Mbit/s, rtt: 30 ms}]}",
    ),
}
LINKS = (
    "{between: [mast, server], rate: 20 Mbit/s, reverse_rate: 2 Mbit/s, rtt: 30 ms, queue: {kind: codel}}",
    "{between: [mast, server], rate: 20 Mbit/s, rtt: 30 ms, loss: 0.1 %}",
)
CHANGES = "[{at: 200 ms, outage: 100 ms}, {at: 400 ms, rate: 5 Mbit/s, rtt: 80 ms}]"
BURSTS = "{enter: 0.1 %, leave: 20 %, in_burst: 80 %}"
QUEUES: Mapping[str, str] = {
    "pfifo": "{limit: 1.5 bdp}",
    "bfifo": "{kind: bfifo, limit: 150 kB}",
    "red": "{kind: red, limit: 100, min: 10, max: 30, probability: 10 %, ecn: false}",
    "codel": "{kind: codel, limit: 1000, target: 5 ms, interval: 100 ms, ecn: true}",
    "fq_codel": "{kind: fq_codel, limit: 1000, flows: 256}",
    "fq": "{kind: fq, limit: 1000, flow_limit: 50}",
    "pie": "{kind: pie, limit: 1000, target: 15 ms}",
    "fq_pie": "{kind: fq_pie, limit: 1000, target: 15 ms}",
    "cake": "{kind: cake, limit: 4 MiB, flowmode: flows}",
    "sfq": "{kind: sfq, limit: 127, depth: 20}",
    "dualpi2": "{kind: dualpi2, limit: 1000, target: 15 ms, step_thresh: 1 ms}",
    "step": "{kind: step, limit: 1000, threshold: 0.2 bdp}",
}


def example(title: str) -> tuple[str, ...]:
    """The lines of an example below the table with this title; none where it has none."""
    kind = title.partition(": ")[2]
    name = title.removesuffix("[]")
    if name in SECTIONS:
        return (f"{name}:", f"  - {SECTIONS[name].example}")
    if title.startswith("topology.bottleneck_queue: "):
        return (f"bottleneck_queue: {QUEUES[kind]}",)
    if title.startswith("topology: "):
        return tuple(f"- topology: {text}" for text in TOPOLOGIES[kind])
    return {
        "topology.links[]": ("links:", *(f"  - {text}" for text in LINKS)),
        "topology.policer": ("policer: {rate: 10 Mbit/s, burst: 30 kB}",),
        "topology.changes[]": (f"changes: {CHANGES}",),
        "topology.loss: bursts": (f"loss: {BURSTS}",),
    }.get(title, ())
