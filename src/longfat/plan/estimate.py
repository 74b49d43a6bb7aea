# SPDX-License-Identifier: Apache-2.0
"""The cost of a plan: wall time and disk, from a model of a few constants.

No result depends on the estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from longfat.backends.registry import DEFAULT_BACKEND, traits_of
from longfat.plan.model import Plan, PlannedRun
from longfat.spec.network import base_rtt_us, route, smallest_mtu_bytes
from longfat.spec.runspec import RunSpec
from longfat.study.traffic import section_of
from longfat.study.traffic.kind import Path
from longfat.system.errors import StudyError

# Measured with the virtual backend, one run on one core; docs/virtual-time.md has the figures of the day.
# The constants of runs were fitted to the quick profiles of eight studies; their links are seldom full.
FIXED_SECONDS = 0.25  # boot, topology and teardown
SECONDS_PER_SECOND = 0.012  # of a run: iperf2's and the kernel's timers, and the clock's display to the host
SECONDS_PER_PACKET_HOP = 1.15e-6  # one data packet over one link, including its share of the ACKs
SECONDS_PER_SOCKET_SAMPLE = 2e-4
UNLIMITED_BPS = 10**10  # of a path without any rate, which only CPUs limit
TYPICAL = 0.23  # ratio of actual to stated time of traffic that states one
REPORT_SECONDS = 2.0  # the start of the program, figures and report
REPORT_SECONDS_PER_RUN = 0.1  # parsing, metrics, verdicts
SECONDS_PER_CAPTURED_PACKET = 9e-6  # written by tcpdump, read by tcptrace, whose graphs are read

# The disk space of a run's files, in whole blocks; measured on the 593 runs of sandia-2003, profile quick.
FIXED_BYTES = 72_000  # descriptions, counters, console, iperf2's output
BYTES_PER_SOCKET_SAMPLE = 170  # one row of sockets.csv, and what most algorithms add to cca_state.csv
BYTES_PER_QUEUE_SAMPLE = 70  # one row of queues.csv
BYTES_PER_CAPTURED_PACKET = 141  # headers of a data packet, its share of ACKs, its row of outstanding data


@dataclass(frozen=True)
class Estimate:
    """Cost of runs: entries of the lock, distinct runs among them, seconds of wall time, bytes on disk."""

    runs: int
    distinct_runs: int
    wall_seconds: float
    disk_bytes: int

    @property
    def whole_seconds(self) -> float:
        """Seconds of wall time with dataset, verdicts, figures and report, as ``reproduce`` makes them."""
        return self.wall_seconds + REPORT_SECONDS + REPORT_SECONDS_PER_RUN * self.distinct_runs


def estimate(plan: Plan, jobs: int, runs: Iterable[PlannedRun] | None = None) -> Estimate:
    """Return the cost of the distinct runs of a plan, or of some, ``jobs`` at a time; in real time one after the other.

    Raises StudyError for less than one job.
    """
    if jobs < 1:
        raise StudyError(f"{jobs} jobs cannot run anything; allowed: 1 or more", where="--jobs")
    chosen = plan.runs if runs is None else tuple(runs)
    specs = {run.run_id: run.spec for run in chosen}
    backend = plan.pins.get("backend", DEFAULT_BACKEND)
    if traits_of(backend).clock == "real":
        jobs = 1
    seconds = [seconds_on(backend, spec) for spec in specs.values()]
    # At least the longest run: a run is not divided among cores.
    wall = max(sum(seconds) / jobs, max(seconds, default=0.0))
    return Estimate(len(chosen), len(specs), wall, sum(run_bytes(spec) for spec in specs.values()))


def seconds_on(backend: str, spec: RunSpec) -> float:
    """Return the seconds of wall time of one run on a backend, on one core."""
    traits = traits_of(backend)
    return traits.setup_s + spec.end_us / 1e6 if traits.clock == "real" else run_seconds(spec)


def run_seconds(spec: RunSpec) -> float:
    """Return the seconds of wall time of one run in virtual time, on one core."""
    costs = [section_of(one).cost(one, _path(spec, one)) for one in spec.sent]
    packets = min(_most_packets(spec), sum(cost.packets for cost in costs))
    ends = {(one.sender, one.receiver) for one in spec.sent} | {(ping.sender, ping.receiver) for ping in spec.pings}
    hops = max(len(route(spec, *pair)) for pair in ends)
    seconds = spec.end_us / 1e6 * SECONDS_PER_SECOND + packets * hops * SECONDS_PER_PACKET_HOP
    seconds += _socket_samples(spec) * SECONDS_PER_SOCKET_SAMPLE
    seconds += _captured_packets(spec) * SECONDS_PER_CAPTURED_PACKET
    return FIXED_SECONDS + seconds + TYPICAL * sum(cost.seconds for cost in costs)


def run_bytes(spec: RunSpec) -> int:
    """Return the bytes of the folder of one run."""
    total = float(FIXED_BYTES)
    total += _socket_samples(spec) * BYTES_PER_SOCKET_SAMPLE
    if spec.probes.queue_interval_us:
        samples = 2 * len(spec.links) * spec.end_us / spec.probes.queue_interval_us
        total += samples * BYTES_PER_QUEUE_SAMPLE
    total += _captured_packets(spec) * BYTES_PER_CAPTURED_PACKET
    return round(total)


def _path(spec: RunSpec, sent: Any) -> Path:
    """Return the properties of a run that determine the cost of its traffic ``sent``."""
    return Path(_slowest_bps(spec), base_rtt_us(spec, sent), smallest_mtu_bytes(spec))


def _socket_samples(spec: RunSpec) -> float:
    interval_us = spec.probes.socket_interval_us
    return sum(flow.streams * flow.duration_us for flow in spec.flows) / interval_us if interval_us else 0.0


def _captured_packets(spec: RunSpec) -> float:
    """Return the packets of all captures together; captured flows share the bottleneck."""
    captured = [one for one in spec.sent if one.name in spec.probes.capture]
    packets = sum(section_of(one).cost(one, _path(spec, one)).packets for one in captured)
    return len(spec.probes.capture_at) * min(_most_packets(spec), packets)


def _most_packets(spec: RunSpec) -> float:
    """Return the packets that the bottleneck can send during the run."""
    return _bottleneck_bps(spec) * spec.end_us / 1e6 / 8 / smallest_mtu_bytes(spec)


def _slowest_bps(spec: RunSpec) -> int:
    rates = [end.egress.rate_bps for link in spec.links for end in (link.a, link.b)]
    return min((rate for rate in rates if rate is not None), default=UNLIMITED_BPS)


def _bottleneck_bps(spec: RunSpec) -> int:
    """Return the slowest rate of all routers, or of all nodes if no router has one."""
    routers = {node.name for node in spec.nodes if node.role == "router"}
    ends = [end for link in spec.links for end in (link.a, link.b) if end.node in routers]
    return min((end.egress.rate_bps for end in ends if end.egress.rate_bps is not None), default=_slowest_bps(spec))
