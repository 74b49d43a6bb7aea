# SPDX-License-Identifier: Apache-2.0
"""Phases of a BBR flow from its exported gains, and the quantities that the draft's cases check in them.

A phase is a stretch of samples with equal gains (struct tcp_bbr_info). STARTUP has a pacing gain above 1.5, DRAIN is
the phase after STARTUP, PROBE_RTT has a cwnd gain of at most 1. In PROBE_BW the pacing gain is above 1 (PROBE_UP),
below 1 (PROBE_DOWN), or 1 (cruise and refill). This holds for versions 1 to 3. A program names its phases in its qlog.
Bandwidths are those of full frames on the wire, so that they compare with a link's rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, cast

import numpy as np
import numpy.typing as npt

from longfat.dataset.load import Columns
from longfat.metrics.data import Array, NoValue, Point, Points, RunData, Source
from longfat.metrics.registry import metric

WIRE = 1538 / 1448  # bytes on the wire for each byte of payload, at an MTU of 1500 B with timestamps
STARTUP_GAIN = 1.5  # between PROBE_UP's 1.25 and STARTUP's 2.77
PROBE_RTT_GAIN = 1.0  # cwnd gain; 0.5 in the draft
SEGMENT_BYTES = 1448
SEGMENT_BITS = 8 * SEGMENT_BYTES
FRAME_BYTES = 38  # of Ethernet on the wire: preamble, header, checksum, gap
# Phases by the state that a qlog names; samples of a flow by its columns, and the unit of each in those of a column.
STATES = {"startup": "startup", "drain": "drain", "probe_rtt": "probe-rtt"}
STATES |= {"probe_bw_up": "up", "probe_bw_down": "down", "probe_bw_cruise": "level", "probe_bw_refill": "level"}
QLOG = {"bandwidth_bps": "bw", "pacing_bps": "pacing", "min_rtt_us": "min_rtt", "cwnd_bytes": "cwnd"}
QLOG |= {"inflight_bytes": "inflight", "lost_packets": "retrans"}
QLOG |= {name: name for name in ("pacing_gain", "cwnd_gain")}
PACKETS = ("t_us", "received_packets", "received_bytes", "payload_bytes")
UNITS = {"min_rtt_us": 1e6, "cwnd_bytes": SEGMENT_BYTES, "inflight_bytes": SEGMENT_BYTES}
RECOVERY = 3  # TCP_CA_Recovery (linux/tcp.h); TCP_CA_Loss is 4
NEAR = 0.02  # "close" in the draft: within 2 %
WHOLE_S = 0.9  # least part of the second after PROBE_RTT
PLATEAU = 1.25  # growth of the bandwidth that restarts the count of rounds without growth


@dataclass(frozen=True)
class Phase:
    """Samples ``first`` to before ``end`` of a flow, all with the same gains."""

    name: str
    first: int
    end: int


@dataclass(frozen=True)
class Flow:
    """The samples of the only flow, of equal length: times in seconds, rates in bit/s of payload, amounts in segments.

    ``retrans`` counts retransmissions so far, ``lost`` the segments that are thought lost and were not sent again yet.
    ``recovers`` is true from a loss to the end of its recovery. ``wire`` has bytes on the wire for each counted one,
    ``states`` the name of the phase at each sample if the sender names it.
    """

    t: Array
    bw: Array
    min_rtt: Array
    pacing_gain: Array
    cwnd_gain: Array
    cwnd: Array
    inflight: Array
    delivered: Array
    retrans: Array
    lost: Array
    pacing: Array
    recovers: Array
    wire: float = WIRE
    states: npt.NDArray[np.str_] | None = None

    def __getattr__(self, name: str) -> Array:
        raise NoValue(f"the qlog of the program has no {name}")

    @cached_property
    def phases(self) -> list[Phase]:
        """The phases in order of time."""
        seen = self.pacing_gain + 1j * self.cwnd_gain if self.states is None else self.states
        changes = np.flatnonzero(seen[1:] != seen[:-1]) + 1
        found: list[Phase] = []
        for first, end in pairwise([0, *changes.tolist(), len(self.t)]):
            name = self._name(first, found[-1].name if found else None)
            if found and found[-1].name == name and name != "up":
                found[-1] = Phase(name, found[-1].first, end)
            else:
                found.append(Phase(name, first, end))
        return found

    def _name(self, at: int, before: str | None) -> str:
        if self.states is not None:
            return str(self.states[at])
        pacing, cwnd = self.pacing_gain[at], self.cwnd_gain[at]
        if cwnd <= PROBE_RTT_GAIN:
            return "probe-rtt"
        if pacing > STARTUP_GAIN:
            return "startup"
        if before == "startup":
            return "drain"
        return "up" if pacing > 1 else "down" if pacing < 1 else "level"

    def named(self, name: str) -> list[Phase]:
        """Return the phases with a name that began and ended in the run. Raises NoValue without any."""
        found = [one for one in self.phases if one.name == name and one.end < len(self.t)]
        if not found:
            raise NoValue(f"the flow leaves no phase {name.upper()}")
        return found

    def at(self, t_us: float) -> int:
        """Return the last sample before a time. Raises NoValue without one."""
        found = int(np.searchsorted(self.t, t_us / 1e6)) - 1
        if found < 0:
            raise NoValue("no sample before that time")
        return found

    def seconds(self, phase: Phase) -> float:
        """Return the length of a phase."""
        return float(self.t[min(phase.end, len(self.t) - 1)] - self.t[phase.first])

    def rounds(self, first: int, end: int) -> float:
        """Return the round trips between two samples: one ends when all that was in flight at its start has arrived."""
        count, start = 0.0, self.delivered[first]
        goal = start + self.inflight[first]
        for at in range(first, end):
            if self.delivered[at] >= goal:
                count, start, goal = count + 1, self.delivered[at], self.delivered[at] + max(self.inflight[at], 1)
        return count + float(self.delivered[min(end, len(self.t) - 1)] - start) / float(max(goal - start, 1))

    def bdp(self, at: int) -> float:
        """Return bandwidth times minimum RTT as the flow estimates them, in segments."""
        return float(self.bw[at] * self.min_rtt[at] / SEGMENT_BITS)


def _flow(data: RunData, _name: str | None) -> Flow:
    key = "bbr-draft", data.run.run_id
    if key not in data.dataset.computed:
        own = data.dataset.columns_of("qlog", data.run.run_id)
        data.dataset.computed[key] = _read_qlog(data, own) if len(own["t_us"]) else _read(data)
    return cast(Flow, data.dataset.computed[key])


def _read(data: RunData) -> Flow:
    states = data.dataset.columns_of("cca_state", data.run.run_id)
    if "pacing_gain" not in states["name"]:
        raise NoValue("the algorithm does not export BBR's state (INET_DIAG_BBRINFO)")
    times = np.unique(states["t_us"][states["name"] == "pacing_gain"])
    found: dict[str, Array] = {}
    for column, name in (("bw", "bw_bps"), ("min_rtt", "min_rtt_us"), *((n, n) for n in ("pacing_gain", "cwnd_gain"))):
        own = states["name"] == name
        found[column] = states["value"][own][np.searchsorted(states["t_us"][own], times)].astype(np.float64)
    sockets = data.dataset.columns_of("sockets", data.run.run_id)
    where = np.searchsorted(sockets["t_us"], times)
    segments = {name: f"{name}_segments" for name in ("cwnd", "inflight", "delivered", "lost")}
    for column, name in (segments | {"retrans": "retrans_total", "pacing": "pacing_bps"}).items():
        found[column] = sockets[name][where].astype(np.float64)
    found |= {"min_rtt": found["min_rtt"] / 1e6, "recovers": sockets["ca_state"][where] >= RECOVERY}
    begun = found["pacing_gain"] > 0  # zero before the first acknowledgment
    if not begun.any():
        raise NoValue("nothing was acknowledged")
    return Flow(times[begun].astype(np.float64) / 1e6, **{name: values[begun] for name, values in found.items()})


def _read_qlog(data: RunData, own: Columns) -> Flow:
    """Return the samples of a program, from the first one with a phase and all values that its qlog has."""
    names = [STATES.get(str(name).lower().replace("-", "_")) for name in own["state"]]
    read = {name: own[column].astype(np.float64) / UNITS.get(column, 1) for column, name in QLOG.items()}
    lacking = {name for name, values in read.items() if np.isnan(values).all()}
    begun = np.isfinite([read[name] for name in read.keys() - lacking]).all(axis=0) & np.array(
        [name is not None for name in names]
    )
    if not begun.any():
        raise NoValue(f"the qlog has no congestion_state_updated with a phase: {', '.join(STATES)}")
    first = int(np.argmax(begun))
    for at in range(first, len(names)):  # another state, such as recovery, is within a phase
        names[at] = names[at] or names[at - 1]
    packets = data.dataset.columns_of("program_packets", data.run.run_id)
    times, count, framed, arrived = (packets[name].astype(np.float64) for name in PACKETS)
    flow = Flow(
        t := own["t_us"][first:] / 1e6,
        **{name: values[first:] for name, values in read.items()},
        delivered=np.interp(t, times / 1e6, arrived / SEGMENT_BYTES, left=0),
        lost=np.zeros_like(t),
        recovers=own["state"][first:] == "recovery",
        wire=float((framed[-1] + FRAME_BYTES * count[-1]) / max(arrived[-1], 1)),
        states=np.array(names[first:]),
    )
    for name in lacking:
        object.__delattr__(flow, name)
    return flow


Bbr = Annotated[Flow, Source(_flow)]


def _mean(values: list[float]) -> float:
    if not values:
        raise NoValue("the flow has no such phase")
    return float(np.mean(values))


@metric("Mbit/s", "estimated bandwidth at the end of STARTUP, as full frames on the wire")
def startup_bandwidth(f: Bbr) -> float:
    """Largest bandwidth that the flow estimates in STARTUP, in Mbit/s of full frames on the wire."""
    phase = f.named("startup")[0]
    return float(f.bw[phase.first : phase.end].max()) * f.wire / 1e6


@metric("rounds", "round trips of STARTUP since the bandwidth grew by 25 %", over=("place",))
def plateau_rounds(f: Bbr) -> Points:
    """Round trips from the last growth of the estimated bandwidth by 25 % to the end of STARTUP.

    The flow's own round trips begin at other times, so the count is uncertain by one.
    """
    return [Point(startup_rounds(f), {"place": 0.0}, give=1.0)]


@metric("rounds", "round trips of STARTUP on the plateau", bounds=(0, np.inf))
def startup_rounds(f: Bbr) -> float:
    """The number of ``plateau_rounds``."""
    phase = f.named("startup")[0]
    grown, level = phase.first, float(f.bw[phase.first])
    for at in range(phase.first, phase.end):
        if f.bw[at] >= PLATEAU * level:
            grown, level = at, float(f.bw[at])
    return f.rounds(grown, phase.end)


@metric("", "pacing gain after STARTUP")
def gain_after_startup(f: Bbr) -> float:
    """Pacing gain of the phase that follows STARTUP."""
    return float(f.pacing_gain[f.named("startup")[0].end])


@metric("s", "time until STARTUP ends", bounds=(0, np.inf))
def leaves_startup(f: Bbr, after_us: float) -> float:
    """Seconds from a time in STARTUP to its end; to the end of the flow if it stays."""
    return _left(f, "startup", after_us)


@metric("s", "time until PROBE_UP ends", bounds=(0, np.inf))
def leaves_up(f: Bbr, after_us: float) -> float:
    """Seconds from a time in PROBE_UP to its end; to the end of the flow if it stays."""
    return _left(f, "up", after_us)


def _left(f: Flow, name: str, after_us: float) -> float:
    at = f.at(after_us)
    phase = next(one for one in f.phases if one.first <= at < one.end)
    if phase.name != name:
        raise NoValue(f"the flow is in phase {phase.name.upper()} at that time, not in {name.upper()}")
    return float(f.t[min(phase.end, len(f.t) - 1)]) - after_us / 1e6


@metric("rounds", "round trips in PROBE_UP at a time", bounds=(0, np.inf))
def up_so_far(f: Bbr, at_us: float) -> float:
    """Round trips from the beginning of PROBE_UP to a time; 0 in another phase."""
    at = f.at(at_us)
    phase = next(one for one in f.phases if one.first <= at < one.end)
    return f.rounds(phase.first, at) if phase.name == "up" else 0.0


@metric("", "pacing gain in DRAIN")
def drain_gain(f: Bbr) -> float:
    """Pacing gain of the phase after STARTUP."""
    return float(f.pacing_gain[f.named("drain")[0].first])


@metric("BDP", "inflight at the end of DRAIN", bounds=(0, np.inf))
def drain_inflight(f: Bbr) -> float:
    """Segments in flight in the last sample of DRAIN, over the flow's own estimate of the BDP."""
    at = f.named("drain")[0].end - 1
    return float(f.inflight[at]) / f.bdp(at)


