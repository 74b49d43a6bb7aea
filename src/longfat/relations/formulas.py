# SPDX-License-Identifier: Apache-2.0
"""The closed set of formulas that analytic claims and tables are computed from.

Owns formulas of the papers, by name; every argument is a plain number in base units (bit/s, microseconds,
bytes, segments) and every result a plain number in the unit its docstring gives. Measures nothing.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

# RFC 3649, section 5: both ends of the response function, and b at the upper one.
LOW_WINDOW = 38
HIGH_WINDOW = 83000
HIGH_DECREASE = 0.1


def bandwidth_delay_product(rate: float, rtt: float) -> float:
    """Data in flight that fills the path, in MB (10^6 bytes): rate in bit/s times RTT in microseconds."""
    return rate * rtt / 8e12


def quotient(numerator: float, denominator: float) -> float:
    """One number over another."""
    return numerator / denominator


def path_segments(rate: float, rtt: float, size: float) -> float:
    """Packets of a size in bytes that fill the path: rate in bit/s times RTT in microseconds."""
    return rate * rtt / (8e6 * size)


def sawtooth_window(loss_rate: float, increase: float, decrease: float) -> float:
    """Average window in segments of a regular sawtooth with one loss in 1/p segments: sqrt(a (2 - b) / (2 b p))."""
    return math.sqrt(increase * (2 - decrease) / (2 * decrease * loss_rate))


def standard_increase(window: float) -> float:
    """Segments that Standard TCP adds each RTT (RFC 5681): 1/w for each of w acknowledgements."""
    return window * (1 / window)


def scalable_increase(window: float, a: float) -> float:
    """Segments that Scalable TCP adds each RTT: a for each of w acknowledgements (Kelly 2003)."""
    return window * a


def window_of_path(rate: float, rtt: float, mtu: float) -> float:
    """Packets of ``mtu`` bytes in flight that fill the path: rate in bit/s, RTT in microseconds."""
    return rate * rtt / 8e6 / mtu


def standard_recovery(rate: float, rtt: float, mtu: float) -> float:
    """Seconds until Standard TCP is back at a window it halved, w/2 RTTs, where the path holds w (Kelly 2003)."""
    return window_of_path(rate, rtt, mtu) / 2 * rtt / 1e6


def standard_loss_rate(window: float) -> float:
    """Loss rate at which Standard TCP keeps an average window: 1.5 / w^2 (Mathis et al. 1997)."""
    return 1.5 / window**2


def loss_rate_of_path(rate: float, rtt: float, mtu: float) -> float:
    """Loss rate at which Standard TCP fills a path (Kelly 2003)."""
    return standard_loss_rate(window_of_path(rate, rtt, mtu))


def scalable_loss_rate(window: float, a: float, b: float, lwnd: float) -> float:
    """Loss rate at which Scalable TCP keeps an average window: a / (b w), Standard TCP's up to lwnd (Kelly 2003)."""
    return standard_loss_rate(window) if window <= lwnd else a / b / window


def scalable_recovery_rtts(a: float, b: float) -> float:
    """RTTs until Scalable TCP is back at the window before a loss: ln(1/(1-b)) / ln(1+a) (Kelly 2003)."""
    return -math.log1p(-b) / math.log1p(a)


def scalable_halving_rtts(b: float) -> float:
    """RTTs in which Scalable TCP halves its rate with a loss in each: ln 2 / ln(1/(1-b)) (Kelly 2003, its table)."""
    return math.log(2) / -math.log1p(-b)


def scalable_doubling_rtts(a: float) -> float:
    """RTTs in which Scalable TCP doubles its rate without a loss: ln 2 / ln(1+a) (Kelly 2003, its table)."""
    return math.log(2) / math.log1p(a)


def scalable_recovery(a: float, b: float, rtt: float) -> float:
    """Seconds until Scalable TCP is back at the window before a loss."""
    return scalable_recovery_rtts(a, b) * rtt / 1e6


def scalable_halving(b: float, rtt: float) -> float:
    """Seconds in which Scalable TCP halves its rate with a loss in each RTT."""
    return scalable_halving_rtts(b) * rtt / 1e6


def scalable_doubling(a: float, rtt: float) -> float:
    """Seconds in which Scalable TCP doubles its rate without a loss."""
    return scalable_doubling_rtts(a) * rtt / 1e6


def rate_variation(b: float) -> float:
    """Coefficient of variation of Scalable TCP's rate, of no unit: sqrt(b/2) (Kelly 2003, its table)."""
    return math.sqrt(b / 2)


def stability_bound(packets: float) -> float:
    """The a below which Scalable TCP is locally stable at a link, p / (y p'(y)) (Kelly 2003, after Vinnicombe).

    For a loss rate p(y) = (y/c)^B, that of a queue with random arrivals and room for B packets, it is 1/B. The paper
    does not say which loss rate it means.
    """
    return 1 / packets


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
    """Segments a(w) that HighSpeed TCP adds each RTT with another upper end than the RFC's (RFC 3649, section 5).

    Up to Low_Window it is Reno's 1; b at the upper end stays 0.1. Nothing keeps it from being less than 1 above that.
    """
    if window <= LOW_WINDOW:
        return 1.0
    place = math.log(window / LOW_WINDOW) / math.log(high_window / LOW_WINDOW)
    low_p = 1.5 / LOW_WINDOW**2
    b = 0.5 + (HIGH_DECREASE - 0.5) * min(place, 1.0)
    return float(window**2 * low_p * (high_p / low_p) ** place * 2 * b / (2 - b))


def highspeed_row(increase: float) -> float:
    """Window in segments of the table's row with that increase: the smallest w with a(w) >= increase."""
    window = LOW_WINDOW
    while increase > 1 and highspeed_increase(window) < increase and window < HIGH_WINDOW:
        window += 1
    return float(window)


def highspeed_table_increase(window: float) -> float:
    """Whole segments added each RTT by the table: those of the first row whose window is not below w."""
    increase = 1
    while highspeed_row(increase) < window and highspeed_row(increase) < HIGH_WINDOW:
        increase += 1
    return float(increase)


def asymmetry_of_two(x1: float, x2: float) -> float:
    """Asymmetry between two throughputs, (x1 - x2) / (x1 + x2) (Bullot and Cottrell 2003)."""
    return (x1 - x2) / (x1 + x2)


FORMULAS: dict[str, Callable[..., float]] = {
    formula.__name__: formula
    for formula in (
        bandwidth_delay_product,
        quotient,
        path_segments,
        sawtooth_window,
        standard_increase,
        scalable_increase,
        window_of_path,
        standard_recovery,
        standard_loss_rate,
        loss_rate_of_path,
        scalable_loss_rate,
        scalable_recovery_rtts,
        scalable_halving_rtts,
        scalable_doubling_rtts,
        scalable_recovery,
        scalable_halving,
        scalable_doubling,
        rate_variation,
        stability_bound,
        highspeed_loss_rate,
        highspeed_decrease,
        highspeed_increase,
        highspeed_fitted_increase,
        highspeed_row,
        highspeed_table_increase,
        asymmetry_of_two,
    )
}


def arguments_of(name: str) -> tuple[str, ...]:
    """The names of a formula's arguments."""
    return tuple(inspect.signature(FORMULAS[name]).parameters)
