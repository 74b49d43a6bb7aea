# SPDX-License-Identifier: Apache-2.0
"""Formulas and metrics of the laws: growth of a window each RTT, the share that a loss leaves of it, and the queue."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
import numpy.typing as npt

from longfat.dataset.load import Columns
from longfat.metrics import data
from longfat.metrics.data import Array, Connection, Connections, EachFlow, FlowRows, NoValue, Point, Points, Samples
from longfat.metrics.epochs import after_losses, epochs, is_open, rounds, rtts_to_reach, slope
from longfat.metrics.registry import metric
from longfat.relations.formulas import (
    CUBIC_BETA,
    cubic_k,
    formula,
    highspeed_rows,
    highspeed_table_increase,
    scalable_halving_rtts,
)

CA_STATES = tuple(range(5))  # all of enum tcp_ca_state (linux/tcp.h)
DISORDER = 1
FIRST = "flow1"
SocketRows = Annotated[Columns, data.Source(lambda run, flow: run.dataset.sockets(run.run.run_id, FIRST))]
BIC_KERNEL_BETA = 819 / 1024  # net/ipv4/tcp_bic.c
CUBIC_KERNEL_BETA = 717 / 1024  # net/ipv4/tcp_cubic.c
LEAST_SAMPLES = 10
FALL = 5  # segments of a step down that only Compound TCP's delay part takes
STEPS = 10  # RTTs over which the growth of Compound TCP is averaged
LEAST_STEP, LEAST_DISTANCE = 20, 80  # segments: smaller steps of FAST TCP, and nearer windows, are too coarse
TRACED_BACK = 20  # segments of growth from which the end of a pause is extrapolated
BIC_S_MAX = 32
FILTER_US = 5e6  # time after a loss until Westwood's filter of the rate has settled


@formula
def compound_tuned_gamma(before: float, queued: float) -> float:
    """gamma after a loss that found this backlog: a sample is 3/4 of it and has a weight of 0.8 (Li 2006)."""
    return 0.2 * before + 0.8 * 0.75 * queued


@formula
def scalable_kept(window: float, b: float, lwnd: float) -> float:
    """Part of the window that Scalable TCP keeps on a loss: 1 - b, and a half up to lwnd (Kelly 2003)."""
    return 0.5 if window <= lwnd else 1 - b


@formula
def bic_increase(distance: float) -> float:
    """Segments that BIC adds each RTT so far below its target: to the middle, at most S_max = 32 (Xu et al. 2004)."""
    return min(distance / 2, BIC_S_MAX)


@formula
def bic_share(distance: float) -> float:
    """Part of the distance to its target that BIC covers in an RTT (Xu et al. 2004)."""
    return bic_increase(distance) / distance


@formula
def bic_kernel_share(distances: float) -> float:
    """The same near the target as net/ipv4/tcp_bic.c has it: twice a quarter of the distance cut to whole segments.

    Twice, as it divides by the ratio of acknowledgments (bictcp_update) and counts segments (tcp_cong_avoid_ai).
    """
    return 2 * (distances // 4) / distances


@formula
def cubic_regained(share: float) -> float:
    """Part of a loss that CUBIC has made up after a share of K: C (t - K)^3 + W_max (RFC 9438, section 4.2)."""
    return 1 + (share - 1) ** 3


@formula
def westwood_window(rate: float, least_rtt: float) -> float:
    """Window in segments after a loss: the measured rate in segments a second times the least RTT (Mascolo 2001)."""
    return rate * least_rtt / 1e6


@formula
def compound_increase(window: float, alpha: float, k: float) -> float:
    """Segments that both parts of Compound TCP add each RTT, alpha w^k, one of them the loss part's (Tan 2006)."""
    return max(alpha * math.pow(window, k), 1)


@formula
def compound_given(backlog: float, eta: float) -> float:
    """Segments that the delay part of Compound TCP gives up for a backlog (Tan 2006)."""
    return eta * backlog