@metric("rounds", "round trips in DRAIN", bounds=(0, np.inf))
def drain_rounds(f: Bbr) -> float:
    """Round trips in DRAIN; to the end of the flow if it stays there."""
    phase = next((one for one in f.phases if one.name == "drain"), None)
    if phase is None:
        raise NoValue("the flow has no DRAIN")
    return f.rounds(phase.first, phase.end)


@metric("", "cwnd gain after DRAIN")
def gain_after_drain(f: Bbr) -> float:
    """Cwnd gain of the phase that follows DRAIN: 2 to 2.25 in PROBE_BW."""
    return float(f.cwnd_gain[f.named("drain")[0].end])


@metric("rounds", "round trips in PROBE_UP", bounds=(0, np.inf))
def up_rounds(f: Bbr) -> float:
    """Mean number of round trips in PROBE_UP."""
    return _mean([f.rounds(one.first, one.end) for one in f.named("up")])


@metric("", "pacing gain after PROBE_UP")
def gain_after_up(f: Bbr) -> float:
    """Largest pacing gain of the phases that follow PROBE_UP: below 1 in PROBE_DOWN."""
    return max(float(f.pacing_gain[one.end]) for one in f.named("up"))


@metric("", "pacing gain in PROBE_DOWN")
def down_gain(f: Bbr) -> float:
    """Mean pacing gain in PROBE_DOWN."""
    return _mean([float(f.pacing_gain[one.first]) for one in f.named("down")])


