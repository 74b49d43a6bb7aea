# SPDX-License-Identifier: Apache-2.0
"""Metrics of the time in which all flows of a run send: their joint rate, its division, its steadiness.

A connection carries the data that its receiver acknowledged, from the samples of the sending socket, interpolated
linearly between two samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longfat.metrics.data import Array, Connections, NoValue, Samples, Span, Together
from longfat.metrics.registry import metric

HIGH = 0.9  # of the highest rate; a smaller difference counts as about equal (docs/claims.md)


def rates_mbps(connections: Sequence[Samples], span: Span, interval_us: float | None = None) -> Array:
    """Mb/s of each connection (columns) in each whole interval of the span (rows); one interval where none is given.

    The span ends with the last sample of a connection whose end was not sampled. Raises NoValue for too short a span.
    """
    span = Span(span.start_us, min([span.end_us, *(one.t_us[-1] for one in connections if not one.end)]))
    length = span.end_us - span.start_us
    count = 1 if interval_us is None else int(length // interval_us)
    if length <= 0 or count < 1:
        raise NoValue(f"all flows send together for {max(length, 0) / 1e6:g} s, less than an interval")
    edges = span.start_us + (length if interval_us is None else interval_us) * np.arange(count + 1, dtype=np.float64)
    steps = [np.diff(one.acked_by(edges)) for one in connections]
    return 8 * np.array(steps, dtype=np.float64).T / np.diff(edges)[:, np.newaxis]


@metric("Mb/s", "throughput while all flows send", bounds=(0, np.inf), name="together")
def together_mbps(connections: Connections, span: Together) -> float:
    """Mb/s (10^6 bit/s) of all connections while all flows send."""
    return float(rates_mbps(connections, span).sum())


@metric("", "sigma fairness", bounds=(0, np.inf))
def sigma_fairness(connections: Connections, span: Together) -> float:
    """Standard deviation of the connections' mean rates over their mean (Li 2006, equation 2); 0 is fair."""
    (rates,) = rates_mbps(_several(connections), span)
    return float(rates.std() / _above_zero(rates.mean()))


@metric("", "xi fairness", bounds=(0, np.inf))
def xi_fairness(connections: Connections, span: Together, interval_us: float) -> float:
    """Root mean square over intervals of the deviation among connections, over the mean rate.

    Equation 3 of Li 2006 as its text has it: the same as ``sigma_fairness`` where no rate varies in time.
    """
    rates = rates_mbps(_several(connections), span, interval_us)
    return float(np.sqrt((rates.std(axis=1) ** 2).mean()) / _above_zero(rates.mean()))


@metric("", "xi fairness as printed", bounds=(0, np.inf))
def xi_deviation(connections: Connections, span: Together, interval_us: float) -> float:
    """Deviation over intervals of the deviation among connections, over the mean rate: equation 3 as it is printed."""
    rates = rates_mbps(_several(connections), span, interval_us)
    return float(rates.std(axis=1).std() / _above_zero(rates.mean()))


@metric("Mb/s", "highest throughput", bounds=(0, np.inf), name="peak")
def peak_mbps(connections: Connections, span: Together, interval_us: float) -> float:
    """Highest rate of all connections together in an interval, in Mb/s."""
    return float(rates_mbps(connections, span, interval_us).sum(axis=1).max())


@metric("%", "time at 90 % of the highest throughput or more", bounds=(0, 100), name="sustained")
def sustained_percent(connections: Connections, span: Together, interval_us: float) -> float:
    """Percent of the intervals whose rate is 90 % of the highest or more."""
    rates = rates_mbps(connections, span, interval_us).sum(axis=1)
    return float(100 * (rates >= HIGH * _above_zero(rates.max())).mean())


@metric("%", "lowest throughput after the highest, of the highest", bounds=(0, 100), name="dip")
def dip_percent(connections: Connections, span: Together, interval_us: float) -> float:
    """Lowest rate after the first interval at 90 % of the highest, in percent of the highest."""
    rates = rates_mbps(connections, span, interval_us).sum(axis=1)
    after = rates[int(np.flatnonzero(rates >= HIGH * _above_zero(rates.max()))[0]) :]
    return float(100 * after.min() / rates.max())


def _several(connections: Sequence[Samples]) -> Sequence[Samples]:
    if len(connections) < 2:
        raise NoValue("one connection alone is neither fair nor unfair")
    return connections


def _above_zero(rate: float) -> float:
    if rate <= 0:
        raise NoValue("nothing was acknowledged while all flows sent")
    return rate
