# SPDX-License-Identifier: Apache-2.0
"""Metrics of one connection's windows: from samples with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from own_metrics import own_metrics

from longfat.metrics import windows
from longfat.metrics.data import NoValue, Samples

OPEN, RECOVERY = 0.0, 3.0
vista = own_metrics("vista-2006")


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
    with pytest.raises(NoValue, match="no RTT was sampled"):
        windows.backlog_segments(samples(cwnd=[10], srtt_us=[0], min_rtt_us=[0]))


def test_a_window_without_its_delay_part_has_reverted() -> None:
    assert vista.reverted_percent(samples(dwnd=[0, 5, 0, 0])) == pytest.approx(75)
    assert vista.reverted_percent(samples(dwnd=[0, 5, 0, 0]), since_us=2e5) == pytest.approx(100)
    with pytest.raises(NoValue, match="tells of no delay part"):
        vista.reverted_percent(samples(dwnd=[float("nan"), float("nan")]))


def test_thresholds_are_those_that_cuts_leave() -> None:
    samples = sawtooth({10: 500, 40: 400})
    assert windows.threshold_ratio(samples) == pytest.approx(0.45)
    assert windows.threshold_ratio(samples, 2e6) == pytest.approx(0.4)
    assert windows.least_threshold_segments(samples) == 400
    with pytest.raises(NoValue, match="never cut"):
        windows.threshold_ratio(sawtooth({}))


def test_the_window_before_a_cut_may_be_that_of_the_sample_which_shows_it() -> None:
    samples = sawtooth({10: 500})
    samples.cwnd[:10] = 600  # it grew to 1000 between the samples, and the cut has yet to take it down
    assert windows.threshold_ratio(samples) == pytest.approx(0.5)


def test_a_cut_soon_after_another_is_a_repeated_one() -> None:
    samples = sawtooth({10: 500, 15: 250, 50: 200})
    assert vista.repeated_cuts(samples, 1e6) == 1
    assert vista.repeated_cuts(samples, 1e6, 2e6) == 0
    assert vista.repeated_cuts(samples, 10e6) == 2
