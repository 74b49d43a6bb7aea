# SPDX-License-Identifier: Apache-2.0
"""The error rates and the power of verdicts, on runs whose truth is known.

Run as a program it prints the tables of docs/verdicts.md:
``PYTHONPATH=src python tests/unit/simulated_verdicts.py [SIMULATIONS]``.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from longfat.metrics.moderation import prior_of
from longfat.metrics.statistics import Estimate, Prior, difference, exactly, stratified
from longfat.relations.limits import LEVEL, Chances, Limits, holm

Table = npt.NDArray[np.float64]  # a row for each scenario, a column for each repetition
LEVEL_OF_VALUES, DEVIATION = 100.0, 4.0
SCENARIOS = 12
MEAN_OF = 5  # scenarios in a mean

Shape = tuple[int, int]
KINDS: Mapping[str, Callable[[np.random.Generator, Shape], Table]] = {
    "normal": lambda rng, shape: rng.normal(0, 1, shape),
    "bimodal, 1:1": lambda rng, shape: np.where(rng.random(shape) < 0.5, -1.0, 1.0) + rng.normal(0, 0.1, shape),
    "bimodal, 3:7": lambda rng, shape: np.where(rng.random(shape) < 0.3, -1.53, 0.655) + rng.normal(0, 0.1, shape),
    "heavy-tailed (t of 3)": lambda rng, shape: rng.standard_t(3, shape) / math.sqrt(3),
    "constant": lambda rng, shape: np.zeros(shape),
}

VARYING = tuple(kind for kind in KINDS if kind != "constant")

What = Literal["two scenarios", "two means", "a mean and a number"]
FIRST, SECOND = list(range(MEAN_OF)), list(range(MEAN_OF, 2 * MEAN_OF))
SIDES: Mapping[What, tuple[list[int], list[int]]] = {
    "two scenarios": ([0], [1]),
    "two means": (FIRST, SECOND),
    "a mean and a number": (FIRST, []),
}


class Rates(NamedTuple):
    """Parts of the simulations that were decided so."""

    holds: float
    fails: float


def runs(rng: np.random.Generator, kind: str, n: int, shared: float, scatter: float = 0.5) -> Table:
    """Values of all scenarios; a part ``shared`` of the variance is common to a repetition, and deviations differ."""
    draw = KINDS[kind]
    common, own = draw(rng, (1, n)), draw(rng, (SCENARIOS, n))
    sizes = np.exp(rng.normal(0, scatter, (SCENARIOS, 1)))
    return LEVEL_OF_VALUES + DEVIATION * sizes * (math.sqrt(shared) * common + math.sqrt(1 - shared) * own)


def estimated(table: Table, rows: list[int], prior: Prior, shift: float = 0.0) -> Estimate:
    """The mean of these scenarios as the engine makes it."""
    values: dict[Hashable, Mapping[Hashable, tuple[Hashable, float]]] = {
        row: {(row, k): (("experiment", k), float(value) + shift) for k, value in enumerate(table[row])} for row in rows
    }
    return stratified(values, prior)


def prior(table: Table) -> Prior:
    """What the scenarios say of each other."""
    return prior_of([{("experiment", k): float(value) for k, value in enumerate(row)} for row in table])


def compared(table: Table, what: What, distance: float, limits: Limits) -> Chances:
    """Compare the sides, whose true difference is the distance."""
    known = prior(table)
    first, second = SIDES[what]
    one = estimated(table, first, known, distance)
    return limits.chances(difference(one, estimated(table, second, known) if second else exactly(LEVEL_OF_VALUES)))


POWER: Mapping[What, tuple[float, float]] = {"two scenarios": (1.0, 2.0), "two means": (0.5, 1.0)}
ORDER = Limits(0.0, math.inf, False)


def rates(kind: str, n: int, shared: float, what: What, distance: float, limits: Limits, times: int) -> Rates:
    """Return how often a comparison holds and fails."""
    rng = np.random.default_rng([len(kind), n, int(100 * shared), len(what), times])
    found = [compared(runs(rng, kind, n, shared), what, distance, limits) for _ in range(times)]
    holds = sum(one.inside <= LEVEL < one.against for one in found)
    return Rates(holds / times, sum(one.against <= LEVEL for one in found) / times)


def rates_of_looks(kind: str, looks: Sequence[int], shared: float, what: What, times: int) -> Rates:
    """Return how often equal sides are decided if undecided runs are extended from one number to the next."""
    rng = np.random.default_rng([len(kind), len(looks), int(100 * shared), len(what), times])
    holds = fails = 0
    for _ in range(times):
        table = runs(rng, kind, max(looks), shared)
        for n in looks:
            one = compared(table[:, :n], what, 0.0, ORDER)
            if min(one.inside, one.against) <= LEVEL:
                fails += one.against <= LEVEL
                holds += one.against > LEVEL
                break
    return Rates(holds / times, fails / times)


def parts_that_fail(kind: str, n: int, parts: int, times: int) -> float:
    """Return how often a claim of several equal parts has one that fails after Holm."""
    rng = np.random.default_rng([parts, n, times])
    found = 0
    for _ in range(times):
        chances = [compared(runs(rng, kind, n, 0.0), "two scenarios", 0.0, ORDER).against for _ in range(parts)]
        found += any(chance <= level for chance, level in zip(chances, holm(chances), strict=True))
    return found / times


REPETITIONS = (3, 5, 10)
LOOKS: Sequence[Sequence[int]] = ((3,), (8,), (3, 8))
COMPARED: Sequence[tuple[str, float, What]] = tuple(itertools.product(VARYING, (0.0, 0.4), SIDES))


def row(kind: str, shared: float, what: What, *columns: Sequence[float]) -> str:
    """Format a line of such a table."""
    cells = (", ".join(f"{100 * rate:.1f}" for rate in column) for column in columns)
    return f"| {kind} | {shared:.0%} | {what} | {' | '.join(cells)} |"


def error_table(times: int) -> str:
    """Format how often equals are found different, reversed, or half of the paper's difference is found to be none."""
    lines = [
        "| runs | shared | compared | falsely holds | falsely fails | falsely no effect |",
        "|---|---|---|---|---|---|",
    ]
    margin = 5.0
    none = Limits(0.0, math.inf, False, margin)
    for kind, shared, what in COMPARED:
        null = [rates(kind, n, shared, what, 0.0, ORDER, times) for n in REPETITIONS]
        edge = [rates(kind, n, shared, what, margin, none, times).fails for n in REPETITIONS]
        lines.append(row(kind, shared, what, [one.holds for one in null], [one.fails for one in null], edge))
    return "\n".join(lines)


def looks_table(times: int) -> str:
    """Format how often equals are decided with three repetitions, eight, and eight where three do not decide."""
    lines = ["| runs | shared | compared | falsely holds | falsely fails |", "|---|---|---|---|---|"]
    for kind, shared, what in COMPARED:
        found = [rates_of_looks(kind, looks, shared, what, times) for looks in LOOKS]
        lines.append(row(kind, shared, what, [one.holds for one in found], [one.fails for one in found]))
    return "\n".join(lines)


def power_table(times: int) -> str:
    """Format how often a true order is found."""
    lines = ["| runs | compared | true difference | holds |", "|---|---|---|---|"]
    for kind in VARYING:
        for what, sizes in POWER.items():
            for size in sizes:
                given = [(kind, n, 0.0, what, size * DEVIATION, ORDER, times) for n in REPETITIONS]
                holds = ", ".join(f"{100 * rates(*one).holds:.0f}" for one in given)
                lines.append(f"| {kind} | {what} | {size:g} sd | {holds} |")
    return "\n".join(lines)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    sys.stdout.write(f"{error_table(count)}\n\n{looks_table(count)}\n\n{power_table(count)}\n")
