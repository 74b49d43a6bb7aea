# SPDX-License-Identifier: Apache-2.0
"""Metrics that studies bring along: from samples with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from own_metrics import own_metrics

from longfat.metrics.data import NoValue, Port, Samples

kelly, vista = own_metrics("kelly-2003"), own_metrics("vista-2006")
STEP = 1e4
OPEN, CWR, RECOVERY, UNSET = 0, 2, 3, 2**31 - 1


def samples_of(*rows: tuple[int, int, int], silent: int = 0) -> Samples:
    """A sample each 10 ms: ca_state, congestion window, ssthresh in segments; so many show no new acknowledgement."""
    state, cwnd, ssthresh = np.array(rows, dtype=float).T
    index = np.arange(len(rows))
    opened = np.flatnonzero((state == OPEN) & (index > 1))
    heard = index > (opened[0] + silent if len(opened) else 0)
    return Samples(STEP * index, state, cwnd, ssthresh, acked=np.cumsum(heard))


@pytest.mark.parametrize("silent", [0, 5])
def test_growth_is_measured_from_the_first_acknowledgement_after_fast_recovery(silent: int) -> None:
    recovery = [(RECOVERY, 20, 20)] * 10
    waits = [(OPEN, 20, 20)] * (silent + 1)
    climb = [(OPEN, 20 + k, 20) for k in range(25)]
    # The first acknowledgement is in the first sample of the climb; 39 segments, all but one, in its twentieth.
    samples = samples_of((OPEN, 39, UNSET), (OPEN, 40, UNSET), *recovery, *waits, *climb, silent=silent)
    assert kelly.grown_back(samples) == pytest.approx(0.19)


def test_a_window_that_does_not_grow_back_gives_no_value() -> None:
    climb = [(OPEN, 20 + k, 20) for k in range(10)]
    with pytest.raises(NoValue):
        kelly.grown_back(samples_of((OPEN, 40, UNSET), (CWR, 20, 20), *climb))
    with pytest.raises(NoValue):
        kelly.grown_back(samples_of((OPEN, 40, UNSET), (CWR, 30, 20), (OPEN, 40, 20)))
    with pytest.raises(NoValue):
        kelly.grown_back(samples_of((OPEN, 40, UNSET), (CWR, 30, 20)))
    with pytest.raises(NoValue):
        kelly.grown_back(samples_of((OPEN, 40, UNSET), (CWR, 20, 20), (OPEN, 20, 20), (OPEN, 20, 20), silent=9))
    with pytest.raises(NoValue):
        kelly.grown_back(samples_of((OPEN, 40, UNSET), (OPEN, 41, UNSET)))


def rtts(*srtt_us: float) -> Samples:
    """A sample each 100 ms of an RTT whose smallest is 71 ms; 0 is one that is not known."""
    srtt = np.array(srtt_us)
    still = np.zeros(len(srtt))
    least = np.where(srtt > 0, 71_000.0, 0)
    return Samples(1e5 * np.arange(len(srtt)), still, still, still, still, srtt_us=srtt, min_rtt_us=least)


def test_a_queue_is_derived_from_how_far_an_rtt_varies_that_lasts_for_a_round_trip() -> None:
    port = Port("switch", np.array([1e6]), np.zeros(1), np.array([400e6]))
    full, delayed = 82_535.0, 90_000.0
    lasting = rtts(0, 71_000, full, full, delayed, full, 71_000)
    assert vista.derived_queue_packets(lasting, port, 1538) == pytest.approx(375, rel=1e-3)
    assert vista.derived_queue_packets(rtts(71_000, 71_000, delayed, 71_000), port, 1538) == 0


def test_a_queue_is_not_derived_from_less_than_a_round_trip() -> None:
    port = Port("switch", np.array([1e6]), np.zeros(1), np.array([400e6]))
    with pytest.raises(NoValue):
        vista.derived_queue_packets(rtts(0, 0), port, 1538)
    with pytest.raises(NoValue):
        vista.derived_queue_packets(rtts(0, 71_000), port, 1538)
