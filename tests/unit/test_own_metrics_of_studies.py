# SPDX-License-Identifier: Apache-2.0
"""Metrics that studies bring along: from samples with known answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from longfat.metrics import METRICS
from longfat.metrics.data import NoValue, Samples
from longfat.metrics.registry import load_own_metrics

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
STEP = 1e4
OPEN, CWR, RECOVERY, UNSET = 0, 2, 3, 2**31 - 1


@pytest.fixture
def kelly() -> Iterator[ModuleType]:
    """The metrics of kelly-2003, as a module."""
    yield from _loaded("kelly-2003")


def _loaded(study: str) -> Iterator[ModuleType]:
    name, before = f"longfat_metrics_of_{study.replace('-', '_')}", dict(METRICS)
    known = sys.modules.get(name)
    if known is None:
        load_own_metrics(EXPERIMENTS / study)
    yield sys.modules[name]
    if known is None:
        METRICS.clear()
        METRICS.update(before)
        del sys.modules[name]


def samples_of(*rows: tuple[int, int, int]) -> Samples:
    """A sample each 10 ms: ca_state, congestion window and ssthresh in segments."""
    state, cwnd, ssthresh = np.array(rows, dtype=float).T
    return Samples(STEP * np.arange(len(rows)), state, cwnd, ssthresh, acked=np.zeros(len(rows)))


def test_growth_back_is_reckoned_from_the_end_of_fast_recovery(kelly: ModuleType) -> None:
    recovery = [(RECOVERY, 20, 20)] * 10
    climb = [(OPEN, 20 + k, 20) for k in range(25)]
    # Samples 2 to 11 are the recovery; 20 segments at sample 12, 39 segments, all but one, at sample 31.
    samples = samples_of((OPEN, 39, UNSET), (OPEN, 40, UNSET), *recovery, *climb)
    assert kelly.grown_back(samples) == pytest.approx(0.19)


def test_a_window_that_does_not_grow_back_gives_no_value(kelly: ModuleType) -> None:
    climb = [(OPEN, 20 + k, 20) for k in range(10)]
    with pytest.raises(NoValue, match=r"not back at 40 segments when the run ends after 0\.1 s of growth"):
        kelly.grown_back(samples_of((OPEN, 40, UNSET), (CWR, 20, 20), *climb))
    with pytest.raises(NoValue, match="no window below the 40 segments"):
        kelly.grown_back(samples_of((OPEN, 40, UNSET), (CWR, 30, 20), (OPEN, 40, 20)))
    with pytest.raises(NoValue, match="ends in the first recovery"):
        kelly.grown_back(samples_of((OPEN, 40, UNSET), (CWR, 30, 20)))
    with pytest.raises(NoValue, match="never cut"):
        kelly.grown_back(samples_of((OPEN, 40, UNSET), (OPEN, 41, UNSET)))
