# SPDX-License-Identifier: Apache-2.0
"""The input of metrics: the data of one run, and the sources for the arguments of a metric. Defines no metric."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from longfat.dataset.load import Dataset, Row, Run, Series

Array = npt.NDArray[np.float64]  # one-dimensional unless stated


class NoValue(Exception):
    """Absence of a value; the text is the reason."""


class OutOfBounds(NoValue):
    """A value outside the bounds of its metric: the run is invalid."""


@dataclass(frozen=True)
class Samples:
    """The kernel's samples of one sending socket (tcp_info), by ascending time in microseconds; equal lengths.

    ``ca_state`` contains the kernel's numbers. ``cwnd``, ``ssthresh`` and ``dwnd`` are in segments. ``acked`` is the
    number of bytes acknowledged so far, ``delivered`` the number of segments delivered so far. An RTT of 0 is unknown;
    a congestion control without a delay window has a ``dwnd`` of NaN. ``began_us`` is the earliest time at which the
    connection may have begun. ``end`` is the time at which it closed and the bytes acknowledged by then, None if
    unknown; it is not a sample, because the last window may be much older.
    """

    t_us: Array
    ca_state: Array
    cwnd: Array
    ssthresh: Array
    acked: Array
    srtt_us: Array = field(default_factory=lambda: np.empty(0))
    min_rtt_us: Array = field(default_factory=lambda: np.empty(0))
    dwnd: Array = field(default_factory=lambda: np.empty(0))
    delivered: Array = field(default_factory=lambda: np.empty(0))
    began_us: float = 0.0
    end: tuple[float, float] | None = None

    def since(self, since_us: float) -> Samples:
        """Return the samples from that time on."""
        return self.where(self.t_us >= since_us)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Samples:
        """Return the samples that a mask selects."""
        arrays = {name: values[chosen] for name in _COLUMNS if len(values := getattr(self, name))}
        return replace(self, **arrays)

    def acked_by(self, t_us: Array) -> Array:
        """Return the bytes acknowledged at these times, interpolated between beginning, samples and end."""
        end_us, end_acked = ([value] for value in self.end) if self.end else ([], [])
        times, acked = np.concatenate((self.t_us, end_us)), np.concatenate((self.acked, end_acked))
        began = min(self.began_us, float(times[0]))
        by: Array = np.interp(t_us, np.append(began, times), np.append(0.0, acked), left=0)
        return by


_COLUMNS = {
    **{name: name for name in ("t_us", "ca_state", "srtt_us", "min_rtt_us")},
    **{name: f"{name}_segments" for name in ("cwnd", "ssthresh", "dwnd", "delivered")},
    "acked": "bytes_acked",
}
CLOSED = 7  # TCP_CLOSE (net/tcp_states.h): the state of a connection's last sample


@dataclass(frozen=True)
class Point:
    """One value of a metric with several values in a run, and the arguments of a formula at this point, by name.

    The first argument identifies the point. For an argument that is an array, the formula's value is the mean over the
    array. ``give`` is the uncertainty of the value in both directions, such as one segment of a window.
    """

    value: float
    at: Mapping[str, float | Array]
    give: float = 0.0

    @property
    def place(self) -> float:
        """The mean of its first argument."""
        return float(np.mean(next(iter(self.at.values()))))


Points = Sequence[Point]


def rows_by(flows: npt.NDArray[Any], streams: npt.NDArray[Any]) -> dict[tuple[str, int], npt.NDArray[np.intp]]:
    """Return the indices of the rows of each flow and stream, in the order of the rows; the pairs are sorted."""
    names, of = np.unique(flows, return_inverse=True)
    order = np.lexsort((streams, of))
    changes = np.flatnonzero((np.diff(of[order]) != 0) | (np.diff(streams[order]) != 0)) + 1
    groups = np.split(order, changes) if len(order) else []
    return {(str(names[of[own[0]]]), int(streams[own[0]])): own for own in groups}


@dataclass(frozen=True)
class Port:
    """Samples of a shaped port, by time in microseconds: bytes sent so far, and bits that could have been sent."""

    node: str
    t_us: Array
    sent_bytes: Array
    capacity_bits: Array

    @property
    def rate_bps(self) -> float:
        """Mean rate of the wire up to the last sample."""
        return float(1e6 * self.capacity_bits[-1] / self.t_us[-1])


@dataclass(frozen=True)
class Arrivals:
    """Packets received so far, and marked packets received so far, by time in microseconds."""

    t_us: Array
    packets: Array
    marked: Array


@dataclass(frozen=True)
class Span:
    """A span of time in microseconds."""

    start_us: float
    end_us: float


@dataclass(frozen=True)
class RunData:
    """One run of a dataset."""

    dataset: Dataset
    run: Run

    @property
    def flows(self) -> Sequence[Row]:
        """The rows of ``flows``, one for each flow."""
        return self.dataset.flows.get(self.run.run_id, ())

    @property
    def web(self) -> Sequence[Row]:
        """The rows of ``web``, one for each web traffic."""
        return self.dataset.web.get(self.run.run_id, ())

    def streams(self, flow: str | None = None) -> dict[tuple[str, int], Samples]:
        """Return the samples of connections, of one flow or of all, by flow and number. Raises NoValue without any."""
        table = self.dataset.sockets(self.run.run_id, flow)
        starts = {row["flow"]: float(row["start_us"]) for row in self.flows}
        closed = table["state"] == CLOSED
        ticks = np.unique(table["t_us"][~closed])
        interval_us = float(np.diff(ticks).min()) if len(ticks) > 1 else np.inf
        found = {}
        for (name, stream), own in rows_by(table["flow"], table["stream"]).items():
            began_us = max(starts.get(name, 0.0), float(table["t_us"][own[0]]) - interval_us)
            is_closed = closed[own]
            open_, ended = own[~is_closed], own[is_closed]
            columns = {name: table[column][open_].astype(np.float64) for name, column in _COLUMNS.items()}
            end = (float(table["t_us"][ended[-1]]), float(table["bytes_acked"][ended[-1]])) if len(ended) else None
            found[name, stream] = Samples(**columns, began_us=began_us, end=end)
        if not found:
            raise NoValue("no socket was sampled")
        return found

    def by_flow(self, flow: str | None = None) -> dict[str, Samples]:
        """Return the samples of each flow's only connection. Raises NoValue if there are several, or no samples."""
        streams = self.streams(flow)
        found = {name: samples for (name, _), samples in streams.items()}
        for name, samples in found.items():
            if not len(samples.t_us):
                raise NoValue(f"the connection of flow {name!r} ended before its first sample")
            count = sum(name == other for other, _ in streams)
            if count > 1:
                raise NoValue(f"flow {name!r} has {count} streams, each with a congestion window of its own")
        return found

    def connection(self, flow: str | None = None) -> Samples:
        """Return the samples of the only connection of one flow. Raises NoValue for several flows or connections."""
        flows = self.by_flow(flow)
        if len(flows) > 1:
            raise NoValue(f"the samples are of {len(flows)} flows; name one of {', '.join(flows)}")
        return next(iter(flows.values()))

    def outstanding(self, flow: str | None = None) -> Series:
        """Return the outstanding data in bytes of a captured flow. Raises NoValue if none was recorded."""
        series = self.dataset.outstanding(self.run.run_id, flow)
        if not len(series.t_us):
            raise NoValue("no outstanding data or no RTT was recorded")
        return series

    def base_rtt_us(self, flow: str | None = None) -> float:
        """Return the smallest RTT of the sockets of a flow, or of all. Raises NoValue if none was recorded."""
        rtts = [row["min_rtt_us"] for row in self.flows if flow in (None, row["flow"]) and row["min_rtt_us"]]
        if not rtts:
            raise NoValue("no outstanding data or no RTT was recorded")
        return float(min(rtts))

    def at_end(self, counter: str) -> float:
        """Return a counter of ``sockets`` at the end of each connection, summed over the connections."""
        table = self.dataset.sockets(self.run.run_id, None)
        last = [own[-1] for own in rows_by(table["flow"], table["stream"]).values()]
        return float(table[counter][last].sum())

    def flow_rows(self) -> Sequence[Row]:
        """Return the rows of ``flows``. Raises NoValue without a flow."""
        if not self.flows:
            raise NoValue("the run has no flow")
        return self.flows

    def together(self) -> Span:
        """Return the time from the latest first byte to the earliest end of the flows. Raises NoValue without any."""
        rows = self.flow_rows()
        return Span(max(row["first_byte_us"] for row in rows), min(row["end_us"] for row in rows))

    def bottleneck(self) -> Port:
        """Return the slowest shaped port of a router. Raises NoValue if it was not sampled."""
        table = self.dataset.port_samples(self.run.run_id)
        ports = []
        for name in dict.fromkeys(table["interface"].tolist()):
            own = table["interface"] == name
            series = (table[column][own].astype(np.float64) for column in ("t_us", "sent_bytes", "capacity_bits"))
            ports.append(Port(table["node"][own][0], *series))
        ends = {row[end] for row in self.flows for end in ("sender", "receiver")}
        nodes = [row["node"] for row in self.dataset.achieved.get(self.run.run_id, ())]
        return slowest(ports, ends | {node for node in nodes if nodes.count(node) == 1})

    def arrivals(self, flow: str | None = None) -> list[Arrivals]:
        """Return the arrivals at the receiver of one flow, or of all. Raises NoValue if flows share the receiver."""
        receivers = {row["receiver"] for row in self.flows if flow in (None, row["flow"])}
        shared = [row["flow"] for row in self.flows if flow not in (None, row["flow"]) and row["receiver"] in receivers]
        if shared:
            raise NoValue(f"the receiver of {flow!r} is that of {', '.join(shared)} too: marks cannot be told apart")
        table = self.dataset.arrivals(self.run.run_id)
        found = []
        for node in sorted(receivers & set(table["node"].tolist())):
            own = table["node"] == node
            columns = ("t_us", "packets", "marked_packets")
            found.append(Arrivals(*(table[column][own].astype(np.float64) for column in columns)))
        if not found:
            raise NoValue("no arrivals were counted: no queue of the run marks")
        return found

    def pings(self) -> Series:
        """Return the round-trip times of the answered pings in microseconds, by the time of the request."""
        return self.dataset.pings(self.run.run_id)

    def counted(self, node: str, counter: str) -> float:
        """Return the increase of a kernel counter of a node during the run."""
        rows = self.dataset.counters.get(self.run.run_id, ())
        return float(sum(row["value"] for row in rows if row["node"] == node and row["counter"] == counter))

    def ends(self, flow: str | None = None) -> tuple[str, str]:
        """Return sender and receiver of a flow, or of the first. Raises NoValue without such a flow."""
        rows = [row for row in self.flows if flow in (None, row["flow"])]
        if not rows:
            raise NoValue("the run has no such flow")
        return rows[0]["sender"], rows[0]["receiver"]


