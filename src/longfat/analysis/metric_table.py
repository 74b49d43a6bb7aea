# SPDX-License-Identifier: Apache-2.0
"""The table of metrics that claims and figures may name: what each needs of a run, its parameters and its unit.

Owns names and needs; the definitions are in ``metrics``, ``carried``, ``link``, ``together``, ``window`` and
``steadiness``. Must not choose runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from longfat.analysis import carried, link, metrics
from longfat.analysis.metrics import NoValue, Samples
from longfat.analysis.steadiness import STEADINESS_METRICS
from longfat.analysis.together import TOGETHER_METRICS
from longfat.analysis.window import WINDOW_METRICS
from longfat.dataset.load import Series

Parameters = Mapping[str, float]
Streams = Mapping[tuple[str, int], Samples]  # by flow and number of the stream


@dataclass(frozen=True)
class Metric:
    """What a metric needs and gives. ``least`` is the number of repetitions that it may rest on.

    Throughput varies from run to run, so it needs two to have an interval; the papers' time plots are single
    runs, so a reading of one may rest on one. ``flow`` tells whether it can be asked of one flow; if not, it is
    of all flows of a run together.
    """

    unit: str
    meaning: str
    source: Literal["flows", "outstanding", "sockets", "web", "run"]
    least: int
    compute: Callable[..., float]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    flow: bool = True


def _rows(
    unit: str, meaning: str, least: int, compute: Callable[[Any, Any, Parameters], float], *needs: str, **more: Any
) -> Metric:
    """A metric of the rows of ``flows``: of one flow, or of all."""
    return Metric(unit, meaning, "flows", least, compute, needs, **more)


def _web(unit: str, meaning: str, compute: Callable[[Any, Parameters], float], *optional: str) -> Metric:
    """A metric of the rows of ``web``: of all web traffic of a run, whose many users make one run enough."""
    return Metric(unit, meaning, "web", 1, compute, optional=optional, flow=False)


def _series(
    unit: str, meaning: str, compute: Callable[[Series, float, Parameters], float], *needs: str, **more: Any
) -> Metric:
    return Metric(unit, meaning, "outstanding", 1, compute, needs, **more)


def _socket(
    unit: str, meaning: str, compute: Callable[[Samples, Parameters], float], *optional: str, **more: Any
) -> Metric:
    """A metric of the samples of one flow's only stream."""
    return Metric(unit, meaning, "sockets", 1, lambda streams, p: compute(_only(streams), p), optional=optional, **more)


def _only(streams: Streams) -> Samples:
    flows = _by_flow(streams)
    if len(flows) > 1:
        raise NoValue(f"the samples are of {len(flows)} flows; name one of {', '.join(flows)}")
    return next(iter(flows.values()))


def _by_flow(streams: Streams) -> dict[str, Samples]:
    """The samples of each flow's only stream."""
    for flow, count in Counter(flow for flow, _ in streams).items():
        if count > 1:
            raise NoValue(f"flow {flow!r} has {count} streams, each with a congestion window of its own")
    return {flow: samples for (flow, _), samples in streams.items()}


def _bend(series: Series, rtt_us: float, given: Parameters) -> tuple[float, float, float]:
    highest = given.get("highest", float("inf"))
    return metrics.bend(series, rtt_us, given["since"], given["until"], highest)


