# SPDX-License-Identifier: Apache-2.0
"""Metrics of rates, of flows that send together and of the windows of one connection, from known samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from own_metrics import own_metrics
from tables_in_memory import flow_row

from longfat.metrics import goodput, steadiness, together, windows
from longfat.metrics.data import NoValue, Port, Samples, Span

slac, vista = own_metrics("slac-2003"), own_metrics("vista-2006")

SECONDS = np.arange(0, 11) * 1e6
ALL = Span(2e6, 10e6)


def rows(**mbps: float) -> list[dict[str, object]]:
    return [flow_row(name, rate) for name, rate in mbps.items()]


def test_a_constant_rate_does_not_vary() -> None:
    assert steadiness.variation(np.array([5.0, 5.0, 5.0])) == 0
    assert steadiness.variation(np.array([1.0, 3.0, 1.0, 3.0])) == pytest.approx(0.5)


def test_the_rate_of_a_port_is_read_between_its_samples() -> None:
    seconds = np.arange(0, 8) * 1e6
    port = Port("switch", seconds, seconds * 10 / 8, seconds * 100)
    assert slac.port_rates_mbps(port, 2e6, 1e6) == pytest.approx([10, 10, 10])


def test_jain_s_index_is_1_for_equals_and_1_over_n_for_one_that_has_all() -> None:
    assert goodput.jain_index(rows(a=7, b=7, c=7)) == pytest.approx(1)
    assert goodput.jain_index(rows(a=9, b=0, c=0)) == pytest.approx(1 / 3)


def test_asymmetry_is_positive_where_the_flow_has_more() -> None:
    assert goodput.asymmetry(rows(one=75, two=25), "one") == pytest.approx(0.5)
    assert goodput.asymmetry(rows(one=75, two=25), "two") == pytest.approx(-0.5)


def progress(acked: np.ndarray) -> Samples:  # type: ignore[type-arg]
    """A connection of which nothing is known but what was acknowledged, each second."""
    return Samples(SECONDS, *[np.zeros_like(SECONDS)] * 3, acked)


def steady(mbps: float) -> Samples:
    return progress(SECONDS * mbps / 8)


def in_turns(first: float, second: float) -> Samples:
    """Mb/s of even and of odd seconds."""
    steps = np.where(np.arange(10) % 2 == 0, first, second) * 1e6 / 8
    return progress(np.concatenate(([0.0], np.cumsum(steps))))


def test_throughput_is_that_of_the_time_in_which_all_send() -> None:
    late = progress(np.maximum(SECONDS - 2e6, 0) * 10 / 8)
    assert together.together_mbps([steady(30), late], ALL) == pytest.approx(40)
    assert together.together_mbps([late], ALL) == pytest.approx(10)


def test_equal_rates_are_fair_and_one_of_two_alone_is_as_unfair_as_can_be() -> None:
    assert vista.sigma_fairness([steady(10), steady(10)], ALL) == pytest.approx(0)
    assert vista.sigma_fairness([steady(10), steady(0)], ALL) == pytest.approx(1)
    assert vista.sigma_fairness([steady(10), steady(30)], ALL) == pytest.approx(0.5)


def test_without_change_in_time_xi_is_sigma_and_the_printed_formula_zero() -> None:
    pair = [steady(10), steady(30)]
    assert vista.xi_fairness(pair, ALL, 1e6) == pytest.approx(vista.sigma_fairness(pair, ALL))
    assert vista.xi_deviation(pair, ALL, 1e6) == pytest.approx(0, abs=1e-9)


def test_connections_that_take_turns_are_fair_by_sigma_alone() -> None:
    pair = [in_turns(20, 0), in_turns(0, 20)]
    assert vista.sigma_fairness(pair, ALL) == pytest.approx(0)
    assert vista.xi_fairness(pair, ALL, 1e6) == pytest.approx(1)


def test_the_highest_rate_the_time_near_it_and_the_dip_after_it() -> None:
    connections = [in_turns(100, 5)]
    assert vista.peak_mbps(connections, ALL, 1e6) == pytest.approx(100)
    assert vista.sustained_percent(connections, ALL, 1e6) == pytest.approx(50)
    assert vista.dip_percent(connections, ALL, 1e6) == pytest.approx(5)


OPEN, RECOVERY = 0.0, 3.0


def samples(**given: list[float]) -> Samples:
    """Samples each 100 ms of what is given; all else is zero."""
    values = {name: np.array(column, dtype=np.float64) for name, column in given.items()}
    count = len(next(iter(values.values())))
    empty = {name: np.zeros(count) for name in ("ca_state", "cwnd", "ssthresh", "acked")}
    return Samples(**{"t_us": np.arange(count) * 1e5, **empty, **values})


def sawtooth(cuts: dict[int, float]) -> Samples:
    """A sample each 100 ms of a window of 1000 segments; ssthresh falls to a value at some of them."""
    states, thresholds, threshold = [], [], 2.0**31 - 1
    for place in range(60):
        threshold = cuts.get(place, threshold)
        states.append(RECOVERY if place in cuts else OPEN)
        thresholds.append(threshold)
    flat = np.full(60, 1000.0)
    return Samples(np.arange(60) * 1e5, np.array(states), flat, np.array(thresholds), flat)


def test_a_backlog_is_the_part_of_the_window_that_waits() -> None:
    found = samples(cwnd=[1000, 1000, 1000], srtt_us=[100_000, 125_000, 0], min_rtt_us=[100_000, 100_000, 0])
    assert windows.backlog_segments(found) == pytest.approx(100)


def test_thresholds_are_those_that_cuts_leave() -> None:
    samples = sawtooth({10: 500, 40: 400})
    assert windows.threshold_ratio(samples) == pytest.approx(0.45)
    assert windows.threshold_ratio(samples, 2e6) == pytest.approx(0.4)
    assert windows.least_threshold_segments(samples) == 400


def test_a_cut_soon_after_another_is_a_repeated_one() -> None:
    samples = sawtooth({10: 500, 15: 250, 50: 200})
    assert vista.repeated_cuts(samples, 1e6) == 1
    assert vista.repeated_cuts(samples, 1e6, 2e6) == 0
    assert vista.repeated_cuts(samples, 10e6) == 2


@pytest.mark.parametrize(
    "compute",
    [
        lambda: steadiness.variation(np.array([1.0, 2.0])),
        lambda: goodput.jain_index(rows(a=9)),
        lambda: goodput.asymmetry(rows(one=75, two=25, three=1), "one"),
        lambda: vista.sigma_fairness([steady(1)], ALL),
        lambda: vista.sigma_fairness([steady(0), steady(0)], ALL),
        lambda: vista.peak_mbps([steady(1)], ALL, 9e6),
        lambda: together.together_mbps([steady(1)], Span(5e6, 4e6)),
        lambda: windows.backlog_segments(samples(cwnd=[10], srtt_us=[0], min_rtt_us=[0])),
        lambda: windows.threshold_ratio(sawtooth({})),
    ],
)
def test_a_metric_of_too_little_has_no_value(compute: Callable[[], float]) -> None:
    with pytest.raises(NoValue):
        compute()
