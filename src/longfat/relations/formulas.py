# SPDX-License-Identifier: Apache-2.0
"""The formulas of analytic claims and tables, by name.

Every argument is a plain number in base units (bit/s, microseconds, bytes, segments), every result a plain number in
the unit that its docstring names. A formula of a single study is part of the study's ``metrics.py``. Measures nothing.
"""

from __future__ import annotations

import functools
import inspect
import math
from bisect import bisect_left
from collections.abc import Callable

# RFC 3649, section 5: both ends of the response function, and b at the upper one.
LOW_WINDOW = 38
HIGH_WINDOW = 83000
HIGH_DECREASE = 0.1
_HTCP_RTT_US = 100_000
CUBIC_C = 0.4
CUBIC_BETA = 0.7


def bandwidth_delay_product(rate: float, rtt: float) -> float:
    """Data in flight that fills the path, in MB (10^6 bytes): rate in bit/s times RTT in microseconds."""
    return rate * rtt / 8e12


def quotient(numerator: float, denominator: float) -> float:
    """Numerator over denominator."""
    return numerator / denominator


def path_segments(rate: float, rtt: float, size: float) -> float:
    """Packets of a size in bytes that fill the path: rate in bit/s times RTT in microseconds."""
    return rate * rtt / (8e6 * size)


def sawtooth_window(loss_rate: float, increase: float, decrease: float) -> float:
    """Average window in segments of a regular sawtooth with one loss in 1/p segments: sqrt(a (2 - b) / (2 b p))."""
    return math.sqrt(increase * (2 - decrease) / (2 * decrease * loss_rate))


def standard_increase(window: float) -> float:
    """Segments that Standard TCP adds in an RTT (RFC 5681): 1/w for each of w acknowledgements, nearly 1."""
    after = window
    for _ in range(round(window)):
        after += 1 / after
    return after - window


def scalable_increase(window: float, a: float) -> float:
    """Segments that Scalable TCP adds each RTT: a for each of w acknowledgements (Kelly 2003)."""
    return window * a


def scalable_recovery_rtts(a: float, b: float) -> float:
    """RTTs that Scalable TCP needs to recover its window after a loss: ln(1/(1-b)) / ln(1+a) (Kelly 2003)."""
    return -math.log1p(-b) / math.log1p(a)


def scalable_halving_rtts(b: float) -> float:
    """RTTs in which Scalable TCP halves its rate with a loss in each: ln 2 / ln(1/(1-b)) (Kelly 2003, its table)."""
    return math.log(2) / -math.log1p(-b)


def scalable_doubling_rtts(a: float) -> float:
    """RTTs in which Scalable TCP doubles its rate without a loss: ln 2 / ln(1+a) (Kelly 2003, its table)."""
    return math.log(2) / math.log1p(a)


def highspeed_loss_rate(window: float) -> float:
    """Loss rate p(w) at which HighSpeed TCP keeps an average window: 0.078 / w^1.2 (RFC 3649, section 5)."""
    return 0.078 / math.pow(window, 1.2)


def highspeed_decrease(window: float) -> float:
    """Part b(w) of the window that HighSpeed TCP gives up on a loss (RFC 3649, section 5)."""
    if window <= LOW_WINDOW:
        return 0.5
    place = math.log(window / LOW_WINDOW) / math.log(HIGH_WINDOW / LOW_WINDOW)
    return 0.5 + (HIGH_DECREASE - 0.5) * place


def highspeed_increase(window: float) -> float:
    """Segments a(w) that HighSpeed TCP adds each RTT: w^2 p(w) 2 b(w) / (2 - b(w)) (RFC 3649, section 5)."""
    b = highspeed_decrease(window)
    return window**2 * highspeed_loss_rate(window) * 2 * b / (2 - b)


def highspeed_fitted_increase(window: float, high_window: float, high_p: float) -> float:
    """Segments a(w) that HighSpeed TCP adds each RTT with a different upper end than the RFC's (RFC 3649, section 5).

    Up to Low_Window it is Reno's 1; b at the upper end stays 0.1. Above Low_Window it may be less than 1.
    """
    if window <= LOW_WINDOW:
        return 1.0
    place = math.log(window / LOW_WINDOW) / math.log(high_window / LOW_WINDOW)
    low_p = 1.5 / LOW_WINDOW**2
    b = 0.5 + (HIGH_DECREASE - 0.5) * min(place, 1.0)
    return float(window**2 * low_p * (high_p / low_p) ** place * 2 * b / (2 - b))


@functools.cache
def highspeed_rows() -> tuple[float, ...]:
    """Return the windows of the table of RFC 3649, appendix B, at each of which a(w) has grown by a segment."""
    rows, last = [float(LOW_WINDOW)], 1.0
    for window in range(LOW_WINDOW, 100_000):
        b = highspeed_decrease(window)
        a = window**0.8 / 12.8 * 2 * b / (2 - b)
        if a > last + 1:
            rows.append(float(window))
            last = a
    return tuple(rows)


