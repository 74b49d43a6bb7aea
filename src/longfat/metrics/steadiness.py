# SPDX-License-Identifier: Apache-2.0
"""Metrics of how steady a throughput is, and metrics from pings and the kernel's counters.

A throughput over time counts the data acknowledged in whole intervals; ``since`` leaves a start out.
"""

from __future__ import annotations

import numpy as np

from longfat.dataset.load import Series
from longfat.metrics.data import Array, Bottleneck, Connections, FlowRows, NoValue, Pings, Port, Span, WholeRun
from longfat.metrics.registry import metric
from longfat.metrics.together import rates_mbps

LEAST_INTERVALS = 3  # fewer have no meaningful deviation


def variation(rates: Array) -> float:
    """Standard deviation over the mean, of no unit: 0 is steady."""
    if len(rates) < LEAST_INTERVALS:
        raise NoValue(f"there are {len(rates)} intervals, at least {LEAST_INTERVALS} are needed")
    if rates.mean() <= 0:
        raise NoValue("nothing was carried")
    return float(rates.std() / rates.mean())


def port_rates_mbps(port: Port, interval_us: float, since_us: float = 0) -> Array:
    """Mb/s of whole frames that left the port in each whole interval from ``since_us`` to the last sample."""
    count = int((port.t_us[-1] - since_us) // interval_us) if len(port.t_us) else 0
    edges: Array = since_us + interval_us * np.arange(count + 1, dtype=np.float64)
    return 8 * np.diff(np.interp(edges, port.t_us, port.sent_bytes)) / interval_us


def lost_percent(sent: float, arrived: float) -> float:
    """Percent of one node's segments that did not arrive at the other."""
    if sent <= 0:
        raise NoValue("nothing was sent")
    return 100 * (sent - arrived) / sent


@metric("", "deviation of the acknowledged rate over its mean", bounds=(0, np.inf), source="Bullot and Cottrell 2003")
def stability(
    connections: Connections, rows: FlowRows, interval_us: float, since_us: float = 0.0, flow: str | None = None
) -> float:
    """Standard deviation over the mean of the data acknowledged in whole intervals, of a flow or all: 0 is steady."""
    own = [row for row in rows if flow in (None, row["flow"])]
    if not own:
        raise NoValue("the run has no such flow")
    start_us = max(since_us, *(float(row["start_us"]) for row in own))
    span = Span(start_us, min(row["end_us"] for row in own))
    return variation(rates_mbps(connections, span, interval_us).sum(axis=1))


@metric(
    "", "deviation of what the bottleneck carries over its mean", bounds=(0, np.inf), source="Bullot and Cottrell 2003"
)
def link_stability(port: Bottleneck, interval_us: float, since_us: float = 0.0) -> float:
    """Standard deviation over the mean of the data that left the bottleneck in each whole interval."""
    return variation(port_rates_mbps(port, interval_us, since_us))


@metric("ms", "mean RTT of pings", bounds=(0, np.inf))
def rtt(pings: Pings, since_us: float = 0.0) -> float:
    """Mean round-trip time of the answered pings in milliseconds."""
    return float(_answered(pings, since_us).mean()) / 1000


@metric("ms", "smallest RTT of pings", bounds=(0, np.inf))
def rtt_least(pings: Pings) -> float:
    """Smallest round-trip time of the answered pings in milliseconds."""
    return float(_answered(pings, 0.0).min()) / 1000


@metric("ms", "largest RTT of pings", bounds=(0, np.inf))
def rtt_most(pings: Pings) -> float:
    """Largest round-trip time of the answered pings in milliseconds."""
    return float(_answered(pings, 0.0).max()) / 1000


@metric("%", "segments lost on the way back", bounds=(0, 100))
def return_loss(data: WholeRun, flow: str | None = None) -> float:
    """Percent of the segments that the receiving host sent which its sender did not get (RFC 4022 counters).

    Only for hosts that exchange segments with no other host.
    """
    sender, receiver = data.ends(flow)
    others = {
        end
        for row in data.flows
        if sender in (ends := (row["sender"], row["receiver"])) or receiver in ends
        for end in ends
    }
    if others != {sender, receiver}:
        raise NoValue(f"{sender} and {receiver} exchange segments with other hosts, whose counters are the same")
    return lost_percent(data.counted(receiver, "Tcp.OutSegs"), data.counted(sender, "Tcp.InSegs"))


@metric("segments", "segments that arrived out of order", bounds=(0, np.inf))
def out_of_order(data: WholeRun, flow: str | None = None) -> float:
    """Segments that the receiving host queued because an earlier one was missing (TCPOFOQueue)."""
    _, receiver = data.ends(flow)
    return data.counted(receiver, "TcpExt.TCPOFOQueue")


def _answered(pings: Series, since_us: float) -> Array:
    chosen = pings.values[pings.t_us >= since_us]
    if not len(chosen):
        raise NoValue("no ping was answered")
    return chosen
