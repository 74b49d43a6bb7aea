# SPDX-License-Identifier: Apache-2.0
"""Rates over part of a run, BBR's own state, and the law of the paper with its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np

from longfat.metrics.data import Array, NoValue, Point, Points, RunData, WholeRun, columns_of, inside
from longfat.metrics.registry import metric
from longfat.relations.formulas import formula

States = Annotated[Mapping[str, Array], columns_of("cca_state")]

SECOND_US = 1e6
PACKET_BYTES = 1500  # of the law
FRAME_BYTES, WIRE_BYTES, PAYLOAD_BYTES = 1514, 1538, 1448  # of a full segment: in a queue, on the wire, for the user
PROBE_BW, PROBE_RTT = 2, 3  # the numbers of BBR's modes in cca_state
PROBE_S, PERIOD_S = 0.2, 10.0  # length of ProbeRTT at 4 packets, and time from one to the next


@metric("Mb/s", "acknowledged rate", bounds=(0, np.inf))
def acknowledged_rate(
    data: WholeRun, flow: str | None = None, since_us: float = 0.0, until_us: float | None = None
) -> float:
    """Acknowledged bytes per second of all connections of a flow in the window, in Mb/s."""
    return _rate(data, flow, since_us, until_us)


@metric("%", "share of the acknowledged rate", bounds=(0, 100))
def acknowledged_share(data: WholeRun, flow: str, since_us: float = 0.0, until_us: float | None = None) -> float:
    """Acknowledged rate of one flow in percent of the sum of all flows, in the window."""
    total = _rate(data, None, since_us, until_us)
    if total <= 0:
        raise NoValue("nothing was acknowledged")
    return 100 * _rate(data, flow, since_us, until_us) / total


@metric("Mb/s", "median acknowledged rate of a second", bounds=(0, np.inf))
def between_probes(data: WholeRun, flow: str, since_us: float) -> float:
    """Median of the acknowledged rates of all whole seconds from ``since_us`` on: ProbeRTT is shorter than the rest."""
    return float(np.median(_seconds(data, flow, since_us)))


@metric("s", "convergence time", bounds=(0, np.inf))
def convergence_time(data: WholeRun, flow: str) -> float:
    """First second after which the mean rate of the last 120 s changes by less than 0.1 % in a second.

    Before 120 s the mean begins with the run. Criterion of the first re-run.
    """
    rates = _seconds(data, flow, 0.0)
    sums = np.concatenate(([0.0], np.cumsum(rates)))
    ends = np.arange(1, len(sums))
    starts = np.maximum(0, ends - 120)
    means = (sums[ends] - sums[starts]) / (ends - starts)
    steady = np.flatnonzero(np.abs(np.diff(means)) < 0.001 * means[:-1])
    if not len(steady):
        raise NoValue("the mean rate is never steady")
    return float(steady[0] + 1)


@metric("", "BBR's part of the link", over=("buffer", "flows", "rate", "rtt"))
def bbr_part(data: WholeRun, rtt_us: float, since_us: float) -> Points:
    """Part of the link that the segments of all BBR flows take, with their headers."""
    buffer, flows, rate_bps = _setting(data)
    part = 1e6 * _rate(data, "bbr", since_us, None) / rate_bps * WIRE_BYTES / PAYLOAD_BYTES
    return [Point(part, {"buffer": buffer, "flows": flows, "rate": rate_bps, "rtt": rtt_us})]


@metric("", "BBR's part of the link between its probes", over=("buffer", "flows", "rate", "rtt"))
def bbr_part_between_probes(data: WholeRun, rtt_us: float, since_us: float) -> Points:
    """BBR's share of the median acknowledged rates of a second: ProbeRTT is shorter than the rest."""
    buffer, flows, rate_bps = _setting(data)
    own, other = (between_probes(data, flow, since_us) for flow in ("bbr", "other"))
    return [Point(own / (own + other), {"buffer": buffer, "flows": flows, "rate": rate_bps, "rtt": rtt_us})]


@metric("%", "error of the law, headers not counted", bounds=(0, np.inf))
def law_error(data: WholeRun, rtt_us: float, since_us: float) -> float:
    """Difference between the law and BBR's rate over the link rate, in percent of the latter."""
    measured, law = _measured_and_law(data, rtt_us, since_us)
    return 100 * abs(law - measured) / measured


@metric("", "law less measured part of the link, headers not counted", bounds=(-1, 1))
def law_excess(data: WholeRun, rtt_us: float, since_us: float) -> float:
    """The law less BBR's rate over the link rate."""
    measured, law = _measured_and_law(data, rtt_us, since_us)
    return law - measured


