# SPDX-License-Identifier: Apache-2.0
"""The study of RFC 9438: what its metrics read from windows whose shape is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from longfat.metrics import METRICS
from longfat.metrics.data import Samples
from longfat.metrics.registry import load_own_metrics

FOLDER = Path(__file__).parents[2] / "experiments" / "rfc9438"
MODULE = "longfat_metrics_of_rfc9438"
STEP_S, RTT_S, C = 0.05, 0.1, 0.4
OPEN, RECOVERY = 0, 3
UNSET = 2.0**31 - 1  # ssthresh before the first loss


@pytest.fixture
def metrics() -> Iterator[ModuleType]:
    """The metrics of the study, as a module."""
    before, known = dict(METRICS), MODULE in sys.modules
    load_own_metrics(FOLDER)
    yield sys.modules[MODULE]
    if not known:
        METRICS.clear()
        METRICS.update(before)
        del sys.modules[MODULE]


def cubic(lost_at: float, plateau: float, seconds: float) -> list[tuple[int, float, float]]:
    """State, window and ssthresh from a loss on: a recovery, then the cube of RFC 9438 from 0.7 of the window."""
    left = 0.7 * lost_at
    k = np.cbrt((plateau - left) / C)
    times = np.arange(0, seconds, STEP_S)
    return [(RECOVERY, left, left)] * 2 + [(OPEN, C * (t - k) ** 3 + plateau, left) for t in times]


def samples(rows: list[tuple[int, float, float]]) -> Samples:
    state, cwnd, ssthresh = np.array(rows, dtype=np.float64).T
    t_us = 1e6 * STEP_S * np.arange(len(rows), dtype=np.float64)
    still = np.zeros(len(rows))
    return Samples(t_us, state, cwnd, ssthresh, still, min_rtt_us=still + 1e6 * RTT_S)


def test_the_cube_and_its_plateau_are_read_from_the_window(metrics: ModuleType) -> None:
    start = [(OPEN, 400.0, UNSET)] * 3
    first = cubic(400, 400, 12)
    again = cubic(first[-1][1], first[-1][1], 3)  # its loss comes before the plateau
    third = cubic(again[-1][1], 0.85 * again[-1][1], 12)
    of = samples([*start, *first, *again, *third])
    assert [point.value for point in metrics.cubic_factor(of)] == pytest.approx([C, C], rel=0.01)
    assert [point.value for point in metrics.plateau_of(of)] == pytest.approx([1], rel=0.01)
    assert [point.value for point in metrics.lower_plateau_of(of)] == pytest.approx([0.85], rel=0.01)
    assert [point.value for point in metrics.cubic_keeps(of)] == pytest.approx([0.7] * 2, rel=0.01)


def test_growth_is_read_apart_below_and_above_the_window_at_the_loss(metrics: ModuleType) -> None:
    climb = [(OPEN, 70 + 0.53 * step * STEP_S / RTT_S, 70.0) for step in range(113)]
    beyond = [(OPEN, 100 + step * STEP_S / RTT_S, 70.0) for step in range(100)]
    of = samples([(OPEN, 100.0, UNSET), (RECOVERY, 70.0, 70.0), *climb, *beyond])
    assert [point.value for point in metrics.growth_up_to(of)] == pytest.approx([0.53], rel=0.02)
    assert [point.value for point in metrics.growth_beyond(of)] == pytest.approx([1], rel=0.02)