METRICS: dict[str, Metric] = {
    "goodput": _rows("Mb/s", "goodput", 2, lambda rows, flow, p: metrics.goodput_mbps(rows, flow)),
    "share": _rows("%", "share of the goodput", 2, lambda rows, flow, p: metrics.share_percent(rows, flow), "flow"),
    "reaches": _rows(
        "%",
        "runs at or above the level",
        2,
        lambda rows, flow, p: metrics.reaches_percent(rows, p["level"], flow),
        "level",
    ),
    "retransmissions": _rows(
        "segments", "retransmissions", 1, lambda rows, flow, p: metrics.retransmissions(rows, flow)
    ),
    "transfers": _rows(
        *("transfers", "complete transfers", 1),
        lambda rows, flow, p: carried.transfers(rows, flow, p.get("within")),
        optional=("within",),
    ),
    "carried": _rows(
        *("GB", "data received", 1),
        lambda rows, flow, p: carried.carried_gigabytes(rows, flow, p.get("within")),
        optional=("within",),
    ),
    "web_bytes": _web(
        "GB", "content that web users took in", lambda rows, p: carried.web_gigabytes(rows, p.get("within")), "within"
    ),
    "web_rate": _web("Mb/s", "content that web users took in per second", lambda rows, p: carried.web_mbps(rows)),
    "web_errors": _web("requests", "requests of web users that failed", lambda rows, p: carried.web_errors(rows)),
    "points": _series(
        "points",
        "points in the plot of outstanding data",
        lambda s, rtt, p: metrics.points(s, p.get("since"), p.get("until")),
        optional=("since", "until"),
    ),
    "plateau": _series(
        "bytes",
        "level of outstanding data",
        lambda s, rtt, p: metrics.plateau_bytes(s, p["since"], p["until"]),
        *("since", "until"),
    ),
    "before_drop": _series(
        "bytes",
        "outstanding data before the drop",
        lambda s, rtt, p: metrics.before_drop_bytes(s, p["at"], rtt),
        "at",
    ),
    "after_drop": _series(
        "bytes",
        "outstanding data after the drop",
        lambda s, rtt, p: metrics.after_drop_bytes(s, p["at"], rtt),
        "at",
    ),
    "drop_ratio": _series(
        "",
        "outstanding data after over before the drop",
        lambda s, rtt, p: metrics.drop_ratio(s, p["at"], rtt),
        "at",
    ),
    "slow_start_growth": _series(
        "per RTT", "growth factor in slow start", lambda s, rtt, p: metrics.slow_start_growth(s, rtt)
    ),
    "linear_growth": _series(
        "segments per RTT",
        "slope of outstanding data",
        lambda s, rtt, p: metrics.linear_growth_segments(
            s, rtt, p["since"], p["until"], p["segment"], p.get("lowest", 0), p.get("highest", float("inf"))
        ),
        *("since", "until", "segment"),
        optional=("lowest", "highest"),
    ),
    "linearity": _series(
        "",
        "R^2 of a straight line",
        lambda s, rtt, p: metrics.linearity(s, rtt, p["since"], p["until"]),
        *("since", "until"),
    ),
    "regrowth": _series(
        "% per RTT",
        "relative growth of outstanding data after the drop",
        lambda s, rtt, p: metrics.regrowth_percent(s, rtt, p["at"]),
        "at",
    ),
    "bend_time": _series(
        "s",
        "time of the bend",
        lambda s, rtt, p: _bend(s, rtt, p)[0],
        *("since", "until"),
        optional=("highest",),
    ),
    "bend_level": _series(
        "bytes",
        "outstanding data at the bend",
        lambda s, rtt, p: _bend(s, rtt, p)[1],
        *("since", "until"),
        optional=("highest",),
    ),
    "bend_ratio": _series(
        "",
        "slope after over before the bend",
        lambda s, rtt, p: _bend(s, rtt, p)[2],
        *("since", "until"),
        optional=("highest",),
    ),
    "cuts": _socket(
        "cuts",
        "cuts of the congestion window",
        lambda samples, p: metrics.cuts(samples, p.get("since"), p.get("until")),
        *("since", "until"),
    ),
    "streams_cut": Metric(
        "streams",
        "streams whose congestion window was cut",
        "sockets",
        1,
        lambda streams, p: metrics.streams_cut(list(streams.values()), p.get("since"), p.get("until")),
        optional=("since", "until"),
    ),
    "cut_spacing": _socket(
        "%",
        "longest over shortest interval between cuts",
        lambda samples, p: metrics.cut_spacing_percent(samples, p.get("since"), p.get("until")),
        *("since", "until"),
    ),
    "after_first_cut": _socket(
        "segments",
        "smallest congestion window after the first cut",
        lambda samples, p: metrics.after_first_cut_segments(samples),
    ),
    "first_recovery": _socket(
        "s",
        "time from the first cut back to the window before it",
        lambda samples, p: metrics.first_recovery_s(samples),
    ),
    "window_at": _socket(
        *("segments", "congestion window"),
        lambda samples, p: metrics.window_at_segments(samples, p["at"]),
        required=("at",),
    ),
    "lead_changes": Metric(
        "changes",
        "changes of the lead",
        "sockets",
        1,
        lambda streams, p: metrics.lead_changes(_by_flow(streams), p["interval"]),
        required=("interval",),
        flow=False,
    ),
}
METRICS |= {
    "window_growth": _socket(
        "segments/s",
        "growth of the congestion window",
        lambda samples, p: link.window_growth(samples, p.get("since"), p.get("until")),
        *("since", "until"),
    ),
    "cut_interval": _socket(
        "s",
        "time from one cut of the congestion window to the next",
        lambda samples, p: link.cut_interval_s(samples, p.get("since"), p.get("until")),
        *("since", "until"),
    ),
    **{
        name: Metric(m.unit, m.meaning, "run", m.least, m.compute, m.required, m.optional, m.flow)
        for name, m in (link.LINK_METRICS | TOGETHER_METRICS | WINDOW_METRICS | STEADINESS_METRICS).items()
    },
}