@metric("BDP", "inflight at the end of PROBE_DOWN", bounds=(0, np.inf))
def down_inflight(f: Bbr) -> float:
    """Segments in flight at the end of PROBE_DOWN over the flow's estimate of the BDP, mean over its phases."""
    return _mean([float(f.inflight[one.end - 1]) / f.bdp(one.end - 1) for one in f.named("down")])


@metric("", "pacing gain after PROBE_DOWN")
def gain_after_down(f: Bbr) -> float:
    """Mean pacing gain of the phases that follow PROBE_DOWN: 1 in cruise and refill."""
    return _mean([float(f.pacing_gain[one.end]) for one in f.named("down")])


@metric("s", "longest PROBE_DOWN", bounds=(0, np.inf))
def longest_down(f: Bbr, since_us: float) -> float:
    """Length of the longest PROBE_DOWN that begins after a time, in seconds."""
    found = [f.seconds(one) for one in f.named("down") if f.t[one.first] >= since_us / 1e6]
    if not found:
        raise NoValue("no PROBE_DOWN begins after that time")
    return max(found)


@metric("phases", "PROBE_RTTs", bounds=(0, np.inf))
def probe_rtts(f: Bbr, since_us: float = 0.0, until_us: float = np.inf) -> float:
    """Number of PROBE_RTT phases that begin in a window of time."""
    begun = [float(f.t[one.first]) for one in f.phases if one.name == "probe-rtt"]
    return float(sum(since_us / 1e6 <= t <= until_us / 1e6 for t in begun))