@formula
def compound_seen_backlog(path: float, gamma: float, alpha: float, k: float) -> float:
    """The backlog by which Compound TCP has at the latest seen gamma on a path that holds this many segments.

    It decides once each RTT on RTTs of the one before: by then the window is up to two RTTs' growth above gamma.
    """
    return gamma + 2 * compound_increase(path + gamma, alpha, k)


def parts(samples: Samples, above: float, up_to: float, least: float) -> Iterator[Samples]:
    """Yield each epoch's samples of windows above one size and up to another, if these grow by ``least``."""
    for epoch in epochs(samples):
        part = epoch.samples.where((epoch.samples.cwnd > above) & (epoch.samples.cwnd <= up_to))
        if len(part.t_us) >= LEAST_SAMPLES // 2 and np.ptp(part.cwnd) >= least:
            yield part


@metric("segments", "growth each RTT", over=("window",))
def growth(
    samples: Connection, above_segments: float = 0.0, up_to_segments: float = np.inf, least_segments: float = 0.0
) -> Points:
    """Growth of the window in segments per RTT, in each epoch: its slope over the RTTs."""
    return [
        Point(slope(rounds(part), part.cwnd), {"window": part.cwnd})
        for part in parts(samples, above_segments, up_to_segments, least_segments)
    ]


@metric("", "growth each RTT as a share of the window", over=("window",))
def relative_growth(
    samples: Connection, above_segments: float = 0.0, up_to_segments: float = np.inf, least_segments: float = 0.0
) -> Points:
    """Relative growth of the window per RTT, in each epoch: 0.01 if it is 1.01 times as large an RTT later."""
    return [
        Point(float(np.expm1(slope(rounds(part), np.log(part.cwnd)))), {"window": part.cwnd})
        for part in parts(samples, above_segments, up_to_segments, least_segments)
    ]


@metric("segments", "growth each RTT in a row of HighSpeed TCP's table", over=("window",))
def growth_in_rows(samples: Connection, above_segments: float = 0.0, up_to_segments: float = np.inf) -> Points:
    """Growth of the window in segments per RTT, in each row of the table that an epoch passes without a cut."""
    found = []
    for epoch in epochs(samples):
        window = epoch.samples.cwnd
        rows = np.array([highspeed_table_increase(one) for one in window])
        for row in sorted(set(rows.tolist())):
            part = epoch.samples.where((rows == row) & (window > above_segments) & (window <= up_to_segments))
            if len(part.cwnd) and np.ptp(part.cwnd) >= LEAST_SAMPLES and (np.diff(part.cwnd) >= 0).all():
                found.append(Point(slope(rounds(part), part.cwnd), {"window": highspeed_rows()[int(row) - 1]}))
    return found


@metric("segments", "growth each RTT of all windows together")
def growth_together(connections: Connections) -> float:
    """Growth of the sum of all windows in segments per RTT, after the last loss of any of them."""
    last = [epochs(samples)[-1].samples for samples in connections]
    times = list(set.intersection(*(set(samples.t_us.tolist()) for samples in last)))
    last = [samples.where(np.isin(samples.t_us, times)) for samples in last]
    cwnd, delivered = (np.sum([getattr(one, name) for one in last], axis=0) for name in ("cwnd", "delivered"))
    return slope(rounds(Samples(last[0].t_us, last[0].ca_state, cwnd, cwnd, delivered, delivered=delivered)), cwnd)


@metric("", "share of the window kept on a loss", over=("window",))
def kept(samples: Connection) -> Points:
    """Share of the window that each loss after the first leaves: ssthresh, where recovery ends."""
    return [Point(epoch.left, {"window": before}) for epoch, before in after_losses(samples)]


@metric("", "share of the window kept on each loss in turn", over=("moment",))
def kept_in_turn(samples: Connection, since_us: float) -> Points:
    """Share of the window that each loss leaves, by its time: the losses of a periodic flow meet one window."""
    moments = [(float(epoch.samples.t_us[0]), epoch) for epoch, _ in after_losses(samples)]
    return [Point(epoch.left, {"moment": moment}) for moment, epoch in moments if moment >= since_us]


