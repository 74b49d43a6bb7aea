# SPDX-License-Identifier: Apache-2.0
"""Metrics that studies bring along: from samples with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from own_metrics import own_metrics

from longfat.metrics.data import NoValue, Port, Samples

kelly, vista, rfc9438 = (own_metrics(name) for name in ("kelly-2003", "vista-2006", "rfc9438"))
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
    samples = samples_of((OPEN, 39, UNSET), (OPEN, 40, UNSET), *recovery, *waits, *climb, silent=silent)
    assert kelly.grown_back(samples) == pytest.approx(0.19)


@pytest.mark.parametrize(
    ("rows", "silent"),
    [
        ([(OPEN, 40, UNSET), (CWR, 20, 20), *((OPEN, 20 + k, 20) for k in range(10))], 0),
        ([(OPEN, 40, UNSET), (CWR, 30, 20), (OPEN, 40, 20)], 0),
        ([(OPEN, 40, UNSET), (CWR, 30, 20)], 0),
        ([(OPEN, 40, UNSET), (CWR, 20, 20), (OPEN, 20, 20), (OPEN, 20, 20)], 9),
        ([(OPEN, 40, UNSET), (OPEN, 41, UNSET)], 0),
    ],
)
def test_a_window_that_does_not_grow_back_gives_no_value(rows: list[tuple[int, int, int]], silent: int) -> None:
    with pytest.raises(NoValue):
        kelly.grown_back(samples_of(*rows, silent=silent))


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