def inside(t_us: Array, since_us: float | None, until_us: float | None) -> npt.NDArray[np.bool_]:
    """Return the mask of the times in the window, including both ends; None leaves an end open."""
    since = -np.inf if since_us is None else since_us
    until = np.inf if until_us is None else until_us
    chosen: npt.NDArray[np.bool_] = (t_us >= since) & (t_us <= until)
    return chosen


def union_us(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of time spans, each given by start and end."""
    total, until = 0.0, -np.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def slowest(ports: Sequence[Port], hosts: Collection[str]) -> Port:
    """Return the router port with the smallest capacity. Raises NoValue unless there is exactly one."""
    found = [port for port in ports if port.node not in hosts]
    least = min((port.capacity_bits[-1] for port in found), default=0)
    found = [port for port in found if port.capacity_bits[-1] == least]
    if len(found) != 1:
        raise NoValue(f"{len(found)} ports of routers were sampled, and a bottleneck is one")
    return found[0]


@dataclass(frozen=True)
class Source:
    """The origin of a metric's argument."""

    read: Callable[[RunData, str | None], object]
    by_flow: bool = False


def columns_of(table: str) -> Source:
    """Return the source of a traffic kind's own table."""
    return Source(lambda data, flow: data.dataset.columns_of(table, data.run.run_id))


# Sources of arguments, by annotation.
WholeRun = Annotated[RunData, Source(lambda data, flow: data)]
FlowRows = Annotated[Sequence[Row], Source(lambda data, flow: data.flow_rows())]
WebRows = Annotated[Sequence[Row], Source(lambda data, flow: data.web)]
Connection = Annotated[Samples, Source(lambda data, flow: data.connection(flow), by_flow=True)]
Connections = Annotated[Sequence[Samples], Source(lambda data, flow: list(data.streams(flow).values()), by_flow=True)]
EachFlow = Annotated[Mapping[str, Samples], Source(lambda data, flow: data.by_flow())]
Outstanding = Annotated[Series, Source(lambda data, flow: data.outstanding(flow), by_flow=True)]
BaseRtt = Annotated[float, Source(lambda data, flow: data.base_rtt_us(flow), by_flow=True)]
Together = Annotated[Span, Source(lambda data, flow: data.together())]
Bottleneck = Annotated[Port, Source(lambda data, flow: data.bottleneck())]
Received = Annotated[Sequence[Arrivals], Source(lambda data, flow: data.arrivals(flow), by_flow=True)]
Pings = Annotated[Series, Source(lambda data, flow: data.pings())]
