# SPDX-License-Identifier: Apache-2.0
"""Metrics of a whole link: how much of the bottleneck is used, what its marks do, and who gets how much.

Owns their definitions and which samples they are read from. Knows neither claims nor figures. A window of time
begins after the flows' start-up where a claim is about what comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longfat.analysis.metrics import CUT_STATES, NoValue, Samples, cut_times_us
from longfat.dataset.load import Dataset, Run

Array = npt.NDArray[np.float64]
Parameters = Mapping[str, float]


@dataclass(frozen=True)
class Port:
    """Samples of a shaped port, by time in microseconds: bytes that have left it, packets that its queue has marked."""

    node: str
    rate_bps: float
    t_us: Array
    sent_bytes: Array


@dataclass(frozen=True)
class Arrivals:
    """Packets that have reached a receiver, and the marked ones among them, by time in microseconds."""

    t_us: Array
    packets: Array
    marked: Array


@dataclass(frozen=True)
class RunMetric:
    """A metric of a run; ``compute`` takes the dataset, the run, a flow or None, and parameters in base units."""

    unit: str
    meaning: str
    compute: Callable[[Dataset, Run, str | None, Parameters], float]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    flow: bool = False
    least: int = 2


def utilisation_percent(port: Port, since_us: float, until_us: float | None = None) -> float:
    """Bytes that left the port over what its rate carries, in percent, from the first to the last sample of the window.

    Bytes are those of whole frames, so that a busy link is at 100.
    """
    t_us, sent = _within(port.t_us, port.sent_bytes, since_us, until_us)
    return float(100 * 8e6 * (sent[-1] - sent[0]) / (port.rate_bps * (t_us[-1] - t_us[0])))


def marked_ppm(arrivals: Sequence[Arrivals], since_us: float, until_us: float | None = None) -> float:
    """Marked packets over all that arrived, in parts per million, in the window."""
    packets = sum(_grown(item.t_us, item.packets, since_us, until_us)[0] for item in arrivals)
    if packets <= 0:
        raise NoValue("no packet arrived in the window")
    marked = sum(_grown(item.t_us, item.marked, since_us, until_us)[0] for item in arrivals)
    return 1e6 * marked / packets


def marks_per_s(arrivals: Sequence[Arrivals], since_us: float, until_us: float | None = None) -> float:
    """Marked packets that arrive in a second of the window."""
    found = [_grown(item.t_us, item.marked, since_us, until_us) for item in arrivals]
    return 1e6 * float(sum(marked for marked, _ in found)) / max(span for _, span in found)


def fairness(flows: Sequence[Mapping[str, Any]], flow: str) -> float:
    """Mean goodput of one connection of the flow over that of one connection of all others."""
    own = [row for row in flows if row["flow"] == flow]
    others = [row for row in flows if row["flow"] != flow]
    if not own or not others or sum(row["goodput_bps"] for row in others) <= 0:
        raise NoValue(f"no goodput of {flow!r} and of others to compare")
    return _each(own) / _each(others)


def each_mbps(flows: Sequence[Mapping[str, Any]], flow: str | None = None) -> float:
    """Mean goodput of one connection in Mb/s: of one flow's connections, or of all."""
    chosen = [row for row in flows if flow in (None, row["flow"])]
    if not chosen:
        raise NoValue("no goodput was reported")
    return _each(chosen) / 1e6


def window_growth(samples: Samples, since_us: float | None = None, until_us: float | None = None) -> float:
    """Segments a second by which the window grows in congestion avoidance, over the time that it spends there.

    Taken over pairs of samples of which neither is in a cut, with no cut between them, at or above ssthresh.
    """
    chosen = _chosen(samples.t_us, since_us, until_us)
    calm = chosen & ~np.isin(samples.ca_state, CUT_STATES) & (samples.cwnd >= samples.ssthresh)
    step = np.diff(samples.cwnd)
    pairs = calm[:-1] & calm[1:] & (step >= 0) & (np.diff(samples.ssthresh) >= 0)
    time_us = float(np.diff(samples.t_us)[pairs].sum())
    if time_us <= 0:
        raise NoValue("the window was in congestion avoidance in no two samples")
    return 1e6 * float(step[pairs].sum()) / time_us


def cut_interval_s(samples: Samples, since_us: float | None = None, until_us: float | None = None) -> float:
    """Mean time from one cut of the congestion window to the next, in seconds."""
    times = cut_times_us(samples, since_us, until_us)
    if len(times) < 2:
        raise NoValue(f"the congestion window was cut {len(times)} times, at least 2 are needed for an interval")
    return float(times[-1] - times[0]) / 1e6 / (len(times) - 1)


