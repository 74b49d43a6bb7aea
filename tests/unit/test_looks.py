# SPDX-License-Identifier: Apache-2.0
"""Looking several times: that the levels spend 5 % and no more, on numbers as runs give them too."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import t as student

from longfat.evidence.looks import LEVELS, LOOKS, confirmed, level_at, reachable
from longfat.relations.evaluate import Evidence

SPENT = 0.045
NOMINAL = 0.05


def boundary_levels() -> list[float]:
    """The levels by numerical integration over sums of normal increments (Armitage, McPherson and Rowe 1969)."""
    normal, levels = NormalDist(), []
    spent = before = 0.0
    grid, density = np.zeros(1), np.ones(1)
    for number, look in enumerate(LOOKS, start=1):
        share = number / len(LOOKS)
        increment = 2 * (1 - normal.cdf(normal.inv_cdf(1 - SPENT / 2) / math.sqrt(share))) - spent
        spent += increment
        deviation = math.sqrt(look - before)
        low, high = 0.0, 8 * math.sqrt(look)
        for _ in range(40):
            middle = (low + high) / 2
            tails = [
                density @ [0.5 * math.erfc((middle + sign * place) / deviation / math.sqrt(2)) for place in grid]
                for sign in (1, -1)
            ]
            low, high = (middle, high) if sum(tails) > increment else (low, middle)
        inside = np.linspace(-high, high, 601)
        steps = (inside[:, None] - grid[None, :]) / deviation
        kernel = np.exp(-(steps**2) / 2) / deviation / math.sqrt(2 * math.pi)
        weights = np.full(601, inside[1] - inside[0])
        weights[[0, -1]] /= 2
        density = (kernel @ density) * weights
        grid, before = inside, look
        levels.append(2 * (1 - normal.cdf(high / math.sqrt(look))))
    return levels


def decided_falsely(draws: np.ndarray, strict: bool) -> float:
    """The share of sequences, whose true mean is 0, in which some look finds another mean."""
    wrong = np.zeros(len(draws), bool)
    for look, level in zip(LOOKS, LEVELS, strict=True):
        seen = draws[:, :look]
        error = seen.std(axis=1, ddof=1) / math.sqrt(look)
        if not strict:
            wrong |= np.abs(seen.mean(axis=1)) > student.isf(NOMINAL / 2, look - 1) * error
        elif reachable(level, look - 1):
            wrong |= np.abs(seen.mean(axis=1)) > student.isf(level / 2, look - 1) * error
    return float(wrong.mean())


def evidence(outcome: str, chance: float, n: int | None = 12) -> Evidence:
    chances = {"p_holds": chance if outcome == "holds" else 1.0, "p_fails": chance if outcome == "fails" else 1.0}
    return Evidence("goodput", "Mb/s", "above 0 Mb/s", outcome, 1.0, n=n, runs=n, **chances)  # type: ignore[arg-type]


def test_the_levels_are_those_of_the_spending_function() -> None:
    assert boundary_levels() == pytest.approx(LEVELS, rel=0.03)


@pytest.mark.parametrize(("kind", "most"), [("normal", 0.05), ("heavy-tailed", 0.05), ("bimodal", 0.065)])
def test_false_decisions_over_all_looks_stay_at_five_percent_where_plain_intervals_do_not(
    kind: str, most: float
) -> None:
    random, shape = np.random.default_rng(20), (20_000, LOOKS[-1])
    draws = {
        "normal": lambda: random.normal(size=shape),
        "bimodal": lambda: random.choice([-1.0, 1.0], shape) + 0.1 * random.normal(size=shape),
        "heavy-tailed": lambda: random.standard_t(4, shape),
    }[kind]()
    assert decided_falsely(draws, strict=True) <= most
    assert decided_falsely(draws, strict=False) > 0.15


def test_there_is_no_level_before_the_first_look_and_that_of_the_last_one_after_each() -> None:
    assert level_at(2) is None
    assert level_at(5) == LEVELS[1]
    assert level_at(100) == LEVELS[-1]


def test_no_level_is_believed_that_signs_alone_could_not_reach() -> None:
    assert not reachable(level_at(8) or 0, 7)
    assert reachable(level_at(12) or 0, 11)
    assert [reachable(level_at(look) or 0, look - 1) for look in LOOKS] == [False] * 4 + [True] * 5


@pytest.mark.parametrize("outcome", ["holds", "fails"])
def test_a_decision_is_confirmed_at_its_looks_level_only(outcome: str) -> None:
    level = level_at(12) or 0
    assert confirmed(evidence(outcome, level * 0.99))
    assert not confirmed(evidence(outcome, level * 1.01))
    assert not confirmed(evidence(outcome, 1e-4, n=3))
    assert confirmed(evidence(outcome, 0.0, n=3))  # always the same to the byte
    assert confirmed(evidence(outcome, 0.0, n=None))
    assert not confirmed(evidence("undecided", level))
