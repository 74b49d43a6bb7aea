# SPDX-License-Identifier: Apache-2.0
"""Metrics of received data: goodput, shares, transfers, and the fairness among flows.

The goodput of a flow is a mean over its receiving time, from the start of its connection at the receiver to its last
byte. The goodput of several flows is the sum of their bytes over the union of their receiving times. Shares and
fairness compare goodputs of flows whose receiving times overlap, each over its own time; ``least_share`` compares rates
over one common time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longfat.dataset.load import Row
from longfat.metrics.data import FlowRows, NoValue, union_us
from longfat.metrics.registry import metric


@metric("Mb/s", "goodput", bounds=(0, np.inf), name="goodput")
def goodput_mbps(flows: FlowRows, flow: str | None = None) -> float:
    """Goodput in Mb/s (10^6 bit/s): received bytes of one flow, or of all, over their receiving time.

    The receiving time of one flow is reported by iperf2's receiver; the receiving time of several flows is the union.
    """
    chosen = [row for row in flows if flow in (None, row["flow"])]
    if len(chosen) == 1:
        return of_flows("goodput_bps", "goodput", chosen, flow) / 1e6
    total = of_flows("bytes_received", "goodput", chosen, flow)
    return 8 * total / union_us((row["first_byte_us"], row["last_byte_us"]) for row in chosen) if total else 0.0


@metric("s", "time from the first start to the last byte", bounds=(0, np.inf), name="lasts")
def lasts_s(flows: FlowRows) -> float:
    """Seconds from the start of the first flow to the last received byte."""
    if not flows:
        raise NoValue("the run has no flow")
    return float(max(row["last_byte_us"] for row in flows) - min(row["start_us"] for row in flows)) / 1e6


@metric("%", "share of the goodput", bounds=(0, 100), judged_by="median", name="share")
def share_percent(flows: FlowRows, flow: str) -> float:
    """One flow's share of the sum of the flows' goodputs, in percent: 100 * x / sum of x."""
    total = of_flows("goodput_bps", "goodput", _at_once(flows), None)
    if total <= 0:
        raise NoValue("no flow received anything")
    return 100 * of_flows("goodput_bps", "goodput", flows, flow) / total


@metric("%", "runs at or above the level", bounds=(0, 100), name="reaches")
def reaches_percent(flows: FlowRows, level_bps: float, flow: str | None = None) -> float:
    """100 if the goodput of one flow, or of all, is at least the level, else 0: its mean is a share of runs."""
    return 100.0 if 1e6 * goodput_mbps(flows, flow) >= level_bps else 0.0


@metric("segments", "retransmissions", bounds=(0, np.inf))
def retransmissions(flows: FlowRows, flow: str | None = None) -> float:
    """Retransmitted segments of one flow, or the sum of all.

    The kernel's count at the end of each connection (tcp_info tcpi_total_retrans).
    """
    return of_flows("retrans_segments", "count of retransmissions", flows, flow)


@metric("Mb/s", "goodput of a connection", bounds=(0, np.inf), name="each")
def each_mbps(flows: FlowRows, flow: str | None = None) -> float:
    """Mean goodput of a connection in Mb/s over the receiving time of its flow, for one flow or for all."""
    chosen = [row for row in flows if flow in (None, row["flow"])]
    if not chosen:
        raise NoValue("no goodput was reported")
    return _each(chosen) / 1e6


@metric("", "goodput of a connection over the goodput of another flow's connection", bounds=(0, np.inf))
def fairness(flows: FlowRows, flow: str) -> float:
    """Mean goodput of one connection of the flow, divided by the mean goodput of one connection of all others."""
    own = [row for row in _at_once(flows) if row["flow"] == flow]
    others = [row for row in flows if row["flow"] != flow]
    if not own or not others or sum(row["goodput_bps"] for row in others) <= 0:
        raise NoValue(f"no goodput of {flow!r} and of others to compare")
    return _each(own) / _each(others)


@metric("transfers", "complete transfers", bounds=(0, np.inf))
def transfers(flows: FlowRows, flow: str | None = None, within_us: float | None = None) -> float:
    """Connections that completed their transfer before the flow ended: of one flow, or of all.

    With ``within_us``, flows must have lasted for exactly this time.
    """
    count = of_flows("transfers", "count of transfers", flows, flow)
    require_length([row for row in flows if flow in (None, row["flow"])], within_us)
    return count


@metric("GB", "data received", bounds=(0, np.inf), name="carried")
def carried_gigabytes(flows: FlowRows, flow: str | None = None, within_us: float | None = None) -> float:
    """Received data in GB (10^9 bytes), including incomplete transfers: of one flow, or of all.

    With ``within_us``, flows must have lasted for exactly this time, and must be flows of transfers: data in the socket
    buffers of other flows arrive after their end.
    """
    chosen = [row for row in flows if flow in (None, row["flow"])]
    require_length(chosen, within_us)
    late = [row["flow"] for row in chosen if row["last_byte_us"] > row["end_us"]]
    if within_us is not None and late:
        raise NoValue(f"data of {', '.join(late)} arrived after the end: only flows with `transfer` are cut there")
    return of_flows("bytes_received", "count of bytes", flows, flow) / 1e9


@metric("", "Jain's index", bounds=(0, 1), name="jain")
def jain_index(rows: FlowRows) -> float:
    """Jain's index of the flows' goodputs, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one flow has all."""
    rates = np.array([row["goodput_bps"] for row in _at_once(rows)], dtype=np.float64)
    if len(rates) < 2 or not rates.any():
        raise NoValue("fairness is among two flows or more that carry something")
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))


@metric("", "asymmetry", bounds=(-1, 1))
def asymmetry(rows: FlowRows, flow: str) -> float:
    """(x1 - x2) / (x1 + x2), where x1 is the goodput of the flow and x2 the goodput of the only other flow."""
    own = [row["goodput_bps"] for row in _at_once(rows) if row["flow"] == flow]
    other = [row["goodput_bps"] for row in rows if row["flow"] != flow]
    if len(own) != 1 or len(other) != 1 or own[0] + other[0] <= 0:
        raise NoValue("asymmetry is between two flows that carry something")
    return float((own[0] - other[0]) / (own[0] + other[0]))


def of_flows(column: str, what: str, flows: Sequence[Row], flow: str | None) -> float:
    """Sum a column over one flow's rows, or over all."""
    chosen = [row[column] for row in flows if flow in (None, row["flow"])]
    if not chosen or None in chosen:
        raise NoValue(f"no {what} of flow {flow!r}" if flow else f"no {what} of {'every' if chosen else 'any'} flow")
    return float(sum(chosen))


def _at_once(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows. Raises NoValue unless the receiving times of all flows overlap."""
    carrying = [row for row in rows if row["bytes_received"]]
    if carrying and max(row["first_byte_us"] for row in carrying) >= min(row["last_byte_us"] for row in carrying):
        raise NoValue("the flows receive one after the other, and a share is one of the same time")
    return rows


def _each(rows: Sequence[Row]) -> float:
    """Return the mean goodput of a connection."""
    return float(sum(row["goodput_bps"] for row in rows) / sum(row["streams"] for row in rows))


def require_length(rows: Sequence[Row], within_us: float | None) -> None:
    """Raise NoValue unless each flow or web traffic lasted ``within_us``; None allows any length."""
    lasted = sorted({row["end_us"] - row["start_us"] for row in rows})
    if within_us is not None and lasted != [within_us]:
        shown = ", ".join(f"{value / 1e6:g}" for value in lasted)
        raise NoValue(f"the traffic lasted {shown} s, not {within_us / 1e6:g} s")