def bottleneck(ports: Sequence[Port], hosts: Collection[str]) -> Port:
    """The slowest shaped port that is not of an end host. Raises NoValue when there is none or more than one."""
    found = [port for port in ports if port.node not in hosts]
    found = [port for port in found if port.rate_bps == min(other.rate_bps for other in found)]
    if len(found) != 1:
        raise NoValue(f"{len(found)} ports of routers were sampled, and a bottleneck is one")
    return found[0]


def bottleneck_of(dataset: Dataset, run: Run) -> Port:
    """The bottleneck of a run. Raises NoValue where it was not sampled."""
    table = dataset.port_samples(run.run_id)
    ports = []
    for name in dict.fromkeys(table["interface"].tolist()):
        own = table["interface"] == name
        series = (table[column][own].astype(np.float64) for column in ("t_us", "sent_bytes"))
        ports.append(Port(table["node"][own][0], float(table["rate_bps"][own][0]), *series))
    flows = dataset.flows.get(run.run_id, ())
    return bottleneck(ports, {row[end] for row in flows for end in ("sender", "receiver")})


def arrivals_of(dataset: Dataset, run: Run, flow: str | None) -> list[Arrivals]:
    """Arrivals at the receivers of one flow, or of all. Raises NoValue where they are not that flow's alone."""
    flows = dataset.flows.get(run.run_id, ())
    receivers = {row["receiver"] for row in flows if flow in (None, row["flow"])}
    shared = [row["flow"] for row in flows if flow not in (None, row["flow"]) and row["receiver"] in receivers]
    if shared:
        raise NoValue(f"the receiver of {flow!r} is that of {', '.join(shared)} too: marks cannot be told apart")
    table = dataset.arrivals(run.run_id)
    found = []
    for node in sorted(receivers & set(table["node"].tolist())):
        own = table["node"] == node
        columns = ("t_us", "packets", "marked_packets")
        found.append(Arrivals(*(table[column][own].astype(np.float64) for column in columns)))
    if not found:
        raise NoValue("no arrivals were counted: no queue of the run marks")
    return found


def _each(rows: Sequence[Mapping[str, Any]]) -> float:
    """Goodput of one connection, on average."""
    return float(sum(row["goodput_bps"] for row in rows) / sum(row["streams"] for row in rows))


def _chosen(t_us: Array, since_us: float | None, until_us: float | None) -> npt.NDArray[np.bool_]:
    since = -np.inf if since_us is None else since_us
    until = np.inf if until_us is None else until_us
    inside: npt.NDArray[np.bool_] = (t_us >= since) & (t_us <= until)
    return inside


def _within(t_us: Array, values: Array, since_us: float, until_us: float | None) -> tuple[Array, Array]:
    inside = _chosen(t_us, since_us, until_us)
    if inside.sum() < 2:
        raise NoValue(f"{inside.sum()} samples lie in the window, at least 2 are needed")
    return t_us[inside], values[inside]


def _grown(t_us: Array, values: Array, since_us: float, until_us: float | None) -> tuple[float, float]:
    """By how much a count grew in the window, and the microseconds between its first and last sample."""
    times, counts = _within(t_us, values, since_us, until_us)
    return float(counts[-1] - counts[0]), float(times[-1] - times[0])


LINK_METRICS: dict[str, RunMetric] = {
    "each": RunMetric(
        "Mb/s",
        "goodput of a connection",
        lambda dataset, run, flow, p: each_mbps(dataset.flows.get(run.run_id, ()), flow),
        flow=True,
    ),
    "utilisation": RunMetric(
        "%",
        "use of the bottleneck",
        lambda dataset, run, flow, p: utilisation_percent(bottleneck_of(dataset, run), p["since"], p.get("until")),
        required=("since",),
        optional=("until",),
    ),
    "mark_rate": RunMetric(
        "ppm",
        "marked packets of those that arrive",
        lambda dataset, run, flow, p: marked_ppm(arrivals_of(dataset, run, flow), p["since"], p.get("until")),
        required=("since",),
        optional=("until",),
        flow=True,
    ),
    "marks_per_s": RunMetric(
        "1/s",
        "marked packets a second",
        lambda dataset, run, flow, p: marks_per_s(arrivals_of(dataset, run, flow), p["since"], p.get("until")),
        required=("since",),
        optional=("until",),
        flow=True,
    ),
    "fairness": RunMetric(
        "",
        "goodput of a connection over that of one of the others",
        lambda dataset, run, flow, p: fairness(dataset.flows.get(run.run_id, ()), str(flow)),
        required=("flow",),
        flow=True,
    ),
}