@metric("", "share of the window that a loss takes", over=("window",))
def taken(samples: Connection) -> Points:
    """Share of the window that each loss after the first takes.

    The kernel takes whole segments, and the window may have grown by a segment since the last sample before the loss.
    """
    return [Point(1 - epoch.left, {"window": before}, 1 / before) for epoch, before in after_losses(samples)]


@metric("", "share of the window that the first loss takes", over=("window",))
def first_taken(samples: Connection) -> Points:
    """Share of the window that the loss at the end of slow start takes."""
    window = float(samples.where(np.cumsum(~is_open(samples)) == 0).cwnd[-1])
    return [Point(1 - float(epochs(samples)[0].samples.ssthresh[0]) / window, {"window": window})]


@metric("RTTs", "time to make up for a loss", over=("window",))
def rtts_to_recover(samples: Connection) -> Points:
    """RTTs from the end of recovery until the window is back, if there is no loss in between."""
    return [
        Point(rtts_to_reach(epoch.samples, before), {"window": before})
        for epoch, before in after_losses(samples)
        if epoch.samples.cwnd.max() >= before
    ]


@metric("RTTs", "time to half the rate", over=("window",))
def rtts_to_halve(samples: Connection) -> Points:
    """RTTs with a loss each that halve the window, from the share that each loss leaves."""
    return [Point(scalable_halving_rtts(1 - point.value), point.at) for point in kept(samples)]


@metric("RTTs", "time to twice the rate")
def rtts_to_double(samples: Connection) -> float:
    """RTTs in which the window after the first loss doubles."""
    first = epochs(samples)[0].samples
    return rtts_to_reach(first, 2 * float(first.cwnd[0]))


@metric("segments", "growth each RTT by the time since the loss", over=("since", "during", "window"))
def growth_by_time(samples: Connection) -> Points:
    """Growth of the window in segments per RTT, over half a second around each time since the last recovery.

    The second in which alpha begins to rise is left out: the kernel has a new alpha with each segment added.
    """
    last, found = epochs(samples)[-1].samples, []
    length_s = float(last.t_us[-1] - last.t_us[0]) / 1e6
    for since_s in np.concatenate(([0.5], np.arange(2, length_s - 0.25, 0.5))):
        ends = 1e6 * (since_s - 0.25), 1e6 * (since_s + 0.25)
        passed = last.t_us - last.t_us[0]
        part = last.where((passed >= ends[0]) & (passed < ends[1]))
        at: dict[str, float | Array] = {
            "since": 1e6 * since_s,
            "during": np.linspace(*ends, 101),
            "window": float(part.cwnd.mean()),
        }
        found.append(Point(slope(rounds(part), part.cwnd), at))
    return found


def targets(samples: Samples, beta: float) -> list[tuple[Samples, float]]:
    """Return each epoch with its target: the window w of the loss before it, from ssthresh = beta w.

    With fast convergence, a loss below the target before it sets the target at (1 + beta) / 2 of the loss's window.
    """
    found: list[tuple[Samples, float]] = []
    for epoch in epochs(samples):
        lost_at = (float(epoch.samples.ssthresh[0]) + 0.5) / beta
        fell = bool(found) and lost_at < found[-1][1]
        found.append((epoch.samples, lost_at * (1 + beta) / 2 if fell else lost_at))
    return found


@metric("segments", "growth each RTT far from the target", over=("distance",))
def growth_far(samples: Connection) -> Points:
    """Growth of BIC's window in segments per RTT while its target is farther away than two S_max."""
    found = []
    for epoch, target in targets(samples, BIC_KERNEL_BETA):
        far = epoch.where(target - epoch.cwnd > 2.1 * BIC_S_MAX)
        if len(far.t_us) >= LEAST_SAMPLES:
            found.append(Point(slope(rounds(far), far.cwnd), {"distance": target - float(far.cwnd.mean())}))
    return found


