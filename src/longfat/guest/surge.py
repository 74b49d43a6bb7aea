# SPDX-License-Identifier: Apache-2.0
"""SURGE, the model of web users of Barford and Crovella (SIGMETRICS 1998): which file is asked for, and when.

A user asks for a page, then for its embedded files one after the other with an active OFF time before each, then reads
for an inactive OFF time, and so on. The constants are the publication's Table 1 but where a comment says otherwise.
Owns the distributions and the draws; knows nothing of HTTP. Pure: the same random numbers give the same session.

Temporal locality is left out: it shows in a cache or on a disk, and the server has neither.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random
from statistics import NormalDist

FILES = 2000  # chosen: the tail of the sizes, and with it the mean, grows with the number of files

# Sizes of files in bytes: the body lognormal (natural logarithm), the tail Pareto.
BODY_SHARE = 0.93
BODY_MU, BODY_SIGMA = 9.357, 1.318
TAIL_BYTES, TAIL_SHAPE = 133_000, 1.1
# Sizes of requests in bytes: Pareto.
REQUEST_BYTES, REQUEST_SHAPE = 1000, 1.0
# Embedded files of a page: the whole part of a Pareto number of at least 1 (chosen: the publication's is continuous).
EMBEDDED_SHAPE = 2.43
# Times in seconds between requests: active OFF is Weibull, inactive OFF Pareto.
ACTIVE_SCALE_S, ACTIVE_SHAPE = 1.46, 0.382
INACTIVE_LEAST_S, INACTIVE_SHAPE = 1.0, 1.5

# Chosen: users have been at it for so long when they are first looked at, in a network without delay. Without it all
# would start with a request, and OFF times of a heavy tail would take longer than a run to be spread as they should.
HISTORY_S = 600.0


@dataclass(frozen=True)
class Files:
    """The server's files: sizes in bytes, ascending, and how often each is asked for (shares of all requests)."""

    sizes: tuple[int, ...]
    shares: tuple[float, ...]

    @property
    def mean_request_bytes(self) -> float:
        """Mean size of a reply."""
        return math.fsum(size * share for size, share in zip(self.sizes, self.shares, strict=True))


def files(model: str) -> Files:
    """The files of ``surge`` or ``surge_files``. Raises ValueError on another name."""
    sizes = tuple(round(file_bytes((number + 0.5) / FILES)) for number in range(FILES))
    if model == "surge":
        return Files(sizes, matched_shares(sizes))
    if model == "surge_files":
        return Files(sizes, (1 / FILES,) * FILES)
    raise ValueError(f"no web model {model!r}")


def file_bytes(quantile: float) -> float:
    """The size below which a share ``quantile`` (0 to 1, both excluded) of the files is."""
    if quantile >= BODY_SHARE:
        return pareto(TAIL_BYTES, TAIL_SHAPE, (quantile - BODY_SHARE) / (1 - BODY_SHARE))
    normal = NormalDist(BODY_MU, BODY_SIGMA)
    below_the_tail = normal.cdf(math.log(TAIL_BYTES))
    return math.exp(normal.inv_cdf(quantile / BODY_SHARE * below_the_tail))


def matched_shares(sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Popularity of each file by Zipf's law, ranks given so that the sizes of requests come near their distribution.

    The distribution wants a share of the requests around each size; the file where it wants most becomes the most
    popular one, and so on.
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
    """Mean number of a page's embedded files: the sum of P(n or more) over all n from 1, a zeta function."""
    last = 1000
    tail = math.pow(last + 0.5, 1 - EMBEDDED_SHAPE) / (EMBEDDED_SHAPE - 1)
    return math.fsum(count**-EMBEDDED_SHAPE for count in range(1, last + 1)) + tail


def mean_off_s() -> float:
    """Mean OFF time of a page in seconds: its embedded files' and the one after it."""
    active = ACTIVE_SCALE_S * math.gamma(1 + 1 / ACTIVE_SHAPE)
    inactive = INACTIVE_LEAST_S * INACTIVE_SHAPE / (INACTIVE_SHAPE - 1)
    return float(mean_embedded() * active + inactive)


def pareto(least: float, shape: float, quantile: float) -> float:
    """The Pareto number below which a share ``quantile`` (0 to less than 1) is."""
    return float(least * (1 - quantile) ** (-1 / shape))


def weibull(scale: float, shape: float, quantile: float) -> float:
    """The Weibull number below which a share ``quantile`` (0 to less than 1) is."""
    return float(scale * (-math.log(1 - quantile)) ** (1 / shape))


def user_random(seed: int, name: str, number: int) -> Random:
    """A user's own random numbers, whatever becomes of the others: those of the run's seed, the web traffic's name."""
    return Random(f"{seed} {name} {number}")


class Sessions:
    """What users ask for. ``off`` is what OFF times are taken times."""

    def __init__(self, model: str, off: float) -> None:
        self.files = files(model)
        self._off = off
        self._until = list(accumulate(self.files.shares))

    def session(self, random: Random) -> Iterator[tuple[float, int]]:
        """A user's requests for ever: seconds to wait after the last reply, and the number of the file."""
        while True:
            yield self._off * pareto(INACTIVE_LEAST_S, INACTIVE_SHAPE, random.random()), self._file(random)
            for _ in range(int(pareto(1, EMBEDDED_SHAPE, random.random()))):
                yield self._off * weibull(ACTIVE_SCALE_S, ACTIVE_SHAPE, random.random()), self._file(random)

    def under_way(self, random: Random) -> Iterator[tuple[float, int]]:
        """A session looked at after HISTORY_S: the first wait is what is left of the OFF time of that moment."""
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
