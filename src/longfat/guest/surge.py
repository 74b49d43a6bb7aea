# SPDX-License-Identifier: Apache-2.0
"""SURGE, the model of web users of Barford and Crovella (SIGMETRICS 1998): files and times of requests. Pure.

A user requests a page, then its embedded files one by one with an active OFF time before each, then reads for an
inactive OFF time, and so on. The constants are from Table 1 of the publication, except where a comment says otherwise.
Temporal locality is left out: it affects caches and disks, and the server has neither.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random
from statistics import NormalDist

FILES = 2000  # chosen: the tail of the sizes, and so the mean, grows with the number of files

# Sizes of files in bytes: the body lognormal (natural logarithm), the tail Pareto.
BODY_SHARE = 0.93
BODY_MU, BODY_SIGMA = 9.357, 1.318
TAIL_BYTES, TAIL_SHAPE = 133_000, 1.1
# Sizes of requests in bytes: Pareto.
REQUEST_BYTES, REQUEST_SHAPE = 1000, 1.0
# Embedded files of a page: a Pareto number of at least 1, rounded down (the publication's is continuous).
EMBEDDED_SHAPE = 2.43
# Times in seconds between requests: active OFF is Weibull, inactive OFF Pareto.
ACTIVE_SCALE_S, ACTIVE_SHAPE = 1.46, 0.382
INACTIVE_LEAST_S, INACTIVE_SHAPE = 1.0, 1.5

# Chosen: age of the sessions at the start, in a network without delay. Without it all users would start with a request,
# and heavy-tailed OFF times would need longer than a run to reach their distribution.
HISTORY_S = 600.0


@dataclass(frozen=True)
class Files:
    """The server's files: sizes in bytes, ascending, and the share of requests for each."""

    sizes: tuple[int, ...]
    shares: tuple[float, ...]

    @property
    def mean_request_bytes(self) -> float:
        """Mean size of a reply in bytes."""
        return math.fsum(size * share for size, share in zip(self.sizes, self.shares, strict=True))


def files(model: str) -> Files:
    """Return the files of ``surge`` or ``surge_files``. Raises ValueError on another name."""
    sizes = tuple(round(file_bytes((number + 0.5) / FILES)) for number in range(FILES))
    if model == "surge":
        return Files(sizes, matched_shares(sizes))
    if model == "surge_files":
        return Files(sizes, (1 / FILES,) * FILES)
    raise ValueError(f"no web model {model!r}")


def file_bytes(quantile: float) -> float:
    """Return the size at a quantile (0 to 1, both excluded) of the files."""
    if quantile >= BODY_SHARE:
        return pareto(TAIL_BYTES, TAIL_SHAPE, (quantile - BODY_SHARE) / (1 - BODY_SHARE))
    normal = NormalDist(BODY_MU, BODY_SIGMA)
    below_the_tail = normal.cdf(math.log(TAIL_BYTES))
    return math.exp(normal.inv_cdf(quantile / BODY_SHARE * below_the_tail))


def matched_shares(sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Return the popularity of each file by Zipf's law, with ranks that approximate the distribution of request sizes.

    The file with the largest share of requests around its size becomes the most popular, and so on.
    """
    bounds = [0.0, *(math.sqrt(one * other) for one, other in pairwise(sizes)), math.inf]
    below = [0.0 if size <= REQUEST_BYTES else 1 - (REQUEST_BYTES / size) ** REQUEST_SHAPE for size in bounds]
    wanted = [upper - lower for lower, upper in pairwise(below)]
    total = sum(1 / rank for rank in range(1, len(sizes) + 1))
    shares = [0.0] * len(sizes)
    for rank, number in enumerate(sorted(range(len(sizes)), key=lambda number: -wanted[number]), start=1):
        shares[number] = 1 / rank / total
    return tuple(shares)


def mean_embedded() -> float:
    """Return the mean number of embedded files: the sum of P(n or more) over all n from 1, a zeta function."""
    last = 1000
    tail = math.pow(last + 0.5, 1 - EMBEDDED_SHAPE) / (EMBEDDED_SHAPE - 1)
    return math.fsum(count**-EMBEDDED_SHAPE for count in range(1, last + 1)) + tail


def mean_off_s() -> float:
    """Return the mean OFF time of a page in seconds: before its embedded files, and after the page."""
    active = ACTIVE_SCALE_S * math.gamma(1 + 1 / ACTIVE_SHAPE)
    inactive = INACTIVE_LEAST_S * INACTIVE_SHAPE / (INACTIVE_SHAPE - 1)
    return float(mean_embedded() * active + inactive)


def pareto(least: float, shape: float, quantile: float) -> float:
    """Return the Pareto number at a quantile (0 to less than 1)."""
    return float(least * (1 - quantile) ** (-1 / shape))


def weibull(scale: float, shape: float, quantile: float) -> float:
    """Return the Weibull number at a quantile (0 to less than 1)."""
    return float(scale * (-math.log(1 - quantile)) ** (1 / shape))


def user_random(seed: int, name: str, number: int) -> Random:
    """Return a user's random numbers, which depend only on the run's seed, the traffic's name and the user."""
    return Random(f"{seed} {name} {number}")


class Sessions:
    """Sessions of users. OFF times are multiplied by ``off``."""

    def __init__(self, model: str, off: float) -> None:
        self.files = files(model)
        self._off = off
        self._until = list(accumulate(self.files.shares))

    def session(self, random: Random) -> Iterator[tuple[float, int]]:
        """Yield a user's requests endlessly: seconds to wait after the last reply, and the number of the file."""
        while True:
            yield self._off * pareto(INACTIVE_LEAST_S, INACTIVE_SHAPE, random.random()), self._file(random)
            for _ in range(int(pareto(1, EMBEDDED_SHAPE, random.random()))):
                yield self._off * weibull(ACTIVE_SCALE_S, ACTIVE_SHAPE, random.random()), self._file(random)

    def under_way(self, random: Random) -> Iterator[tuple[float, int]]:
        """Yield a session after HISTORY_S: the first wait is the rest of the OFF time of that moment."""
        requests = self.session(random)
        left_s = -self._off * HISTORY_S
        for wait_s, file in requests:
            left_s += wait_s
            if left_s >= 0:
                yield left_s, file
                break
        yield from requests

    def _file(self, random: Random) -> int:
        return min(bisect_right(self._until, random.random()), FILES - 1)
