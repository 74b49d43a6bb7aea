# SPDX-License-Identifier: Apache-2.0
"""The effect of new flows on an established flow: harm, and the convergence time.

A flow is alone from its start to the start of the next flow, and competes from the start of the last flow to the end of
the first. The first ``settle_us`` of both times do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longfat.dataset.load import Row
from longfat.metrics.data import Connections, EachFlow, FlowRows, NoValue, Samples, Span, Together, inside
from longfat.metrics.registry import metric
from longfat.metrics.together import rates_mbps

WARE = "Ware, Mukerjee, Seshan and Sherry, HotNets 2019"
SETTLE_US = 5e6


@metric("", "harm to the goodput", bounds=(-np.inf, 1), source=WARE)
def harm(rows: FlowRows, flows: EachFlow, flow: str, settle_us: float = SETTLE_US) -> float:
    """Share of the flow's rate that competing flows take: (alone - competing) / alone.

    1 means starvation, 0 no harm, and a negative value a gain.
    """
    before, after = alone_and_in_company(rows, flow, settle_us)
    alone, company = (float(rates_mbps([flows[flow]], span)[0, 0]) for span in (before, after))
    if alone <= 0:
        raise NoValue(f"nothing of {flow!r} was acknowledged while it was alone")
    return (alone - company) / alone


@metric("", "harm to the delay", bounds=(-np.inf, 1), source=WARE)
def delay_harm(rows: FlowRows, flows: EachFlow, flow: str, settle_us: float = SETTLE_US) -> float:
    """Share of the flow's mean RTT added by competing flows: (competing - alone) / competing.

    The RTT is the kernel's smoothed RTT (tcp_info tcpi_rtt).
    """
    before, after = (_mean_rtt(flows[flow], span) for span in alone_and_in_company(rows, flow, settle_us))
    return (after - before) / after


@metric("s", "time until a new flow has its share", bounds=(0, np.inf), source="RFC 5166, section 2.3")
def convergence(rows: FlowRows, flows: EachFlow, part_segments: float, interval_us: float = 1e6) -> float:
    """Seconds from the start of the last flow until it has this part of its fair share in an interval.

    If the flow never reaches it, the value is its whole sending time, a lower bound. ``part`` is a number.
    """
    last = max(rows, key=lambda row: float(row["start_us"]))
    span = Span(float(last["start_us"]), float(min(row["end_us"] for row in rows)))
    names = list(flows)
    if len(names) < 2:
        raise NoValue("convergence is between two flows or more")
    rates = rates_mbps([flows[name] for name in names], span, interval_us)
    wanted = part_segments * rates.sum(axis=1) / len(names)
    reached = np.flatnonzero((rates[:, names.index(last["flow"])] >= wanted) & (wanted > 0))
    return float(interval_us * (reached[0] + 1) if len(reached) else span.end_us - span.start_us) / 1e6


@metric("%", "rate of the slowest connection, of an equal share", bounds=(0, 100))
def least_share(connections: Connections, span: Together) -> float:
    """Rate of the slowest connection while all flows send, in percent of an equal share of the aggregate rate."""
    (rates,) = rates_mbps(connections, span)
    if len(rates) < 2 or rates.sum() <= 0:
        raise NoValue("a share is one of two connections or more that carry something")
    return float(100 * rates.min() / rates.mean())


def alone_and_in_company(rows: Sequence[Row], flow: str, settle_us: float) -> tuple[Span, Span]:
    """Return the flow's time alone and its time with competing flows. Raises NoValue if one of them is missing."""
    own = next(row for row in rows if row["flow"] == flow)
    starts = [float(row["start_us"]) for row in rows if row["flow"] != flow]
    if not starts:
        raise NoValue(f"{flow!r} is never in company")
    alone = Span(float(own["start_us"]) + settle_us, min(starts))
    company = Span(max(starts) + settle_us, float(min(row["end_us"] for row in rows)))
    for span, which in ((alone, "alone"), (company, "in company")):
        if span.end_us <= span.start_us:
            raise NoValue(f"{flow!r} is {which} for less than {settle_us / 1e6:g} s")
    return alone, company


def _mean_rtt(samples: Samples, span: Span) -> float:
    chosen = inside(samples.t_us, span.start_us, span.end_us) & (samples.srtt_us > 0)
    if not chosen.any():
        raise NoValue("no round-trip time was sampled")
    return float(samples.srtt_us[chosen].mean())