@metric("", "share of the distance covered each RTT near the target", over=("distance", "distances"))
def approach(samples: Connection) -> Points:
    """Share of the distance to its target that BIC's window covers in an RTT, from a fitted exponential."""
    found = []
    for epoch, target in targets(samples, BIC_KERNEL_BETA):
        distance = target - epoch.cwnd
        near = (distance < 1.9 * BIC_S_MAX) & (distance > 20)
        if near.sum() >= LEAST_SAMPLES:
            at: dict[str, float | Array] = {"distance": float(distance[near].mean()), "distances": distance[near]}
            found.append(Point(-slope(rounds(epoch)[near], np.log(distance[near])), at))
    return found


@metric("", "share regained of what the loss took", over=("share",))
def regained(samples: Connection) -> Points:
    """Share of the loss that CUBIC has recovered, at quarters of the law's K after it."""
    found = []
    for epoch, target in targets(samples, CUBIC_KERNEL_BETA):
        lost, k_us = (1 - CUBIC_BETA) * target, 1e6 * cubic_k(target)
        for share in np.arange(0.25, 1.51, 0.25):
            at_us = epoch.t_us[0] + share * k_us
            if at_us < epoch.t_us[-1]:
                window = float(np.interp(at_us, epoch.t_us, epoch.cwnd))
                found.append(Point((window - (target - lost)) / lost, {"share": float(share)}))
    return found


@metric("segments", "segments in the queue")
def queued(connections: Connections, since_us: float, on_path_segments: float) -> float:
    """Mean of the sum of all windows minus the segments that fill the path."""
    return sum(float(samples.since(since_us).cwnd.mean()) for samples in connections) - on_path_segments


@metric("", "share of all windows")
def window_share(flows: EachFlow, flow: str, since_us: float) -> float:
    """A flow's share of the means of all windows."""
    means = {name: float(samples.since(since_us).cwnd.mean()) for name, samples in flows.items()}
    return means[flow] / sum(means.values())


@metric("segments", "largest window")
def largest_window(samples: Connection, since_us: float) -> float:
    """The largest congestion window."""
    return float(samples.since(since_us).cwnd.max())


@metric("", "share of all bytes")
def bytes_share(flows: FlowRows, flow: str) -> float:
    """A flow's share of the goodput of all."""
    return float(
        sum(row["goodput_bps"] for row in flows if row["flow"] == flow) / sum(row["goodput_bps"] for row in flows)
    )


@metric("segments", "window after a loss", over=("window", "rate", "least_rtt"))
def window_left(samples: Connection) -> Points:
    """The window after each loss; ``rate`` is in segments a second, over the second before the loss."""
    found = []
    for before, after in pairwise(epochs(samples)):
        own = before.samples
        if own.t_us[-1] - own.t_us[0] >= FILTER_US:
            last = own.since(float(own.t_us[-1]) - 1e6)
            rate = float(last.delivered[-1] - last.delivered[0]) / float(last.t_us[-1] - last.t_us[0]) * 1e6
            at = {"window": float(own.cwnd[-1]), "rate": rate, "least_rtt": float(last.min_rtt_us[-1])}
            found.append(Point(float(after.samples.cwnd[0]), at))
    return found


@dataclass(frozen=True)
class Indication:
    """The window before and after an early indication, in segments, and the pause of its growth, in RTTs."""

    before: float
    after: float
    pause: float


def indications(samples: Samples) -> Iterator[Indication]:
    """Yield the early indications after which the window grew again.

    The growth after a pause is extrapolated backwards to the window at which it began.
    """
    calm, cwnd, t_us = is_open(samples), samples.cwnd, samples.t_us
    fell = np.flatnonzero(calm[1:] & calm[:-1] & (cwnd[1:] < 0.6 * cwnd[:-1]))
    for at, end in pairwise((*fell, len(t_us) - 1)):
        after = samples.where((t_us >= t_us[at + 1]) & (t_us < t_us[end]))
        left = float(after.cwnd[0])
        grown = after.where((after.cwnd > left) & (after.cwnd < left + TRACED_BACK))
        if after.cwnd[-1] >= left + TRACED_BACK:
            rate = slope(grown.t_us, grown.cwnd)
            began_us = float(grown.t_us.mean()) - (float(grown.cwnd.mean()) - left - 0.5) / rate
            pause_us = began_us - float(t_us[at : at + 2].mean())
            yield Indication(float(cwnd[at]), left, pause_us / float(samples.srtt_us[at]))


