# SPDX-License-Identifier: Apache-2.0
"""The published laws as pure functions: windows in segments, times in the unit that the docstring names.

Owns formulas with their sources. Knows neither the kernel nor a measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


def recovery_rtts(a: float, b: float) -> float:
    """RTTs that Scalable TCP needs to grow back after a loss: ln(1/(1-b)) / ln(1+a) (Kelly 2003)."""
    return -math.log(1 - b) / math.log(1 + a)


def halving_rtts(b: float) -> float:
    """RTTs with a loss each in which Scalable TCP halves its rate: ln 2 / ln(1/(1-b)) (Kelly 2003)."""
    return math.log(2) / -math.log(1 - b)


def doubling_rtts(a: float) -> float:
    """RTTs without a loss in which Scalable TCP doubles its rate: ln 2 / ln(1+a) (Kelly 2003)."""
    return math.log(2) / math.log(1 + a)


def htcp_alpha(since_s: float) -> float:
    """Segments each RTT that H-TCP adds ``since_s`` seconds after a loss, at its reference RTT of 0.1 s.

    1 + 10 (D - D_L) + ((D - D_L) / 2)^2 with D_L = 1 s (Leith, Shorten, PFLDnet 2004), for a backoff factor of 0.5.
    """
    beyond = max(since_s - 1, 0)
    return 1 + 10 * beyond + (beyond / 2) ** 2


def htcp_kept(least_rtt: float, largest_rtt: float) -> float:
    """Share of the window that H-TCP keeps on a loss: RTTmin / RTTmax within 0.5 and 0.8 (Leith, Shorten 2004)."""
    return min(max(least_rtt / largest_rtt, 0.5), 0.8)


CUBIC_C = 0.4
CUBIC_BETA = 0.7


def cubic_k(largest: float) -> float:
    """Seconds after a loss at the window ``largest`` until CUBIC is there again (RFC 9438, section 4.2)."""
    return math.cbrt(largest * (1 - CUBIC_BETA) / CUBIC_C)


def cubic_window(largest: float, since_s: float) -> float:
    """CUBIC's window ``since_s`` seconds after a loss at the window ``largest`` (RFC 9438, section 4.2)."""
    return CUBIC_C * (since_s - cubic_k(largest)) ** 3 + largest


BIC_S_MAX = 32
BIC_BETA = 0.875


def bic_increase(distance: float) -> float:
    """Segments each RTT that BIC adds ``distance`` segments below the window of the last loss.

    To the middle between the two, but at most S_max = 32 segments (Xu, Harfoush, Rhee, INFOCOM 2004).
    """
    return min(distance / 2, BIC_S_MAX)


@dataclass(frozen=True)
class HighSpeed:
    """The response function of HighSpeed TCP, RFC 3649, section 5: windows in segments, rates in losses a segment."""

    low_window: float = 38
    high_window: float = 83000
    high_p: float = 1e-7
    high_decrease: float = 0.1

    def is_standard(self, window: float) -> bool:
        """Whether the rule at a window is that of Standard TCP: a = 1, b = 1/2."""
        return window <= self.low_window or self.high_window <= self.low_window

    def _part(self, window: float) -> float:
        """How far a window is on the way from low_window to high_window, on a logarithmic scale."""
        return math.log(window / self.low_window) / math.log(self.high_window / self.low_window)

    def loss_rate(self, window: float) -> float:
        """p(w): from that of Standard TCP, w = 1.2 / sqrt(p), at low_window to high_p at high_window."""
        low_p = (1.2 / self.low_window) ** 2
        return float(math.exp(math.log(low_p) + self._part(window) * math.log(self.high_p / low_p)))

    def b(self, window: float) -> float:
        """Share of the window that a loss takes."""
        return 0.5 if self.is_standard(window) else 0.5 + (self.high_decrease - 0.5) * self._part(window)

    def a(self, window: float) -> float:
        """Segments that the window grows each RTT."""
        if self.is_standard(window):
            return 1.0
        b = self.b(window)
        return window**2 * self.loss_rate(window) * 2 * b / (2 - b)


def highspeed_table() -> tuple[tuple[int, int, float], ...]:
    """The rows w, a(w), b(w) of RFC 3649, appendix B: each window at which a has grown by one more segment.

    The appendix takes p(w) = 0.078 / w^1.2, and writes a as a whole number.
    """
    rfc = HighSpeed()
    rows, last = [(38, 1, 0.5)], 1.0
    for window in range(38, 100_000):
        b = rfc.b(window)
        a = window**0.8 / 12.8 * 2 * b / (2 - b)
        if a > last + 1:
            rows.append((window, int(a), b))
            last = a
    return tuple(rows)


@dataclass(frozen=True)
class Compound:
    """The delay part of Compound TCP (Tan, Song, Zhang, Sridharan, INFOCOM 2006): windows and backlogs in segments."""

    alpha: float = 0.125
    beta: float = 0.5
    k: float = 0.75
    gamma: float = 30

    def growth(self, window: float) -> float:
        """Segments each RTT that both parts grow together, alpha w^k, while less than gamma are queued.

        The loss part has one segment of it, the delay part the rest.
        """
        return max(self.alpha * math.pow(window, self.k), 1)
