# SPDX-License-Identifier: Apache-2.0
"""The rates at which verdicts err, on runs whose truth is known: a small part of the tables of docs/verdicts.md."""

from __future__ import annotations

import math

import pytest
from simulated_verdicts import ORDER, SIDES, VARYING, What, parts_that_fail, rates

from longfat.relations.limits import LEVEL, Limits

TIMES = 150
# What so many simulations show of a rate of 5 %, but for one case in a thousand.
MOST = LEVEL + 3.1 * math.sqrt(LEVEL * (1 - LEVEL) / TIMES)


@pytest.mark.parametrize("kind", VARYING)
@pytest.mark.parametrize("what", ["two scenarios", "two means"])
@pytest.mark.parametrize("shared", [0.0, 0.4])
def test_an_order_of_equals_is_rarely_decided(kind: str, what: What, shared: float) -> None:
    found = rates(kind, 3, shared, what, 0.0, ORDER, TIMES)
    assert found.holds <= MOST
    assert found.fails <= MOST


def test_no_effect_is_rarely_found_where_there_is_half_of_the_papers() -> None:
    found = rates("normal", 5, 0.0, "two means", 4.0, Limits(0.0, math.inf, False, 4.0), TIMES)
    assert found.fails <= MOST


def test_constant_runs_are_decided_by_comparison_alone() -> None:
    for what in SIDES:
        assert rates("constant", 3, 0.0, what, 0.5, ORDER, 2) == (1, 0)
        assert rates("constant", 3, 0.0, what, -0.5, ORDER, 2) == (0, 1)


def test_of_many_true_parts_one_rarely_fails() -> None:
    assert parts_that_fail("normal", 3, 8, TIMES // 2) <= LEVEL + 3.1 * math.sqrt(LEVEL / (TIMES // 2))
