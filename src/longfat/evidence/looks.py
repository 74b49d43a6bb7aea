# SPDX-License-Identifier: Apache-2.0
"""Looking several times: at which numbers of repetitions a comparison is judged, and how strictly at each.

Who looks often and stops at the first decision errs more often than at one look. The levels here spend 4.5 % over all
looks (Lan and DeMets 1983, with the spending function of O'Brien and Fleming at k/9 for look k): the half per cent that
is left is what a deviation that is estimated from few runs costs. Besides, no level is believed that as many runs
could not reach by the signs of their deviations alone: runs that have two modes look like certainty while all of them
are in one.
"""

from __future__ import annotations

from longfat.relations.evaluate import Evidence

LOOKS = (3, 4, 6, 8, 12, 16, 24, 32, 48)
LEVELS = (1.8e-9, 2.11e-5, 5.08e-4, 0.00245, 0.00566, 0.0103, 0.0137, 0.0188, 0.0206)
"""Two-sided levels of the looks for increments that are normal; tests/unit/test_looks.py computes them anew."""

NOMINAL = 0.05  # the level of the engine's intervals


def level_at(n: int) -> float | None:
    """The level of the last look at or before n repetitions; None before the first."""
    passed = [level for look, level in zip(LOOKS, LEVELS, strict=True) if look <= n]
    return passed[-1] if passed else None


def reachable(level: float, df: int) -> bool:
    """Whether so many degrees of freedom, one less than runs, can reach a level by signs alone: all on one side."""
    return bool(2.0**-df <= level)


def confirmed(evidence: Evidence) -> bool:
    """Whether a decision holds at its look's level too. What is computed, or always the same, is certain."""
    chance = {"holds": evidence.p_holds, "fails": evidence.p_fails}.get(evidence.outcome)
    if chance is None:
        return False
    if chance == 0.0 or not evidence.runs:
        return True
    level = level_at(evidence.n or 0)
    return level is not None and chance <= level and reachable(level, evidence.runs - 1)
