# SPDX-License-Identifier: Apache-2.0
"""Metrics of the paper from the samples of the bottleneck and the counters of hosts."""

from __future__ import annotations

import numpy as np

from longfat.metrics.data import Array, Bottleneck, FlowRows, NoValue, Port, WholeRun
from longfat.metrics.goodput import asymmetry
from longfat.metrics.registry import metric
from longfat.metrics.steadiness import variation
from longfat.relations.formulas import formula


@metric(
    "", "deviation of what the bottleneck carries over its mean", bounds=(0, np.inf), source="Bullot and Cottrell 2003"
)
def link_stability(port: Bottleneck, interval_us: float, since_us: float = 0.0) -> float:
    """Standard deviation over the mean of the data that left the bottleneck in each whole interval."""
    return variation(port_rates_mbps(port, interval_us, since_us))


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


@formula
def asymmetry_of_two(x1: float, x2: float) -> float:
    """Asymmetry between two throughputs, (x1 - x2) / (x1 + x2) (Bullot and Cottrell 2003)."""
    return (x1 - x2) / (x1 + x2)


@metric("", "size of the asymmetry", bounds=(0, 1))
def asymmetry_size(rows: FlowRows, flow: str) -> float:
    """Asymmetry without its sign."""
    return abs(asymmetry(rows, flow))