@metric("", "share of the window kept on an early indication", over=("window",))
def kept_early(samples: Connection) -> Points:
    """Share of the window that each early indication of congestion, without a loss, leaves."""
    return [Point(one.after / one.before, {"window": one.before}) for one in indications(samples)]


@metric("RTTs", "time without growth after an early indication", over=("window",))
def pause(samples: Connection) -> Points:
    """RTTs without growth after each early indication of congestion."""
    return [Point(one.pause, {"window": one.before}) for one in indications(samples)]


def falls(samples: Samples, least: float) -> npt.NDArray[np.intp]:
    """Return the places of samples before a fall of the window by ``least`` segments or more without a loss."""
    calm = is_open(samples)
    return np.flatnonzero(calm[1:] & calm[:-1] & (np.diff(samples.cwnd) <= -least))


@metric("", "share of the way covered by an update", over=("window",))
def update(samples: Connection, goal_segments: float) -> Points:
    """Share of the distance to its goal that each update of FAST TCP covers, on the way down from a full queue."""
    cwnd = samples.cwnd
    return [
        Point(float(cwnd[at] - cwnd[at + 1]) / float(cwnd[at] - goal_segments), {"window": float(cwnd[at])})
        for at in falls(samples, LEAST_STEP)
        if cwnd[at] - goal_segments >= LEAST_DISTANCE
    ]


@metric("segments", "growth of both parts each RTT", over=("window",))
def growth_by_steps(samples: Connection, rtt_us: float, up_to_segments: float) -> Points:
    """Growth of Compound TCP's window in segments per RTT, over ten RTTs, without the first three of an epoch."""
    found = []
    for epoch in epochs(samples):
        own = epoch.samples
        for start_us in np.arange(own.t_us[0] + 3 * rtt_us, own.t_us[-1] - STEPS * rtt_us, STEPS * rtt_us):
            windows = np.interp(start_us + rtt_us * np.arange(STEPS + 1), own.t_us, own.cwnd)
            if windows[-1] < up_to_segments:
                found.append(Point(float(windows[-1] - windows[0]) / STEPS, {"window": windows[:-1]}))
    return found


@metric("segments", "growth each RTT with a queue", over=("window",))
def growth_queued(samples: Connection, above_segments: float, up_to_segments: float) -> Points:
    """Growth of Compound TCP's window in segments per RTT, each time that it passes from one size to the other."""
    inside = is_open(samples) & (samples.cwnd > above_segments) & (samples.cwnd <= up_to_segments)
    found = []
    for start, end in pairwise(np.flatnonzero(np.diff(inside.astype(int)))):
        part = np.arange(start + 1, end + 1)
        if inside[part].all() and np.ptp(samples.cwnd[part]) >= FALL:
            own = samples.where(np.isin(samples.t_us, samples.t_us[part]))
            found.append(Point(slope(rounds(own), own.cwnd), {"window": own.cwnd}))
    return found


@metric("segments", "backlog when the delay part gives way", over=("moment",))
def backlog_at_fall(samples: Connection, on_path_segments: float) -> Points:
    """Backlog of Compound TCP at each decrease of its delay part."""
    return [
        Point(float(samples.cwnd[at]) - on_path_segments, {"moment": float(samples.t_us[at])})
        for at in falls(samples, FALL)
    ]


