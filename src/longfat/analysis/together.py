# SPDX-License-Identifier: Apache-2.0
"""Metrics of the time in which all flows of a run send: what they carry together, how evenly, how steadily.

Owns their definitions. What a connection carries is what its receiver acknowledged, as the samples of the sending
socket have it, read between two samples on the straight line that joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from longfat.analysis.link import Parameters, RunMetric
from longfat.analysis.metrics import Array, NoValue
from longfat.dataset.load import Dataset, Run

_Measure = Callable[[Sequence["Progress"], "Span", float], float]

HIGH = 0.9  # of the highest rate; what differs by less is about alike (docs/claims.md)


@dataclass(frozen=True)
class Progress:
    """Bytes of one connection that were acknowledged so far, by time in microseconds, ascending."""

    t_us: Array
    acked: Array


@dataclass(frozen=True)
class Span:
    """The time in which all flows send, in microseconds."""

    start_us: float
    end_us: float


def rates_mbps(connections: Sequence[Progress], span: Span, interval_us: float | None = None) -> Array:
    """Mb/s of each connection (columns) in each whole interval of the span (rows); one interval where none is given."""
    length = span.end_us - span.start_us
    count = 1 if interval_us is None else int(length // interval_us)
    if length <= 0 or count < 1:
        raise NoValue(f"all flows send together for {max(length, 0) / 1e6:g} s, less than an interval")
    edges = span.start_us + (length if interval_us is None else interval_us) * np.arange(count + 1)
    steps = [np.diff(np.interp(edges, one.t_us, one.acked, left=0)) for one in connections]
    return 8 * np.array(steps, dtype=np.float64).T / np.diff(edges)[:, np.newaxis]


def together_mbps(connections: Sequence[Progress], span: Span) -> float:
    """Mb/s (10^6 bit/s) of all connections while all flows send."""
    return float(rates_mbps(connections, span).sum())


def sigma_fairness(connections: Sequence[Progress], span: Span) -> float:
    """Standard deviation of the connections' mean rates over their mean (Li 2006, equation 2); 0 is fair."""
    (rates,) = rates_mbps(_several(connections), span)
    return float(rates.std() / _above_zero(rates.mean()))


def xi_fairness(connections: Sequence[Progress], span: Span, interval_us: float) -> float:
    """Root mean square over intervals of the deviation among connections, over the mean rate.

    Equation 3 of Li 2006 as its text has it: the same as ``sigma_fairness`` where no rate varies in time.
    """
    rates = rates_mbps(_several(connections), span, interval_us)
    return float(np.sqrt((rates.std(axis=1) ** 2).mean()) / _above_zero(rates.mean()))


def xi_deviation(connections: Sequence[Progress], span: Span, interval_us: float) -> float:
    """Deviation over intervals of the deviation among connections, over the mean rate: equation 3 as it is printed."""
    rates = rates_mbps(_several(connections), span, interval_us)
    return float(rates.std(axis=1).std() / _above_zero(rates.mean()))


def peak_mbps(connections: Sequence[Progress], span: Span, interval_us: float) -> float:
    """Highest rate of all connections together in an interval, in Mb/s."""
    return float(rates_mbps(connections, span, interval_us).sum(axis=1).max())


def sustained_percent(connections: Sequence[Progress], span: Span, interval_us: float) -> float:
    """Percent of the intervals whose rate is 90 % of the highest or more."""
    rates = rates_mbps(connections, span, interval_us).sum(axis=1)
    return float(100 * (rates >= HIGH * _above_zero(rates.max())).mean())


def dip_percent(connections: Sequence[Progress], span: Span, interval_us: float) -> float:
    """Lowest rate after the first interval at 90 % of the highest, in percent of the highest."""
    rates = rates_mbps(connections, span, interval_us).sum(axis=1)
    after = rates[int(np.flatnonzero(rates >= HIGH * _above_zero(rates.max()))[0]) :]
    return float(100 * after.min() / rates.max())


def connections_of(dataset: Dataset, run: Run, flow: str | None) -> list[Progress]:
    """Every connection of one flow, or of all. Raises NoValue where no socket was sampled."""
    table = dataset.sockets(run.run_id, flow)
    found = []
    for name, stream in sorted(set(zip(table["flow"].tolist(), table["stream"].tolist(), strict=True))):
        own = (table["flow"] == name) & (table["stream"] == stream)
        found.append(Progress(*(table[column][own].astype(np.float64) for column in ("t_us", "bytes_acked"))))
    if not found:
        raise NoValue("no socket was sampled")
    return found


def span_of(dataset: Dataset, run: Run) -> Span:
    """From the start of the last flow to the end of the first."""
    flows = dataset.flows.get(run.run_id, ())
    if not flows:
        raise NoValue("the run has no flow")
    return Span(max(row["start_us"] for row in flows), min(row["end_us"] for row in flows))


def seen(connections: Sequence[Progress], span: Span) -> Span:
    """The span up to the last sample of every connection: an interval whose end was not sampled would look low."""
    return Span(span.start_us, min(span.end_us, *(float(one.t_us[-1]) for one in connections)))


def _several(connections: Sequence[Progress]) -> Sequence[Progress]:
    if len(connections) < 2:
        raise NoValue("one connection alone is neither fair nor unfair")
    return connections


def _above_zero(rate: float) -> float:
    if rate <= 0:
        raise NoValue("nothing was acknowledged while all flows sent")
    return rate


TOGETHER_METRICS: dict[str, RunMetric] = {
    "together": RunMetric(
        "Mb/s",
        "throughput while all flows send",
        lambda dataset, run, flow, p: together_mbps(connections_of(dataset, run, flow), span_of(dataset, run)),
        flow=True,
    ),
    "sigma_fairness": RunMetric(
        "",
        "sigma fairness",
        lambda dataset, run, flow, p: sigma_fairness(connections_of(dataset, run, flow), span_of(dataset, run)),
        flow=True,
    ),
}


def _interval_metric(unit: str, meaning: str, measure: _Measure, least: int = 2) -> RunMetric:
    def compute(dataset: Dataset, run: Run, flow: str | None, p: Parameters) -> float:
        return measure(connections_of(dataset, run, flow), span_of(dataset, run), p["interval"])

    return RunMetric(unit, meaning, compute, required=("interval",), flow=True, least=least)


TOGETHER_METRICS |= {
    "xi_fairness": _interval_metric("", "xi fairness", xi_fairness),
    "xi_deviation": _interval_metric("", "xi fairness as printed", xi_deviation),
    "peak": _interval_metric("Mb/s", "highest throughput", peak_mbps),
    "sustained": _interval_metric("%", "time at 90 % of the highest throughput or more", sustained_percent, 1),
    "dip": _interval_metric("%", "lowest throughput after the highest, of the highest", dip_percent, 1),
}
