# SPDX-License-Identifier: Apache-2.0
"""The constant of Mathis' law and its error, losses per halving, and fairness among connections."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from longfat.metrics.cuts import cut_times_us
from longfat.metrics.data import Array, NoValue, RunData, WholeRun
from longfat.metrics.registry import metric

MSS = 1448  # bytes, of the re-runs


@dataclass(frozen=True)
class _Connection:
    """Rate in bit/s, mean smoothed RTT in seconds, and sent segments, losses and halvings of a connection."""

    rate: float
    rtt: float
    sent: float
    losses: float
    halvings: float


@metric("", "constant of Mathis' law by halvings", bounds=(0, np.inf))
def constant_by_halvings(data: WholeRun, since_us: float) -> float:
    """Slope through the origin of goodput over MSS / (RTT sqrt(p)) of all connections, p halvings over segments."""
    return _constant(*_fit(data, since_us, "halvings"))


@metric("", "constant of Mathis' law by losses", bounds=(0, np.inf))
def constant_by_losses(data: WholeRun, since_us: float) -> float:
    """The same slope where p is retransmissions over segments sent."""
    return _constant(*_fit(data, since_us, "losses"))


@metric("%", "median error of Mathis' law by halvings", bounds=(0, np.inf))
def error_by_halvings(data: WholeRun, since_us: float) -> float:
    """Median over the connections of the error of the fitted law, in percent of their goodput."""
    return _error(*_fit(data, since_us, "halvings"))


@metric("%", "median error of Mathis' law by losses", bounds=(0, np.inf))
def error_by_losses(data: WholeRun, since_us: float) -> float:
    """The same error where p is retransmissions over segments sent."""
    return _error(*_fit(data, since_us, "losses"))


@metric("", "losses per halving", bounds=(0, np.inf))
def losses_per_halving(data: WholeRun, since_us: float, losses_since_us: float | None = None) -> float:
    """Retransmissions over cuts of the window of all connections, both from ``since_us`` on.

    ``losses_since`` counts retransmissions from another time on; with 0 they include slow start, as in the re-runs.
    """
    halvings = sum(one.halvings for one in _connections(data, since_us))
    if not halvings:
        raise NoValue("no window was cut")
    return (
        sum(one.losses for one in _connections(data, since_us if losses_since_us is None else losses_since_us))
        / halvings
    )


@metric("", "Jain's index of the connections", bounds=(0, 1))
def jain_of_connections(data: WholeRun, since_us: float) -> float:
    """Jain's index of the acknowledged rates of all connections from ``since_us`` on."""
    rates = np.array([one.rate for one in _connections(data, since_us)])
    if len(rates) < 2 or not rates.any():
        raise NoValue("fairness is among two connections or more that carry something")
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))


@metric("%", "share of the first algorithm", bounds=(0, 100))
def share_of_first(data: WholeRun, since_us: float) -> float:
    """Acknowledged rate of the flows called one1, one2, ... in percent of the rate of all."""
    rates = [(name, one.rate) for (name, _), one in _by_stream(data, since_us)]
    total = sum(rate for _, rate in rates)
    if total <= 0:
        raise NoValue("nothing was acknowledged")
    return 100 * sum(rate for name, rate in rates if name.startswith("one")) / total


_Stream = tuple[tuple[str, int], _Connection]


def _kept(find: Callable[[RunData, float], Iterator[_Stream]]) -> Callable[[RunData, float], Iterator[_Stream]]:
    """Keep what was found last: all metrics of a run use it, and with 5000 connections it takes minutes."""
    last: list[tuple[object, str, float, list[_Stream]]] = []

    @functools.wraps(find)
    def found(data: RunData, since_us: float) -> Iterator[_Stream]:
        key = data.run.run_id, since_us
        if not last or last[0][0] is not data.dataset or last[0][1:3] != key:
            last[:] = [(data.dataset, *key, list(find(data, since_us)))]
        return iter(last[0][3])

    return found


@_kept
def _by_stream(data: RunData, since_us: float) -> Iterator[tuple[tuple[str, int], _Connection]]:
    end = min(float(row["end_us"]) for row in data.flow_rows())
    if since_us >= end:
        raise NoValue(f"the flows end after {end / 1e6:g} s")
    table = data.dataset.sockets(data.run.run_id, None)
    for (flow, stream), samples in data.streams().items():
        own = (table["flow"] == flow) & (table["stream"] == stream) & (table["t_us"] >= since_us)
        late = samples.since(since_us)
        if not own.any() or not len(late.t_us):
            continue
        losses = float(np.ptp(table["retrans_total"][own])) if since_us else float(table["retrans_total"][own].max())
        acked = float(np.diff(samples.acked_by(np.array([since_us, end])))[0])
        halvings = float(len(cut_times_us(samples, since_us, None)))
        rtt = float(late.srtt_us[late.srtt_us > 0].mean()) / 1e6
        yield (flow, stream), _Connection(8e6 * acked / (end - since_us), rtt, acked / MSS + losses, losses, halvings)


def _connections(data: RunData, since_us: float) -> Iterator[_Connection]:
    return (one for _, one in _by_stream(data, since_us))


def _fit(data: RunData, since_us: float, what: str) -> tuple[Array, Array]:
    """Return MSS / (RTT sqrt(p)) and goodput, both in bit/s, of each connection with an event."""
    found = [one for one in _connections(data, since_us) if getattr(one, what)]
    if not found:
        raise NoValue(f"no connection has {what}")
    x = np.array([8 * MSS / (one.rtt * np.sqrt(getattr(one, what) / one.sent)) for one in found])
    return x, np.array([one.rate for one in found])


def _constant(x: Array, y: Array) -> float:
    return float((x * y).sum() / (x * x).sum())


def _error(x: Array, y: Array) -> float:
    return float(100 * np.median(np.abs(_constant(x, y) * x - y) / y))


@metric("s", "time between halvings of a connection", bounds=(0, np.inf))
def halving_interval(data: WholeRun, since_us: float) -> float:
    """Connections times the length of the window over all halvings in it."""
    found = list(_connections(data, since_us))
    halvings = sum(one.halvings for one in found)
    if not halvings:
        raise NoValue("no window was cut")
    end = min(float(row["end_us"]) for row in data.flow_rows())
    return len(found) * (end - since_us) / 1e6 / halvings