@metric("%", "mean length of the bottleneck's queue", bounds=(0, 100))
def queue_fill(data: WholeRun, since_us: float) -> float:
    """Mean length of the bottleneck's queue in percent of its limit; its packets count as full frames."""
    rows = [row for row in data.dataset.achieved.get(data.run.run_id, ()) if row["queue_kind"] == "bfifo"]
    if len(rows) != 1:
        raise NoValue(f"{len(rows)} queues have a limit in bytes, and a bottleneck is one")
    queue = data.dataset.queues(data.run.run_id)[rows[0]["interface"]]
    chosen = inside(queue.t_us, since_us, None)
    if not chosen.any():
        raise NoValue("the queue was not sampled in the window")
    return float(100 * FRAME_BYTES * queue.values[chosen].mean() / rows[0]["limit_bytes"])


@metric("ms", "BBR's estimate of the base RTT", bounds=(0, np.inf))
def rtt_estimate(data: WholeRun, states: States, since_us: float) -> float:
    """Median of BBR's minimum RTT over all samples and connections."""
    return float(np.median(_state(states, "min_rtt_us", since_us))) / 1000


@metric("", "BBR's estimate of the base RTT over the law's", bounds=(0, np.inf))
def rtt_estimate_over_law(data: WholeRun, states: States, rtt_us: float, since_us: float) -> float:
    """BBR's estimate over what is left in ProbeRTT: the base RTT, the loss-based share p of a full queue q, 4 packets.

    By the law l + (p q + 4 N) / c, of which its equations 6 and 9 follow.
    """
    loss_based = 1 - acknowledged_share(data, "bbr", since_us) / 100
    buffer, flows, rate_bps = _setting(data)
    probes_us = 8e6 * 4 * flows * PACKET_BYTES / rate_bps
    return 1000 * rtt_estimate(data, states, since_us) / (rtt_us + loss_based * buffer * rtt_us + probes_us)


@metric("", "data in flight over BBR's cap", bounds=(0, np.inf))
def cap_use(data: WholeRun, states: States, since_us: float) -> float:
    """Median of the data in flight over twice the estimated bandwidth times the estimated RTT, in ProbeBW."""
    table = data.dataset.sockets(data.run.run_id, "bbr")
    own = (table["stream"] == 0) & (table["t_us"] >= since_us)
    inflight = dict(zip(table["t_us"][own].tolist(), table["inflight_segments"][own].tolist(), strict=True))
    found = {name: _of_first(states, name) for name in ("bw_bps", "min_rtt_us", "mode")}
    uses = [
        8e6 * PAYLOAD_BYTES * inflight[t] / (2 * found["bw_bps"][t] * found["min_rtt_us"][t])
        for t, mode in found["mode"].items()
        if mode == PROBE_BW and t in inflight and found["bw_bps"].get(t) and found["min_rtt_us"].get(t)
    ]
    if not uses:
        raise NoValue("BBR was not sampled in ProbeBW")
    return float(np.median(uses))


@metric("kB", "data in flight of a flow", bounds=(0, np.inf))
def inflight(data: WholeRun, flow: str, since_us: float) -> float:
    """Mean data in flight of a connection of the flow in kB (1000 bytes), over samples with any."""
    table = data.dataset.sockets(data.run.run_id, flow)
    chosen = (table["t_us"] >= since_us) & (table["inflight_segments"] > 0)
    if not chosen.any():
        raise NoValue("no socket was sampled in the window")
    return float(table["inflight_segments"][chosen].mean()) * PAYLOAD_BYTES / 1000


@metric("s", "time from one ProbeRTT to the next", bounds=(0, np.inf))
def probe_period(states: States, since_us: float) -> float:
    """Median time between the starts of ProbeRTT of the first connection."""
    times, modes = (np.array(list(part)) for part in zip(*sorted(_of_first(states, "mode").items()), strict=True))
    begins = times[1:][(modes[1:] == PROBE_RTT) & (modes[:-1] != PROBE_RTT) & (times[1:] >= since_us)]
    if len(begins) < 2:
        raise NoValue("ProbeRTT began less than twice")
    return float(np.median(np.diff(begins))) / SECOND_US


@metric("segments", "congestion window in ProbeRTT", bounds=(0, np.inf))
def probe_window(data: WholeRun, states: States, since_us: float) -> float:
    """Median of the first connection's congestion window over the samples in ProbeRTT."""
    table = data.dataset.sockets(data.run.run_id, "bbr")
    own = table["stream"] == 0
    windows = dict(zip(table["t_us"][own].tolist(), table["cwnd_segments"][own].tolist(), strict=True))
    found = [windows[t] for t, mode in _of_first(states, "mode").items() if mode == PROBE_RTT and t >= since_us]
    if not found:
        raise NoValue("BBR was not sampled in ProbeRTT")
    return float(np.median(found))