def highspeed_table_increase(window: float) -> float:
    """Whole segments added each RTT according to the first row of the table whose window is not below w."""
    return float(min(bisect_left(highspeed_rows(), window), len(highspeed_rows()) - 1) + 1)


def highspeed_table_decrease(window: float) -> float:
    """Part of the window given up on a loss according to the first row of the table whose window is not below w."""
    return highspeed_decrease(highspeed_rows()[int(highspeed_table_increase(window)) - 1])


def highspeed_response_increase(
    window: float, low_window: float, high_window: float, high_p: float, high_decrease: float
) -> float:
    """Segments a(w) that HighSpeed TCP adds each RTT with any of its parameters: 1 up to Low_Window (RFC 3649, 5).

    p(w) is Standard TCP's, w = 1.2 / sqrt(p), at Low_Window. Above that, a may be less than 1.
    """
    if _is_standard(window, low_window, high_window):
        return 1.0
    b = highspeed_response_decrease(window, low_window, high_window, high_decrease)
    low_p = (1.2 / low_window) ** 2
    place = _place(window, low_window, high_window)
    return float(window**2 * low_p * (high_p / low_p) ** place * 2 * b / (2 - b))


def highspeed_response_decrease(window: float, low_window: float, high_window: float, high_decrease: float) -> float:
    """Part b(w) of the window that HighSpeed TCP gives up on a loss, with any of its parameters (RFC 3649, 5)."""
    if _is_standard(window, low_window, high_window):
        return 0.5
    return 0.5 + (high_decrease - 0.5) * _place(window, low_window, high_window)


def highspeed_kernel_increase(
    window: float, low_window: float, high_window: float, high_p: float, high_decrease: float
) -> float:
    """The same as in the kernel, which never goes below 1, so that it grows at least as fast as Standard TCP."""
    return max(highspeed_response_increase(window, low_window, high_window, high_p, high_decrease), 1.0)


def _is_standard(window: float, low_window: float, high_window: float) -> bool:
    return window <= low_window or high_window <= low_window


def _place(window: float, low_window: float, high_window: float) -> float:
    """Return the position of a window between Low_Window (0) and High_Window (1), on a logarithmic scale."""
    return math.log(window / low_window) / math.log(high_window / low_window)


def htcp_increase(since: float, rtt: float) -> float:
    """Segments that H-TCP adds each RTT, for a backoff of 0.5 (Leith and Shorten 2004).

    1 + 10 D + (D/2)^2 with D the seconds beyond the first since the last loss, in proportion to an RTT of 100 ms.
    """
    return _htcp_alpha(since) * rtt / _HTCP_RTT_US


def htcp_kernel_increase(during: float, rtt: float, window: float) -> float:
    """The same as in net/ipv4/tcp_htcp.c, if the receiver acknowledges every second segment.

    alpha is truncated to a whole number before and after it is scaled to the RTT (htcp_alpha_update), and the
    acknowledgment that adds a segment does not count towards the next one (htcp_cong_avoid).
    """
    scale = min(max(8 * _HTCP_RTT_US // rtt, 4), 80)
    whole = max(8 * int(_htcp_alpha(during)) // scale, 1)
    return window / ((math.ceil(window / whole / 2) + 1) * 2)


def _htcp_alpha(since: float) -> float:
    beyond = max(since / 1e6 - 1, 0)
    return 1 + 10 * beyond + (beyond / 2) ** 2


def htcp_kept(least_rtt: float, largest_rtt: float) -> float:
    """Part of the window that H-TCP keeps on a loss: RTTmin / RTTmax within 0.5 and 0.8 (Leith and Shorten 2004)."""
    return min(max(least_rtt / largest_rtt, 0.5), 0.8)


def cubic_k(largest: float) -> float:
    """Seconds that CUBIC needs to return to the window ``largest`` of a loss (RFC 9438, section 4.2)."""
    return math.cbrt(largest * (1 - CUBIC_BETA) / CUBIC_C)


DIMENSIONS = {"rate": "rate", "size": "size"} | dict.fromkeys(
    ("rtt", "least_rtt", "largest_rtt", "since", "during"), "time"
)
"""The dimension of arguments by name. Their values are quantities, or numbers in base units."""
FORMULAS: dict[str, Callable[..., float]] = {
    name: found for name, found in vars().copy().items() if inspect.isfunction(found) and not name.startswith("_")
}
"""Every public function above, and the formulas of the studies that were loaded, by name."""


def formula(function: Callable[..., float]) -> Callable[..., float]:
    """Register a formula of a study's ``metrics.py``."""
    FORMULAS[function.__name__] = function
    return function


def arguments_of(name: str) -> tuple[str, ...]:
    """Return the names of a formula's arguments."""
    return tuple(inspect.signature(FORMULAS[name]).parameters)