@metric("segments", "segments that the delay part gives up", over=("backlog",))
def given_up(samples: Connection, on_path_segments: float) -> Points:
    """Segments that each decrease of the delay part takes, unless none are left; the kernel takes whole segments."""
    cwnd = samples.cwnd
    return [
        Point(float(cwnd[at] - cwnd[at + 1]), {"backlog": float(cwnd[at]) - on_path_segments}, give=1)
        for at in falls(samples, FALL)
        if samples.dwnd[at + 1]
    ]


def tuned(samples: Samples, on_path: float, gamma: float, queued_at: Array) -> Points:
    """Return the backlog at each decrease of the delay part, with gamma before the last loss and that loss's backlog.

    The loss at the end of slow start tunes nothing.
    """
    calm, found = is_open(samples), []
    losses = np.flatnonzero(calm[:-1] & ~calm[1:])[1:]
    for number, at in enumerate(losses, 1):
        until_us = samples.t_us[losses[number]] if number < len(losses) else np.inf
        own = [fall for fall in falls(samples, FALL) if samples.t_us[at] < samples.t_us[fall] < until_us]
        loss = {"losses": float(number), "before": gamma, "queued": float(queued_at[at])}
        found += [Point(float(samples.cwnd[fall]) - on_path, loss) for fall in own]
        gamma = compound_tuned_gamma(gamma, float(queued_at[at]))
    return found


@metric("segments", "backlog when the delay part gives way", over=("losses", "before", "queued"))
def tuned_by_diffwnd(
    samples: Connection, on_path_segments: float, queue_segments: float, gamma_segments: float
) -> Points:
    """Backlog of Compound TCP at each decrease of its delay part, if the whole backlog tunes gamma."""
    return tuned(samples, on_path_segments, gamma_segments, np.full(len(samples.t_us), queue_segments))


@metric("segments", "backlog when the delay part gives way", over=("losses", "before", "queued"))
def tuned_by_loss_window(
    samples: Connection, on_path_segments: float, queue_segments: float, gamma_segments: float
) -> Points:
    """Backlog of Compound TCP at each decrease of its delay part, if the loss part's backlog tunes gamma."""
    share = 1 - samples.dwnd / np.maximum(samples.cwnd, 1)
    return tuned(samples, on_path_segments, gamma_segments, queue_segments * share)


def waits_ms(sockets: SocketRows, states: Collection[int]) -> list[float]:
    """Return the times in ms from the last delivery to each retransmission in one of the recovery states."""
    names = ("t_us", "retrans_total", "delivered_segments")
    times, sent, delivered = (np.asarray(sockets[name], dtype=np.int64) for name in names)
    last_us = np.maximum.accumulate(np.where(np.diff(delivered, prepend=delivered[:1]) > 0, times, 0))
    late = np.flatnonzero((np.diff(sent) > 0) & np.isin(sockets["ca_state"][:-1], tuple(states)))
    if not len(late):
        raise NoValue("nothing was retransmitted out of these states")
    return [float(times[at + 1] - last_us[at]) / 1000 for at in late]


@metric("ms", "time without a delivery before a retransmission")
def retransmission_wait(sockets: SocketRows) -> float:
    """Time from the last delivery to the first retransmission, to a sample."""
    return waits_ms(sockets, CA_STATES)[0]


@metric("ms", "waiting time for a reordered segment")
def reordering_wait(sockets: SocketRows) -> float:
    """Median time from the last delivery to a retransmission after fewer than three duplicate ACKs.

    A third duplicate ends the wait early: times below a quarter of the least RTT are left out.
    """
    least_ms = float(np.median(sockets["min_rtt_us"])) / 4000
    return float(np.median([wait for wait in waits_ms(sockets, (DISORDER,)) if wait >= least_ms]))


@metric("ms", "time from an immediate to a delayed ACK")
def acknowledgment_delay(samples: Connection) -> float:
    """Time between the first two ACKs of data that was sent at one time, to a sample."""
    moments = samples.t_us[1:][(np.diff(samples.acked) > 0) & (samples.acked[1:] > 1)]  # the first byte is the SYN
    if len(moments) < 2:
        raise NoValue("fewer than two ACKs were seen")
    return float(moments[1] - moments[0]) / 1000