@metric("s", "time without a lower RTT before PROBE_RTT", bounds=(0, np.inf))
def probe_rtt_interval(f: Bbr) -> float:
    """Seconds from the last fall of the minimum RTT to the first PROBE_RTT."""
    first = f.named("probe-rtt")[0].first
    falls = np.flatnonzero(np.diff(f.min_rtt[:first]) < 0)
    return float(f.t[first] - (f.t[falls[-1] + 1] if len(falls) else f.t[0]))


@metric("", "cwnd gain in PROBE_RTT")
def probe_rtt_gain(f: Bbr) -> float:
    """Mean cwnd gain in PROBE_RTT."""
    return _mean([float(f.cwnd_gain[one.first]) for one in f.named("probe-rtt")])


@metric("s", "length of PROBE_RTT", bounds=(0, np.inf))
def probe_rtt_lasts(f: Bbr) -> float:
    """Length of the shortest PROBE_RTT in seconds, from the sample before it to the first sample after it."""
    return min(float(f.t[one.end] - f.t[max(one.first - 1, 0)]) for one in f.named("probe-rtt"))


@metric("", "pacing gain after PROBE_RTT")
def gain_after_probe_rtt(f: Bbr) -> float:
    """Mean pacing gain of the phases that follow PROBE_RTT: above 1.5 in STARTUP, at most 1.25 in PROBE_BW."""
    return _mean([float(f.pacing_gain[one.end]) for one in f.named("probe-rtt")])


