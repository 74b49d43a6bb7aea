# SPDX-License-Identifier: Apache-2.0
"""Numbers for people: three significant digits and a unit, with more digits only if a limit is close.

Owns the wording of a comparison, but not its outcome.
"""

from __future__ import annotations

import math

from longfat.relations.evaluate import Evidence

DIGITS = 3
FINEST = 1e-3  # smaller numbers are printed as less than this
_MOST = 7  # most digits for showing on which side of a limit a number lies
_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def shown(value: float, unit: str = "", digits: int = DIGITS) -> str:
    """Format a number with its unit; bytes in kB, MB or GB of powers of ten."""
    factor, name = _scale(abs(value), unit)
    return f"{_digits(value / factor, digits)} {name}".strip()


def span(low: float, high: float, unit: str = "", digits: int = DIGITS) -> str:
    """Format two numbers with their unit: "941 to 944 Mb/s"; with more digits if they would look equal."""
    size = max(abs(low), abs(high))
    factor, name = _scale(size, unit)
    texts = [f"{end:.{digits}g}" if size < FINEST else _digits(end / factor, digits) for end in (low, high)]
    if texts[0] == texts[1] and low != high and digits < _MOST:
        return span(low, high, unit, digits + 1)
    return f"{' to '.join(texts)} {name}".strip()


def found(evidence: Evidence) -> str:
    """Format the value of a comparison, which must have one; a median is named."""
    value = evidence.mean or 0.0
    text = f"{value:.3g} {evidence.unit}".strip() if _tiny(evidence) else shown(value, evidence.unit, _enough(evidence))
    return f"median {text}" if evidence.median else text


def measured(evidence: Evidence) -> str:
    """Format the value of a comparison with its interval and n."""
    if evidence.mean is None:
        return evidence.reason or "no data"
    value = found(evidence)
    if evidence.n is None:
        return f"{value} (computed)"
    counted = f"n = {evidence.n}"
    if evidence.repeats:
        counted += f"; {evidence.repeats} more byte-identical, counted once"
    if (within := interval(evidence)) is None:
        return f"{value} ({counted})"
    return f"{value} ({within}; {counted})"


def interval(evidence: Evidence) -> str | None:
    """Format the interval that decides with its confidence: "90 %: 941 to 944 Mb/s"; None without any."""
    low, high = evidence.low, evidence.high
    size = max(abs(number or 0.0) for number in (evidence.mean, evidence.limit_low, evidence.limit_high))
    if evidence.mean is None or low is None or high is None or high - low <= 1e-9 * size:
        return None
    return f"{100 * (evidence.confidence or 0):.3g} %: {span(low, high, evidence.unit)}"


def allowed(evidence: Evidence) -> str:
    """Format the range that a comparison allows."""
    low, high = evidence.limit_low, evidence.limit_high
    if low is high is None or _tiny(evidence):
        return evidence.limit
    note = "".join(evidence.limit.partition(", ")[1:])
    if low is not None and high is not None:
        return f"{span(low, high, evidence.unit, _enough(evidence))}{note}"
    bound = low if low is not None else high
    words = ("above", "at least", "below", "at most")
    word = next((word for word in words if evidence.limit.startswith(word)), "")
    return f"{word} {shown(bound or 0.0, evidence.unit, _enough(evidence))}".strip() + note


def compared(evidence: Evidence) -> str:
    """Format the measured and the allowed value of a comparison."""
    return f"{measured(evidence)}, allowed {allowed(evidence)}"


def _enough(evidence: Evidence) -> int:
    """Return the number of digits that keeps a mean on the right side of each limit."""
    mean, limits = evidence.mean or 0.0, [x for x in (evidence.limit_low, evidence.limit_high) if x is not None]
    for digits in range(DIGITS, _MOST):
        rounded, *ends = (float(f"{value:.{digits}g}") for value in (mean, *limits))
        if all(
            mean == limit or ((rounded > end) == (mean > limit) and rounded != end)
            for limit, end in zip(limits, ends, strict=True)
        ):
            return digits
    return _MOST


def _tiny(evidence: Evidence) -> bool:
    """Return whether the limits are so small that they need a power of ten."""
    ends = [abs(end) for end in (evidence.limit_low, evidence.limit_high) if end]
    return bool(ends) and max(ends) < FINEST


def _scale(size: float, unit: str) -> tuple[float, str]:
    if unit == "bytes":
        return next(((factor, name) for factor, name in _BYTES if size >= factor), (1.0, "bytes"))
    return 1.0, unit


def _digits(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    if abs(value) < FINEST:
        return f"< {FINEST:g}" if value > 0 else f"> -{FINEST:g}"
    rounded = float(f"{value:.{digits}g}")
    places = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{places}f}"