@metric("%", "time at a pacing gain", bounds=(0, 100))
def gain_time(states: States, gain_segments: float, since_us: float) -> float:
    """Share of the samples in ProbeBW with this pacing gain, in percent."""
    gains, modes = _of_first(states, "pacing_gain"), _of_first(states, "mode")
    own = [gain for t, gain in gains.items() if t >= since_us and modes.get(t) == PROBE_BW]
    if not own:
        raise NoValue("BBR was not sampled in ProbeBW")
    return 100 * sum(abs(gain - gain_segments) < 0.01 for gain in own) / len(own)


@formula
def ware_loss_based(buffer: float, flows: float, rate: float, rtt: float) -> float:
    """Part of the link of all loss-based flows at convergence: max(0, 1/2 - 1/(2 X) - 4 N / q) (Ware 2019, eq. 9)."""
    queue = buffer * rate * rtt / 8e6 / PACKET_BYTES
    return max(0.0, 0.5 - 1 / (2 * buffer) - 4 * flows / queue)


@formula
def ware_bbr_between_probes(buffer: float, flows: float, rate: float, rtt: float) -> float:
    """Part of the link of all BBR flows between their probes."""
    return 1 - ware_loss_based(buffer, flows, rate, rtt)


@formula
def ware_bbr(buffer: float, flows: float, rate: float, rtt: float) -> float:
    """Part of the link of all BBR flows, with the time lost to ProbeRTT (Ware 2019, eq. 10 and 11)."""
    probe_s = buffer * rtt / 1e6 + PROBE_S + rtt / 1e6
    return ware_bbr_between_probes(buffer, flows, rate, rtt) * (1 - probe_s / PERIOD_S)


@formula
def ware_bbr_rate(buffer: float, flows: float, rate: float, rtt: float) -> float:
    """The same in Mb/s."""
    return ware_bbr(buffer, flows, rate, rtt) * rate / 1e6


@formula
def ware_alone_rtt(flows: float, rate: float, rtt: float) -> float:
    """Base RTT in ms that N BBR flows alone estimate: max(l, (4 N - c l) / c + l) (Ware 2019, eq. 6)."""
    return max(rtt / 1000, 4 * flows * PACKET_BYTES * 8e3 / rate)


@formula
def ware_alone_inflight(flows: float, rate: float, rtt: float) -> float:
    """Data in flight of each of N BBR flows alone, in kB: twice its part of the rate times that RTT."""
    return 2 * rate / flows * ware_alone_rtt(flows, rate, rtt) / 8e6


def _rate(data: RunData, flow: str | None, since_us: float, until_us: float | None) -> float:
    end = min(float(row["end_us"]) for row in data.flow_rows())
    until = end if until_us is None else until_us
    if not since_us < until <= end:
        raise NoValue(f"the flows end after {end / 1e6:g} s")
    window = np.array([since_us, until])
    return float(sum(8 * np.diff(one.acked_by(window))[0] for one in data.streams(flow).values())) / (until - since_us)


def _seconds(data: RunData, flow: str, since_us: float) -> Array:
    """Return the acknowledged rate in Mb/s of each whole second of the window."""
    end = min(float(row["end_us"]) for row in data.flow_rows())
    edges: Array = np.arange(since_us, end + 1, SECOND_US)
    if len(edges) < 2:
        raise NoValue(f"the flows end after {end / 1e6:g} s")
    by = sum(one.acked_by(edges) for one in data.streams(flow).values())
    return 8 * np.diff(by) / SECOND_US


def _setting(data: RunData) -> tuple[float, float, float]:
    """Return the buffer in BDP, the number of BBR flows, and the link's rate in bit/s."""
    flows = sum(row["streams"] for row in data.flow_rows() if row["flow"] == "bbr")
    return float(data.run.factors["buffer"]), float(flows), data.bottleneck().rate_bps


def _measured_and_law(data: RunData, rtt_us: float, since_us: float) -> tuple[float, float]:
    buffer, flows, rate_bps = _setting(data)
    measured = 1e6 * _rate(data, "bbr", since_us, None) / rate_bps
    if measured <= 0:
        raise NoValue("no BBR flow carried anything")
    return measured, ware_bbr(buffer, flows, rate_bps, rtt_us)


def _state(states: Mapping[str, Array], name: str, since_us: float) -> Array:
    chosen = (states["flow"] == "bbr") & (states["name"] == name) & (states["t_us"] >= since_us)
    if not chosen.any():
        raise NoValue("the state of BBR was not sampled in the window")
    values: Array = states["value"][chosen]
    return values


def _of_first(states: Mapping[str, Array], name: str) -> dict[float, float]:
    """Return the values of the first BBR connection by time."""
    chosen = (states["flow"] == "bbr") & (states["stream"] == 0) & (states["name"] == name)
    return dict(zip(states["t_us"][chosen].tolist(), states["value"][chosen].tolist(), strict=True))