@metric("%", "delivery in the second after PROBE_RTT", bounds=(0, 200))
def resumes(f: Bbr) -> float:
    """Segments delivered in the second from one minimum RTT after PROBE_RTT on, in percent of the bandwidth."""
    rates = []
    for one in f.named("probe-rtt"):
        start = float(f.t[one.end] + f.min_rtt[one.end])
        first, end = f.at(start * 1e6), f.at(start * 1e6 + 1e6)
        took = float(f.t[end] - f.t[first])
        if took < WHOLE_S:
            continue  # the flow ends before
        rates.append(100 * SEGMENT_BITS * float(f.delivered[end] - f.delivered[first]) / took / float(f.bw[first]))
    return _mean(rates)


@metric("BDP", "congestion window at the end of STARTUP", bounds=(0, np.inf))
def startup_cwnd(f: Bbr) -> float:
    """Largest congestion window of STARTUP over the BDP at its end."""
    phase = f.named("startup")[0]
    return float(f.cwnd[phase.first : phase.end].max()) / f.bdp(phase.end - 1)


@metric("BDP", "congestion window in cruise", bounds=(0, np.inf))
def cruise_cwnd(f: Bbr, since_us: float) -> float:
    """Median of the congestion window over the BDP where both gains are those of cruise."""
    chosen = _cruise(f, since_us)
    return float(np.median(f.cwnd[chosen] * SEGMENT_BITS / (f.bw[chosen] * f.min_rtt[chosen])))


@metric("Mbit/s", "pacing rate in cruise, as full frames on the wire", bounds=(0, np.inf))
def cruise_pacing(f: Bbr, since_us: float) -> float:
    """Median of the pacing rate where the gain is 1, in Mbit/s of full frames on the wire."""
    return float(np.median(f.pacing[_cruise(f, since_us)])) * f.wire / 1e6


def _cruise(f: Flow, since_us: float) -> npt.NDArray[np.bool_]:
    chosen: npt.NDArray[np.bool_] = (f.t >= since_us / 1e6) & (f.pacing_gain == 1) & (f.cwnd_gain > PROBE_RTT_GAIN)
    if not chosen.any():
        raise NoValue("the flow never cruises")
    return chosen


@metric("segments", "least congestion window", bounds=(0, np.inf))
def least_cwnd(f: Bbr, since_us: float) -> float:
    """Smallest congestion window from a time on."""
    return float(f.cwnd[f.at(since_us) :].min())


@metric("Mbit/s", "least estimated bandwidth, as full frames on the wire", bounds=(0, np.inf))
def least_bandwidth(f: Bbr, since_us: float) -> float:
    """Smallest bandwidth that the flow estimates from a time on, in Mbit/s of full frames on the wire."""
    return float(f.bw[f.at(since_us) :].min()) * f.wire / 1e6


