# SPDX-License-Identifier: Apache-2.0
"""The prior of a scenario's variance from the other scenarios of its experiment.

Variances of sister scenarios are treated as draws from a scaled inverse chi-square distribution (Smyth 2004, "Linear
models and empirical Bayes methods", section 6).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import scipy

from longfat.metrics.statistics import Prior

LEAST_SISTERS = 3
MOST_DEGREES = 10.0  # with more, the sisters would outvote any affordable number of runs
FLOOR = 1e-5  # of the median variance: a variance of zero is luck or rounding

Runs = Mapping[Hashable, float]  # the value of one scenario in each block


def prior_of(sisters: Sequence[Runs]) -> Prior:
    """Return the prior from the values of sister scenarios with two runs or more.

    Its size is the median of the variances, freed of its bias by few runs: neither a few scenarios with much variance
    nor some with none by chance dominate. Its weight decreases with the scatter of the variances beyond chance. Too few
    sisters give no prior.
    """
    known = [one for one in sisters if len(one) > 1]
    variances = np.array([np.var(list(one.values()), ddof=1) for one in known])
    degrees = np.array([len(one) - 1 for one in known], dtype=float)
    if len(known) < LEAST_SISTERS or not np.any(variances > 0):
        return Prior(together=_together(known))
    unbiased = variances * degrees / scipy.special.chdtri(degrees, 0.5)
    size = float(np.median(unbiased) or np.average(variances, weights=degrees))
    logs = np.log(np.maximum(variances, FLOOR * size)) - scipy.special.digamma(degrees / 2) + np.log(degrees / 2)
    excess = float(np.var(logs, ddof=1) - np.mean(scipy.special.polygamma(1, degrees / 2)))
    worth = MOST_DEGREES if excess <= 0 else min(MOST_DEGREES, 2 * _inverse_trigamma(excess))
    return Prior(size, worth, _together(known))


def _together(sisters: Sequence[Runs]) -> float:
    """Return the p value of the F test for independent blocks, over the sister scenarios with the same blocks."""
    if not sisters:
        return 1.0
    blocks = max((frozenset(one) for one in sisters), key=len)
    rows = [np.array([one[block] for block in sorted(blocks, key=str)]) for one in sisters if frozenset(one) == blocks]
    rows = [(row - row.mean()) / row.std() for row in rows if row.std() > 0]
    count, n = len(rows), len(blocks)
    if count < 2 or n < 2:
        return 1.0
    table = np.stack(rows)
    between = count * float(np.sum(table.mean(axis=0) ** 2))
    within = float(np.sum(table**2)) - between
    degrees = n - 1, (n - 1) * (count - 1)
    if within <= 0:
        return 0.0
    return float(scipy.special.fdtrc(*degrees, (between / degrees[0]) / (within / degrees[1])))


def _inverse_trigamma(value: float) -> float:
    """Return x where trigamma(x) is the value, by Newton's method on its reciprocal."""
    x = 0.5 + 1 / value
    for _ in range(50):
        step = float(scipy.special.polygamma(1, x)) * (1 - float(scipy.special.polygamma(1, x)) / value)
        step /= float(scipy.special.polygamma(2, x))
        x += step
        if -step / x < 1e-9:
            break
    return math.inf if not math.isfinite(x) else x
