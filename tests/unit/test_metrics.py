# SPDX-License-Identifier: Apache-2.0
"""Metrics and statistics against series whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat.analysis import formulas, metrics, statistics
from longfat.analysis.metrics import NoValue
from longfat.analysis.statistics import Summary, summarise
from longfat.dataset.load import Series

RTT = 30_000.0
MSS = 8948
FLOWS = [{"flow": "a", "goodput_bps": 600e6}, {"flow": "b", "goodput_bps": 200e6}]


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


def test_goodput_is_the_sum_of_all_flows_or_that_of_one() -> None:
    assert metrics.goodput_mbps(FLOWS) == 800
    assert metrics.goodput_mbps(FLOWS, "b") == 200
    assert metrics.share_percent(FLOWS, "b") == 25
    with pytest.raises(NoValue, match="no goodput of flow 'c'"):
        metrics.goodput_mbps(FLOWS, "c")


def test_slow_start_that_doubles_has_growth_two() -> None:
    levels = [2.0 * 2**k for k in range(8)] + [400.0] * 20
    assert metrics.slow_start_growth(series_of(levels), RTT) == pytest.approx(2.0, rel=0.05)


def test_slow_start_that_counts_delayed_acks_has_growth_one_and_a_half() -> None:
    levels = [2.0 * 1.5**k for k in range(14)] + [400.0] * 20
    assert metrics.slow_start_growth(series_of(levels), RTT) == pytest.approx(1.5, rel=0.05)


def test_the_plateau_is_the_median_of_the_window() -> None:
    levels = [2.0 * 2**k for k in range(8)] + [418.0] * 20
    found = metrics.plateau_bytes(series_of(levels), 10 * RTT, 25 * RTT)
    assert found == pytest.approx(418 * MSS, rel=0.002)


@pytest.mark.parametrize("factor", [0.5, 0.63, 0.875])
def test_the_cut_of_one_drop_is_found(factor: float) -> None:
    series = after_one_drop(400, factor, growth=1)
    assert metrics.drop_ratio(series, 30 * RTT, RTT) == pytest.approx(factor, rel=0.01)
    assert metrics.before_drop_bytes(series, 30 * RTT, RTT) == pytest.approx(400 * MSS, rel=0.002)


def test_linear_growth_and_its_straightness_are_found() -> None:
    series = after_one_drop(400, 0.5, growth=1)
    slope = metrics.linear_growth_segments(series, RTT, 35 * RTT, 130 * RTT, MSS)
    assert slope == pytest.approx(1.0, rel=0.01)
    assert metrics.linearity(series, RTT, 35 * RTT, 130 * RTT) > 0.999


def test_linear_growth_counts_only_the_levels_within_its_bounds() -> None:
    levels = [100.0 + 4 * k for k in range(20)] + [180.0 + 8 * k for k in range(20)]
    series = series_of(levels)
    low = metrics.linear_growth_segments(series, RTT, 0, 40 * RTT, MSS, highest_bytes=175 * MSS)
    high = metrics.linear_growth_segments(series, RTT, 0, 40 * RTT, MSS, lowest_bytes=185 * MSS)
    assert (low, high) == (pytest.approx(4, rel=0.01), pytest.approx(8, rel=0.01))


def test_regrowth_by_two_percent_is_found_up_to_the_old_level() -> None:
    series = after_one_drop(400, 0.875, growth=0, ratio=1.02)
    assert metrics.regrowth_percent(series, RTT, 30 * RTT) == pytest.approx(2, rel=0.05)


def test_a_bend_is_found_where_the_slope_changes() -> None:
    levels = [262.0 + 4 * k for k in range(21)] + [347.0 + 5 * k for k in range(12)]
    t_s, level, ratio = metrics.bend(series_of(levels), RTT, 0, 40 * RTT)
    assert t_s == pytest.approx(21 * 0.030, abs=0.06)
    assert level == pytest.approx(345 * MSS, rel=0.03)
    assert ratio == pytest.approx(1.25, rel=0.05)


def test_the_window_of_a_bend_ends_at_the_highest_level() -> None:
    levels = [200.0 + 4 * k for k in range(20)] + [280.0 + 5 * k for k in range(20)] + [380.0] * 60
    bounded = metrics.bend(series_of(levels), RTT, 0, 100 * RTT, highest_bytes=375 * MSS)
    free = metrics.bend(series_of(levels), RTT, 0, 100 * RTT)
    assert bounded[2] == pytest.approx(1.25, rel=0.05)
    assert free[2] < 0.2


def test_a_window_without_data_or_with_too_few_rtts_gives_no_value() -> None:
    series = series_of([10.0] * 10)
    with pytest.raises(NoValue, match="no outstanding data was recorded in the window"):
        metrics.plateau_bytes(series, 1e9, 2e9)
    with pytest.raises(NoValue, match="the window holds 2 RTTs, at least 4 are needed"):
        metrics.linearity(series, RTT, 0, 2 * RTT)
    with pytest.raises(NoValue, match="constant"):
        metrics.linearity(Series(np.arange(100.0) * RTT / 4, np.ones(100)), RTT, 0, 20 * RTT)


def test_mean_spread_and_interval_of_three_values_are_those_of_the_table() -> None:
    found = summarise([1.0, 2.0, 3.0])
    assert (found.mean, found.sd, found.n) == (2.0, 1.0, 3)
    assert found.high - found.mean == pytest.approx(4.303 / math.sqrt(3))
    assert summarise([5.0]) == Summary(5.0, None, 1, 5.0, 5.0)
    with pytest.raises(ValueError, match="at least one value"):
        summarise([])


def test_t_falls_towards_that_of_thirty_degrees_and_stays_there() -> None:
    assert statistics.t_95(1) == 12.706
    assert statistics.t_95(9) == 2.262
    assert statistics.t_95(1000) == statistics.t_95(30) == 2.042
    with pytest.raises(ValueError, match="not 0"):
        statistics.t_95(0)


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=9), st.lists(st.floats(1, 1e6), min_size=2, max_size=9))
def test_the_interval_of_a_difference_holds_zero_exactly_when_intervals_overlap(
    one: list[float], other: list[float]
) -> None:
    a, b = summarise(one), summarise(other)
    gap = statistics.difference(a, b)
    assert (gap.low <= 0 <= gap.high) == (a.low <= b.high and b.low <= a.high)


def test_a_gain_is_in_percent_and_takes_the_worst_of_both_intervals() -> None:
    a, b = Summary(948, 1, 3, 940, 956), Summary(828, 1, 3, 820, 836)
    gain = statistics.percent_gain(a, b)
    assert gain.mean == pytest.approx(14.49, abs=0.01)
    assert (gain.low, gain.high) == (
        pytest.approx(100 * (940 / 836 - 1)),
        pytest.approx(100 * (956 / 820 - 1)),
    )
    with pytest.raises(ValueError, match="reaches zero"):
        statistics.ratio(a, Summary(1, 1, 2, -1, 3))


def test_the_highspeed_formulas_give_the_rows_of_the_rfc() -> None:
    rows = [formulas.highspeed_row(k) for k in range(1, 6)]
    assert rows == [38, 118, 221, 347, 494]
    assert [round(formulas.highspeed_decrease(w), 2) for w in rows] == [0.5, 0.44, 0.41, 0.38, 0.37]
    assert formulas.highspeed_table_increase(262) == 4
    assert formulas.highspeed_table_increase(348) == 5
    assert formulas.highspeed_table_increase(20) == 1
    assert formulas.bandwidth_delay_product(1e9, 30_000) == 3.75