@metric("rounds", "round trips until the estimated bandwidth is near a rate", bounds=(0, np.inf))
def rounds_to(f: Bbr, rate_bps: float, from_us: float) -> float:
    """Round trips from a time until the estimated bandwidth is within 2 % of a rate; to the end if it never is."""
    first = f.at(from_us)
    near = np.flatnonzero(np.abs(f.bw[first:] * f.wire / rate_bps - 1) <= NEAR)
    return f.rounds(first, first + int(near[0]) if len(near) else len(f.t) - 1)


@metric("phases", "PROBE_UPs until the estimated bandwidth is near a rate", bounds=(0, np.inf))
def cycles_to(f: Bbr, rate_bps: float, from_us: float) -> float:
    """PROBE_UP phases from a time to the first estimate within 2 % of a rate; infinite if there is none."""
    first = f.at(from_us)
    near = np.flatnonzero(np.abs(f.bw[first:] * f.wire / rate_bps - 1) <= NEAR)
    if not len(near):
        return float("inf")
    return float(sum(one.name == "up" and first <= one.first <= first + int(near[0]) for one in f.phases))


@metric("%", "retransmitted segments", bounds=(0, 100))
def resent_share(f: Bbr, since_us: float) -> float:
    """Retransmissions in percent of all segments sent from a time on."""
    at = f.at(since_us)
    again, arrived = (float(values[-1] - values[at]) for values in (f.retrans, f.delivered))
    return 100 * again / max(again + arrived, 1)


@metric("recoveries", "recoveries", bounds=(0, np.inf))
def recoveries(f: Bbr) -> float:
    """Number of recoveries that began and ended."""
    return float(len(_recoveries(f)))


@metric("", "congestion window after a recovery", bounds=(0, np.inf))
def window_kept(f: Bbr) -> float:
    """Congestion window two minimum RTTs after a recovery over the window before it, the least of all recoveries."""
    return min((float(f.cwnd[_later(f, end)] / f.cwnd[first]) for first, end in _recoveries(f)), default=np.nan)


@metric("", "estimated bandwidth after a recovery", bounds=(0, np.inf))
def bandwidth_kept(f: Bbr) -> float:
    """Estimated bandwidth two minimum RTTs after a recovery over the estimate before it, the least of all."""
    return min((float(f.bw[_later(f, end)] / f.bw[first]) for first, end in _recoveries(f)), default=np.nan)


def _recoveries(f: Flow) -> list[tuple[int, int]]:
    """Return the last sample before and the first sample after each recovery. Raises NoValue without any."""
    steps = np.diff(f.recovers.astype(np.int64))
    found = list(zip(np.flatnonzero(steps > 0), np.flatnonzero(steps < 0) + 1, strict=False))
    if not found:
        raise NoValue("nothing looked lost")
    return [(int(first), int(end)) for first, end in found]


def _later(f: Flow, at: int) -> int:
    return f.at(1e6 * float(f.t[at] + 2 * f.min_rtt[at]))


@metric("RTT", "time from a loss in PROBE_UP to its end", bounds=(0, np.inf))
def up_after_loss(f: Bbr) -> float:
    """Time from the first loss found in PROBE_UP, or at its end, to its end, in minimum RTTs: mean over its phases."""
    found = []
    for one in f.named("up"):
        known = f.retrans + f.lost
        again = np.flatnonzero(known[one.first : one.end + 1] > known[max(one.first - 1, 0)])
        if len(again):
            found.append(float((f.t[one.end] - f.t[one.first + int(again[0])]) / f.min_rtt[one.first]))
    if not found:
        raise NoValue("nothing is lost in PROBE_UP")
    return float(np.mean(found))


@metric("phases", "PROBE_UPs", bounds=(0, np.inf))
def probe_ups(f: Bbr, since_us: float) -> float:
    """Number of PROBE_UP phases that begin after a time."""
    return float(sum(one.name == "up" and f.t[one.first] >= since_us / 1e6 for one in f.phases))


@metric("Mbit/s", "delivered rate, as full frames on the wire", bounds=(0, np.inf))
def delivers(f: Bbr, since_us: float) -> float:
    """Rate of delivered segments from a time to the last sample, in Mbit/s of full frames on the wire."""
    at = f.at(since_us)
    return float((f.delivered[-1] - f.delivered[at]) * SEGMENT_BITS / (f.t[-1] - f.t[at])) * f.wire / 1e6
