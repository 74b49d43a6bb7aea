# SPDX-License-Identifier: Apache-2.0
"""Metrics of flows that send together: from connections with known rates."""

from __future__ import annotations

import numpy as np
import pytest
from own_metrics import own_metrics

from longfat.metrics import together
from longfat.metrics.data import NoValue, Samples, Span

vista = own_metrics("vista-2006")

SECONDS = np.arange(0, 11) * 1e6
ALL = Span(2e6, 10e6)


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


def test_what_lies_between_two_samples_is_on_a_straight_line() -> None:
    assert together.together_mbps([steady(30)], Span(2.5e6, 4.2e6)) == pytest.approx(30)


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


@pytest.mark.parametrize(
    ("compute", "reason"),
    [
        (lambda: vista.sigma_fairness([steady(1)], ALL), "one connection alone is neither fair nor unfair"),
        (lambda: vista.sigma_fairness([steady(0), steady(0)], ALL), "nothing was acknowledged"),
        (lambda: vista.peak_mbps([steady(1)], ALL, 9e6), "send together for 8 s, less than an interval"),
        (lambda: together.together_mbps([steady(1)], Span(5e6, 4e6)), "send together for 0 s"),
    ],
)
def test_what_cannot_be_measured_says_why(compute: object, reason: str) -> None:
    with pytest.raises(NoValue, match=reason):
        compute()  # type: ignore[operator]
