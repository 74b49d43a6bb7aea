# SPDX-License-Identifier: Apache-2.0
"""What a law is, and when the kernel follows it.

Owns the verdict. A point that the law states must be met within ``TOLERANCE``. Where the kernel's source is known to
do something else, the law names that deviation, each point states what follows from the source, and that is held to
the same tolerance: no deviation widens it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from longfat.conformance.scenario import Scenario
from longfat.conformance.trace import Run

TOLERANCE = 0.05


@dataclass(frozen=True)
class Point:
    """One comparison: at ``x`` the law states ``law`` and the kernel did ``kernel``.

    ``law`` is a number or both ends of a range. ``source`` is what follows from the kernel's source instead, in a law
    that has a deviation.
    """

    x: float
    law: float | tuple[float, float]
    kernel: float
    source: float | None = None

    @property
    def law_ends(self) -> tuple[float, float]:
        """The range that the law allows; both ends are equal where it states a number."""
        return self.law if isinstance(self.law, tuple) else (self.law, self.law)

    @property
    def from_law(self) -> float:
        """How far the kernel is from the law, as a share of it; 0 inside a range."""
        return _distance(self.kernel, self.law_ends)

    @property
    def from_expected(self) -> float:
        """How far the kernel is from what is expected of it: of its source where there is a deviation."""
        return self.from_law if self.source is None else _distance(self.kernel, (self.source, self.source))


@dataclass(frozen=True)
class Axes:
    """What the points of a law are drawn over: the labels, units included."""

    x: str
    y: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Law:
    """A statement about an algorithm, with the runs that show it and the way to read a run.

    ``deviation`` says what the source does instead, and why; ``note`` what a reader should know of a law that is met.
    Points at fewer than ``least_points`` different places are not enough for a verdict.
    """

    cca: str
    claim: str
    reference: str
    axes: Axes
    scenarios: tuple[Scenario, ...]
    points: Callable[[Run], Sequence[Point]]
    deviation: str | None = None
    least_points: int = 1
    note: str | None = None

    @property
    def name(self) -> str:
        """Algorithm and claim: the law's one name in tests and report."""
        return f"{self.cca}: {self.claim}"


@dataclass(frozen=True)
class Finding:
    """A law with what the kernel did."""

    law: Law
    points: tuple[Point, ...]

    @property
    def problems(self) -> list[str]:
        """Why the kernel does not follow the law, or not in the way its deviation says; empty when it does."""
        law, points = self.law, self.points
        found = []
        places = {point.x for point in points}
        if len(places) < law.least_points:
            found.append(f"measured at {len(places)} of at least {law.least_points} places")
        for point in points:
            if (point.source is not None) != (law.deviation is not None):
                found.append(f"at {point.x:.6g} a value from the source goes with a named deviation, and only with one")
            # Not "distance > TOLERANCE": a value that is no number must fail.
            if not point.from_expected <= TOLERANCE:
                expected = point.law if point.source is None else point.source
                found.append(
                    f"at {point.x:.6g} {law.axes.x}: {point.kernel:.6g} {law.axes.y}, "
                    f"expected {_text(expected)}, {100 * point.from_expected:.1f} % off"
                )
        if law.deviation is not None and points and all(point.from_law <= TOLERANCE for point in points):
            found.append("the law is met: its deviation explains nothing")
        return found

    @property
    def worst_from_law(self) -> float:
        """The largest distance of a point from the law, as a share of it."""
        return max(point.from_law for point in self.points)

    @property
    def worst_from_expected(self) -> float:
        """The largest distance of a point from what is expected of it, as a share."""
        return max(point.from_expected for point in self.points)


def _distance(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    nearest = min(max(value, low), high)
    if value == nearest:
        return 0.0
    return abs(value - nearest) / abs(nearest) if nearest else float("inf")


def _text(value: float | tuple[float, float]) -> str:
    return f"{value[0]:.6g} to {value[1]:.6g}" if isinstance(value, tuple) else f"{value:.6g}"
