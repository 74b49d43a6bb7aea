# SPDX-License-Identifier: Apache-2.0
"""Metrics of Bullot and Cottrell's study: how steady a throughput is, how it is shared, what pings and counters tell.

Owns their definitions. A throughput over time is what was acknowledged in whole intervals; ``since`` leaves a start
out. Fairness and asymmetry are of the goodput of whole flows, whatever the number of their connections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from longfat.analysis.link import Parameters, Port, RunMetric, bottleneck_of
from longfat.analysis.metrics import NoValue
from longfat.analysis.together import Span, connections_of, rates_mbps, seen
from longfat.dataset.load import Dataset, Run

Array = npt.NDArray[np.float64]
Rows = Sequence[Mapping[str, Any]]

LEAST_INTERVALS = 3  # a deviation of fewer says nothing


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


def jain_index(rows: Rows) -> float:
    """Jain's index of the flows' goodput, (sum x)^2 / (n sum x^2): 1 where all have the same, 1/n where one has all."""
    rates = np.array([row["goodput_bps"] for row in rows], dtype=np.float64)
    if len(rates) < 2 or not rates.any():
        raise NoValue("fairness is among two flows or more that carry something")
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))


def asymmetry(rows: Rows, flow: str) -> float:
    """(x1 - x2) / (x1 + x2), where x1 is the goodput of the flow and x2 that of the only other one."""
    own = [row["goodput_bps"] for row in rows if row["flow"] == flow]
    other = [row["goodput_bps"] for row in rows if row["flow"] != flow]
    if len(own) != 1 or len(other) != 1 or own[0] + other[0] <= 0:
        raise NoValue("asymmetry is between two flows that carry something")
    return float((own[0] - other[0]) / (own[0] + other[0]))


def lost_percent(sent: float, arrived: float) -> float:
    """Percent of what one node sent that did not come to the other."""
    if sent <= 0:
        raise NoValue("nothing was sent")
    return 100 * (sent - arrived) / sent


def _stability(dataset: Dataset, run: Run, flow: str | None, p: Parameters) -> float:
    rows = [row for row in dataset.flows.get(run.run_id, ()) if flow in (None, row["flow"])]
    if not rows:
        raise NoValue("the run has no such flow")
    start_us = max(p.get("since", 0.0), *(float(row["start_us"]) for row in rows))
    connections = connections_of(dataset, run, flow)
    span = seen(connections, Span(start_us, min(row["end_us"] for row in rows)))
    return variation(rates_mbps(connections, span, p["interval"]).sum(axis=1))


def _link_stability(dataset: Dataset, run: Run, flow: str | None, p: Parameters) -> float:
    return variation(port_rates_mbps(bottleneck_of(dataset, run), p["interval"], p.get("since", 0.0)))


def _pings(of: Callable[[Array], float]) -> Callable[[Dataset, Run, str | None, Parameters], float]:
    def compute(dataset: Dataset, run: Run, flow: str | None, p: Parameters) -> float:
        pings = dataset.pings(run.run_id)
        chosen = pings.values[pings.t_us >= p.get("since", 0.0)]
        if not len(chosen):
            raise NoValue("no ping was answered")
        return of(chosen) / 1000

    return compute


def _counted(dataset: Dataset, run: Run, node: str, counter: str) -> float:
    rows = dataset.counters.get(run.run_id, ())
    return float(sum(row["value"] for row in rows if row["node"] == node and row["counter"] == counter))


def _ends(dataset: Dataset, run: Run, flow: str | None) -> tuple[str, str]:
    """Sender and receiver of a flow, or of the first."""
    rows = [row for row in dataset.flows.get(run.run_id, ()) if flow in (None, row["flow"])]
    if not rows:
        raise NoValue("the run has no such flow")
    return rows[0]["sender"], rows[0]["receiver"]


def _return_loss(dataset: Dataset, run: Run, flow: str | None, p: Parameters) -> float:
    sender, receiver = _ends(dataset, run, flow)
    return lost_percent(_counted(dataset, run, receiver, "Tcp.OutSegs"), _counted(dataset, run, sender, "Tcp.InSegs"))


def _out_of_order(dataset: Dataset, run: Run, flow: str | None, p: Parameters) -> float:
    _, receiver = _ends(dataset, run, flow)
    return _counted(dataset, run, receiver, "TcpExt.TCPOFOQueue")


STEADINESS_METRICS: dict[str, RunMetric] = {
    "stability": RunMetric(
        *("", "deviation of the throughput over its mean", _stability),
        required=("interval",),
        optional=("since",),
        flow=True,
    ),
    "link_stability": RunMetric(
        *("", "deviation of what the bottleneck carries over its mean", _link_stability),
        required=("interval",),
        optional=("since",),
    ),
    "jain": RunMetric("", "Jain's index", lambda d, run, flow, p: jain_index(d.flows.get(run.run_id, ()))),
    "asymmetry": RunMetric(
        *("", "asymmetry", lambda d, run, flow, p: asymmetry(d.flows.get(run.run_id, ()), str(flow))),
        required=("flow",),
        flow=True,
    ),
    "asymmetry_size": RunMetric(
        *("", "size of the asymmetry", lambda d, run, flow, p: abs(asymmetry(d.flows.get(run.run_id, ()), str(flow)))),
        required=("flow",),
        flow=True,
    ),
    "rtt": RunMetric("ms", "mean RTT of pings", _pings(lambda rtt: float(rtt.mean())), optional=("since",), least=1),
    "rtt_least": RunMetric("ms", "smallest RTT of pings", _pings(lambda rtt: float(rtt.min())), least=1),
    "rtt_most": RunMetric("ms", "largest RTT of pings", _pings(lambda rtt: float(rtt.max())), least=1),
    "return_loss": RunMetric("%", "segments lost on the way back", _return_loss, flow=True),
    "out_of_order": RunMetric("segments", "segments that arrived out of order", _out_of_order, flow=True),
}
