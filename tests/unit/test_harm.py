# SPDX-License-Identifier: Apache-2.0
"""Harm and convergence, from flows whose rates are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from longfat.dataset.load import Row
from longfat.metrics.data import NoValue, Samples, Span
from longfat.metrics.harm import convergence, delay_harm, harm, least_share


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
FLOWS = {"old": OLD, "new": NEW}


def test_harm_is_the_part_of_its_rate_that_a_flow_loses_to_a_newcomer() -> None:
    assert harm(ROWS, FLOWS, "old", 2e6) == pytest.approx(0.75)


def test_harm_to_the_delay_is_the_part_of_it_that_the_newcomer_brings() -> None:
    assert delay_harm(ROWS, FLOWS, "old", 2e6) == pytest.approx(0.75, abs=0.05)


def test_a_flow_that_was_never_alone_has_no_harm() -> None:
    with pytest.raises(NoValue, match="alone for less than 5 s"):
        harm([row("old", 0, 20), row("new", 3, 20)], FLOWS, "old")
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
