# SPDX-License-Identifier: Apache-2.0
"""Metrics, also of studies, against series whose truth is known: windows and cuts, goodput, harm, convergence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
from own_metrics import own_metrics
from tables_in_memory import flow_row

from longfat.dataset.load import Row, Series
from longfat.metrics import cuts, goodput, outstanding
from longfat.metrics.data import NoValue, Port, Samples, Span
from longfat.metrics.harm import convergence, delay_harm, harm, least_share
from longfat.relations import formulas

kelly, sandia, vista, rfc9438 = (own_metrics(name) for name in ("kelly-2003", "sandia-2003", "vista-2006", "rfc9438"))
RTT = 30_000.0
MSS = 8948
FLOWS = [{**flow_row("a", 600), "retrans_segments": 7}, {**flow_row("b", 200), "retrans_segments": 2}]
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
STEP = 10_000.0
UNSET = 2**31 - 1  # ssthresh before the first cut


def series_of(levels: list[float], points: int = 40) -> Series:
    """A window per RTT in segments as a capture shows it: many points that jump by a packet."""
    t_us = np.arange(len(levels) * points) * (RTT / points)
    values = np.repeat(np.array(levels, dtype=float), points) * MSS
    return Series(t_us, values + MSS * (np.arange(len(values)) % 2 - 0.5))


def after_one_drop(before: float, factor: float, growth: float, ratio: float = 1.0) -> Series:
    """30 RTTs at a level, recovery in two, then growth by a sum and a factor each RTT."""
    levels = [before] * 30 + [before * 1.3, before * 1.1]
    level = before * factor
    for _ in range(100):
        levels.append(level)
        level = min(before, level * ratio + growth)
    return series_of(levels)


PAIRS = ((0.04, 0.5), (0.02, 0.25), (0.01, 0.125), (0.005, 0.0625))  # of Scalable TCP's a and b


def samples_of(*rows: tuple[int, int, int], silent: int = 0) -> Samples:
    """A sample each 10 ms: ca_state, congestion window, ssthresh in segments; so many show no new acknowledgement."""
    state, cwnd, ssthresh = np.array(rows, dtype=float).T
    index = np.arange(len(rows))
    opened = np.flatnonzero((state == OPEN) & (index > 1))
    heard = index > (opened[0] + silent if len(opened) else 0)
    return Samples(STEP * index, state, cwnd, ssthresh, acked=np.cumsum(heard))


def sender(*amounts: float, since_us: float = 0.0) -> Samples:
    """A flow with a sample each second, and how many bytes were acknowledged in each of them."""
    acked = np.cumsum([0.0, *amounts])
    still = np.zeros(len(acked))
    return Samples(since_us + 1e6 * np.arange(len(acked)), still, still, still, acked)


def test_goodput_of_all_is_the_sum_over_one_time_or_that_of_one_flow() -> None:
    assert goodput.goodput_mbps(FLOWS) == pytest.approx(800)
    assert goodput.goodput_mbps(FLOWS, "b") == 200
    assert goodput.share_percent(FLOWS, "b") == 25


@pytest.mark.parametrize(
    ("rows", "mbps"),
    [
        ([flow_row("a", 90, 0, 5), flow_row("b", 90, 6, 11)], 90),
        ([flow_row("a", 90, 0, 5), flow_row("b", 45, 5, 15)], 60),
        ([flow_row("a", 60, 0, 10), flow_row("b", 40, 5, 10)], 80),
        ([flow_row("a", 50, 0, 10), flow_row("b", 50, 2, 4), flow_row("c", 50, 20, 30)], 55),
    ],
)
def test_goodput_of_all_is_all_bytes_over_the_union_of_the_flows_times(rows: list[Any], mbps: float) -> None:
    assert goodput.goodput_mbps(rows) == pytest.approx(mbps)


def test_retransmissions_are_those_of_all_flows_or_of_one() -> None:
    assert goodput.retransmissions(FLOWS) == 9
    assert goodput.retransmissions(FLOWS, "b") == 2


@pytest.mark.parametrize(("factor", "rtts"), [(2.0, 8), (1.5, 14)])
def test_the_growth_of_slow_start_is_found(factor: float, rtts: int) -> None:
    levels = [2.0 * factor**k for k in range(rtts)] + [400.0] * 20
    assert sandia.slow_start_growth(series_of(levels), RTT) == pytest.approx(factor, rel=0.05)


@pytest.mark.parametrize("factor", [0.5, 0.63, 0.875])
def test_the_cut_of_one_drop_is_found(factor: float) -> None:
    series = after_one_drop(400, factor, growth=1)
    assert outstanding.drop_ratio(series, 30 * RTT, RTT) == pytest.approx(factor, rel=0.01)
    assert outstanding.before_drop_bytes(series, 30 * RTT, RTT) == pytest.approx(400 * MSS, rel=0.002)


def test_linear_growth_and_its_straightness_are_found() -> None:
    series = after_one_drop(400, 0.5, growth=1)
    slope = sandia.linear_growth_segments(series, RTT, 35 * RTT, 130 * RTT, MSS)
    assert slope == pytest.approx(1.0, rel=0.01)
    assert sandia.linearity(series, RTT, 35 * RTT, 130 * RTT) > 0.999


def test_regrowth_by_two_percent_is_found_up_to_the_old_level() -> None:
    series = after_one_drop(400, 0.875, growth=0, ratio=1.02)
    assert sandia.regrowth_percent(series, RTT, 30 * RTT) == pytest.approx(2, rel=0.05)


def test_a_bend_is_found_where_the_slope_changes() -> None:
    levels = [262.0 + 4 * k for k in range(21)] + [347.0 + 5 * k for k in range(12)]
    t_s, level, ratio = sandia.bend(series_of(levels), RTT, 0, 40 * RTT)
    assert t_s == pytest.approx(21 * 0.030, abs=0.06)
    assert level == pytest.approx(345 * MSS, rel=0.03)
    assert ratio == pytest.approx(1.25, rel=0.05)


STEPS = [
    ((before, 40, UNSET), (state, 40, 20), (state, 20, 20), (OPEN, 20, 20))
    for before in (OPEN, DISORDER)
    for state in (CWR, RECOVERY, LOSS)
]


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        *((rows, 1) for rows in STEPS),
        (((OPEN, 40, UNSET), (RECOVERY, 30, 20), (LOSS, 1, 15), (OPEN, 15, 15)), 1),  # one cut, twice as deep
        (((OPEN, 40, UNSET), (OPEN, 20, 20), (OPEN, 21, 20), (DISORDER, 21, 10), (OPEN, 30, 25)), 2),  # by ssthresh
        (((RECOVERY, 30, 20), (OPEN, 20, 20), (OPEN, 21, 20)), 0),  # cut before the first sample
    ],
)
def test_cuts_are_steps_into_a_reduction_and_falls_of_ssthresh(rows: Any, count: int) -> None:
    assert cuts.cuts(samples_of(*rows)) == count


def test_cuts_are_counted_from_the_start_of_the_window_and_before_its_end() -> None:
    samples = samples_of(*((CWR if k in (10, 20, 40) else OPEN, 40, 20) for k in range(100)))
    assert cuts.cuts(samples) == 3
    assert cuts.cuts(samples, 20 * STEP) == 2
    assert cuts.cuts(samples, 20 * STEP, 40 * STEP) == 1


def test_the_smallest_window_after_the_first_cut_is_sought_until_the_state_is_open() -> None:
    first = ((OPEN, 40, UNSET), (RECOVERY, 38, 20), (RECOVERY, 18, 20), (OPEN, 20, 20))
    assert cuts.after_first_cut_segments(samples_of(*first, (LOSS, 1, 10), (OPEN, 9, 10))) == 18
    assert cuts.after_first_cut_segments(samples_of(*first[:2], (LOSS, 1, 10), (LOSS, 3, 10))) == 1
    assert cuts.after_first_cut_segments(samples_of((OPEN, 40, UNSET), (OPEN, 20, 20), (OPEN, 12, 20))) == 20


def test_the_first_recovery_ends_when_the_window_is_what_it_was_before_the_cut() -> None:
    climb = [(OPEN, 20 + k, 20) for k in range(25)]
    samples = samples_of((OPEN, 39, UNSET), (OPEN, 40, UNSET), (CWR, 41, 20), (CWR, 30, 20), *climb)
    # The cut is at sample 2, 20 segments at sample 4, 39 segments, all but one, at sample 23.
    assert cuts.first_recovery_s(samples) == pytest.approx(0.21)


EARLY, LATE = sender(9, 9, 9, 9), sender(1, 20, since_us=2e6)


@pytest.mark.parametrize(
    ("a", "b", "interval_us", "changes"),
    [
        (sender(9, 9, 1, 9), sender(1, 1, 9, 1), 1e6, 2),
        (sender(9, 9, 1, 9), sender(1, 1, 9, 1), 2e6, 0),  # 18 to 2, then 10 to 10
        (sender(60, 52.5, 60), sender(40, 47.5, 40), 1e6, 0),  # within 5 % of the sum nobody leads
        (sender(60, 47.4, 60), sender(40, 52.6, 40), 1e6, 2),
        (EARLY, LATE, 1e6, 1),  # only the time in which both send
        (sender(9, 1, 9), sender(1, 9, 9, since_us=0.4e6), 1e6, 1),  # the samples nearest to the edges
    ],
)
def test_the_lead_changes_when_it_passes_to_the_other_flow(
    a: Samples, b: Samples, interval_us: float, changes: int
) -> None:
    assert sandia.lead_changes({"a": a, "b": b}, interval_us) == changes
    assert sandia.lead_changes({"b": b, "a": a}, interval_us) == changes


def test_the_formulas_of_scalable_tcp_give_the_rows_of_its_slides() -> None:
    assert round(kelly.window_of_path(10e6, 200_000, 1500), 1) == 166.7
    assert round(kelly.standard_recovery(1e9, 200_000, 1500)) == 1667
    assert f"{kelly.loss_rate_of_path(10e9, 200_000, 1500):.1e}" == "5.4e-11"
    assert [round(formulas.scalable_recovery_rtts(a, b), 1) for a, b in PAIRS] == [17.7, 14.5, 13.4, 12.9]
    assert [round(kelly.scalable_halving(b, 200_000), 2) for _, b in PAIRS] == [0.2, 0.48, 1.04, 2.15]
    assert [round(kelly.scalable_doubling(a, 200_000), 2) for a, _ in PAIRS] == [3.53, 7.0, 13.93, 27.8]
    assert [round(kelly.rate_variation(b), 2) for _, b in PAIRS] == [0.5, 0.35, 0.25, 0.18]
    assert kelly.scalable_loss_rate(16, 0.01, 0.125, 16) == kelly.standard_loss_rate(16)
    assert kelly.scalable_loss_rate(1000, 0.01, 0.125, 16) == pytest.approx(8e-5)
    assert kelly.stability_bound(40) == 0.025


def flow(rates: Sequence[float], rtts_ms: Sequence[float], start_s: int = 0) -> Samples:
    """A sample each second: bytes a second and round-trip time in each of them."""
    t_us = 1e6 * (start_s + np.arange(len(rates) + 1, dtype=np.float64))
    acked = np.concatenate(([0.0], np.cumsum(rates)))
    still = np.zeros(len(t_us))
    srtt = 1e3 * np.array([rtts_ms[0], *rtts_ms], dtype=np.float64)
    return Samples(t_us, still, still, still, acked, srtt_us=srtt)


def row(name: str, start_s: int, end_s: int) -> Row:
    return cast(Row, {"flow": name, "start_us": start_s * 1_000_000, "end_us": end_s * 1_000_000})


# Alone for 10 s at 100 B/s and 50 ms, then for 10 s at 25 B/s and 200 ms next to a newcomer with 75 B/s.
OLD = flow([100] * 10 + [25] * 10, [50] * 10 + [200] * 10)
NEW = flow([75] * 10, [200] * 10, start_s=10)
ROWS = [row("old", 0, 20), row("new", 10, 20)]
BOTH = {"old": OLD, "new": NEW}


def test_harm_is_the_part_of_its_rate_that_a_flow_loses_to_a_newcomer() -> None:
    assert harm(ROWS, BOTH, "old", 2e6) == pytest.approx(0.75)


def test_harm_to_the_delay_is_the_part_of_it_that_the_newcomer_brings() -> None:
    assert delay_harm(ROWS, BOTH, "old", 2e6) == pytest.approx(0.75, abs=0.05)


def test_a_flow_that_was_never_alone_has_no_harm() -> None:
    with pytest.raises(NoValue, match="alone for less than 5 s"):
        harm([row("old", 0, 20), row("new", 3, 20)], BOTH, "old")
    with pytest.raises(NoValue, match="never in company"):
        harm([row("old", 0, 20)], {"old": OLD}, "old")


def test_convergence_is_the_time_until_the_newcomer_has_its_part() -> None:
    old = flow([100] * 10 + [100, 90, 70, 50, 50], [50] * 15)
    new = flow([0, 10, 30, 50, 50], [50] * 5, start_s=10)
    rows = [row("old", 0, 15), row("new", 10, 15)]
    assert convergence(rows, {"old": old, "new": new}, 0.5) == 3  # 30 of 100 is more than half of 50
    assert convergence(rows, {"old": old, "new": new}, 0.9) == 4
    assert convergence(rows, {"old": old, "new": flow([0] * 5, [50] * 5, start_s=10)}, 0.5) == 5


def test_the_least_share_is_that_of_the_slowest_connection() -> None:
    connections = [flow([90] * 10, [50] * 10), flow([10] * 10, [50] * 10)]
    assert least_share(connections, Span(0, 10e6)) == pytest.approx(20)


@pytest.mark.parametrize("silent", [0, 5])
def test_growth_is_measured_from_the_first_acknowledgement_after_fast_recovery(silent: int) -> None:
    recovery = [(RECOVERY, 20, 20)] * 10
    waits = [(OPEN, 20, 20)] * (silent + 1)
    climb = [(OPEN, 20 + k, 20) for k in range(25)]
    samples = samples_of((OPEN, 39, UNSET), (OPEN, 40, UNSET), *recovery, *waits, *climb, silent=silent)
    assert kelly.grown_back(samples) == pytest.approx(0.19)


def rtts(*srtt_us: float) -> Samples:
    """A sample each 100 ms of an RTT whose smallest is 71 ms; 0 is one that is not known."""
    srtt = np.array(srtt_us)
    still = np.zeros(len(srtt))
    least = np.where(srtt > 0, 71_000.0, 0)
    return Samples(1e5 * np.arange(len(srtt)), still, still, still, still, srtt_us=srtt, min_rtt_us=least)


PORT = Port("switch", np.array([1e6]), np.zeros(1), np.array([400e6]))


def test_a_queue_is_derived_from_how_far_an_rtt_varies_that_lasts_for_a_round_trip() -> None:
    full, delayed = 82_535.0, 90_000.0
    lasting = rtts(0, 71_000, full, full, delayed, full, 71_000)
    assert vista.derived_queue_packets(lasting, PORT, 1538) == pytest.approx(375, rel=1e-3)
    assert vista.derived_queue_packets(rtts(71_000, 71_000, delayed, 71_000), PORT, 1538) == 0


BEFORE, CUT = (OPEN, 40, UNSET), (CWR, 30, 20)
FEW, GROWN = series_of([10.0] * 10), [(OPEN, 20 + k, 20) for k in range(10)]


@pytest.mark.parametrize(
    "compute",
    [
        lambda: goodput.goodput_mbps(FLOWS, "c"),
        lambda: goodput.retransmissions([*FLOWS, {"flow": "c", "retrans_segments": None}]),
        lambda: outstanding.plateau_bytes(FEW, 1e9, 2e9),
        lambda: sandia.linearity(FEW, RTT, 0, 2 * RTT),
        lambda: sandia.linearity(Series(np.arange(100.0) * RTT / 4, np.ones(100)), RTT, 0, 20 * RTT),
        lambda: cuts.after_first_cut_segments(samples_of(BEFORE, (OPEN, 41, UNSET))),
        lambda: cuts.first_recovery_s(samples_of(BEFORE, CUT, *GROWN)),
        lambda: cuts.first_recovery_s(samples_of(BEFORE, (OPEN, 55, 50))),
        lambda: kelly.grown_back(samples_of(BEFORE, (CWR, 20, 20), *GROWN)),
        lambda: kelly.grown_back(samples_of(BEFORE, CUT, (OPEN, 40, 20))),
        lambda: kelly.grown_back(samples_of(BEFORE, CUT)),
        lambda: kelly.grown_back(samples_of(BEFORE, (CWR, 20, 20), (OPEN, 20, 20), (OPEN, 20, 20), silent=9)),
        lambda: kelly.grown_back(samples_of(BEFORE, (OPEN, 41, UNSET))),
        lambda: vista.derived_queue_packets(rtts(0, 0), PORT, 1538),
        lambda: vista.derived_queue_packets(rtts(0, 71_000), PORT, 1538),
    ],
)
def test_a_metric_of_too_little_has_no_value(compute: Callable[[], object]) -> None:
    with pytest.raises(NoValue):
        compute()


SAMPLED_S, RTT_S, C = 0.05, 0.1, 0.4


def cubic(lost_at: float, plateau: float, seconds: float) -> list[tuple[int, float, float]]:
    """State, window and ssthresh from a loss on: a recovery, then the cube of RFC 9438 from 0.7 of the window."""
    left = 0.7 * lost_at
    k = np.cbrt((plateau - left) / C)
    times = np.arange(0, seconds, SAMPLED_S)
    return [(RECOVERY, left, left)] * 2 + [(OPEN, C * (t - k) ** 3 + plateau, left) for t in times]


def seen(rows: list[tuple[int, float, float]]) -> Samples:
    state, cwnd, ssthresh = np.array(rows, dtype=np.float64).T
    t_us = 1e6 * SAMPLED_S * np.arange(len(rows), dtype=np.float64)
    still = np.zeros(len(rows))
    return Samples(t_us, state, cwnd, ssthresh, still, min_rtt_us=still + 1e6 * RTT_S)


def test_the_cube_and_its_plateau_are_read_from_the_window() -> None:
    start = [(OPEN, 400.0, UNSET)] * 3
    first = cubic(400, 400, 12)
    again = cubic(first[-1][1], first[-1][1], 3)  # its loss comes before the plateau
    third = cubic(again[-1][1], 0.85 * again[-1][1], 12)
    of = seen([*start, *first, *again, *third])
    assert [point.value for point in rfc9438.cubic_factor(of)] == pytest.approx([C, C], rel=0.01)
    assert [point.value for point in rfc9438.plateau_of(of)] == pytest.approx([1], rel=0.01)
    assert [point.value for point in rfc9438.lower_plateau_of(of)] == pytest.approx([0.85], rel=0.01)
    assert [point.value for point in rfc9438.cubic_keeps(of)] == pytest.approx([0.7] * 2, rel=0.01)


def test_growth_is_read_apart_below_and_above_the_window_at_the_loss() -> None:
    climb = [(OPEN, 70 + 0.53 * step * SAMPLED_S / RTT_S, 70.0) for step in range(113)]
    beyond = [(OPEN, 100 + step * SAMPLED_S / RTT_S, 70.0) for step in range(100)]
    of = seen([(OPEN, 100.0, UNSET), (RECOVERY, 70.0, 70.0), *climb, *beyond])
    assert [point.value for point in rfc9438.growth_up_to(of)] == pytest.approx([0.53], rel=0.02)
    assert [point.value for point in rfc9438.growth_beyond(of)] == pytest.approx([1], rel=0.02)
