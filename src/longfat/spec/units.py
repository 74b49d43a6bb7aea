# SPDX-License-Identifier: Apache-2.0
"""Typed quantities and their text: durations, sizes, rates and ratios.

Owns the unit symbols and the exact conversion between text and whole base units. Nothing is rounded: a value that is
not a whole number of base units is an error. Prefixes are strict: kB is 1000 B, KiB is 1024 B.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from longfat.system.errors import StudyError

_TEXT = re.compile(r"\s*([+-]?\d{1,15}(?:\.\d{1,15})?)\s*([A-Za-zµ%][A-Za-z/]*)?\s*", re.ASCII)


@dataclass(frozen=True, order=True)
class Quantity:
    """A whole, non-negative number of base units; the subclass names the dimension and its units.

    Raises StudyError when the value is negative.
    """

    value: int
    dimension: ClassVar[str]
    example: ClassVar[str]
    units: ClassVar[Mapping[str, int]]

    def __post_init__(self) -> None:
        if self.value < 0:
            raise StudyError(f"{self.value} is negative; {self.dimension} must be 0 or more")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a number with its unit, such as ``"30 ms"``.

        Raises StudyError when the unit is missing or unknown, the value is negative, or the conversion is inexact.
        """
        hint = f'write a number and a unit, such as "{cls.example}"; units: {", ".join(cls.units)}'
        match = _TEXT.fullmatch(text)
        if not match:
            raise StudyError(f"{text!r} is not {cls.dimension}", hint=hint)
        number, symbol = match.groups()
        if symbol is None:
            raise StudyError(f"{text!r} has no unit; {cls.dimension} needs one", hint=hint)
        if symbol not in cls.units:
            message = f"{symbol!r} in {text!r} is not a unit of {cls.dimension}"
            raise StudyError(message, hint=_nearest_unit(symbol, cls.units) + hint)
        if Fraction(number) < 0:
            raise StudyError(f"{text!r} is negative; {cls.dimension} must be 0 or more")
        exact = Fraction(number) * cls.units[symbol]
        if exact.denominator != 1:
            base = next(iter(cls.units))
            raise StudyError(f"{text!r} is not a whole number of {base}; values are never rounded")
        return cls(int(exact))

    def __str__(self) -> str:
        """Return the shortest text with this value."""
        exact = [(self.value // size, unit) for unit, size in self.units.items() if self.value % size == 0]
        number, unit = min(exact, key=lambda pair: len(str(pair[0])))
        return f"{number} {unit}"


@dataclass(frozen=True, order=True)
class Duration(Quantity):
    """A length of time in microseconds."""

    dimension = "a length of time"
    example = "30 ms"
    units: ClassVar[Mapping[str, int]] = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000}


@dataclass(frozen=True, order=True)
class Size(Quantity):
    """An amount of data in bytes; decimal and binary prefixes are distinct (IEC 80000-13)."""

    dimension = "a size"
    example = "4 MiB"
    units: ClassVar[Mapping[str, int]] = {
        "B": 1,
        "KiB": 1 << 10,
        "MiB": 1 << 20,
        "GiB": 1 << 30,
        "kB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
    }


@dataclass(frozen=True, order=True)
class Rate(Quantity):
    """A rate in bits per second."""

    dimension = "a rate"
    example = "1 Gbit/s"
    units: ClassVar[Mapping[str, int]] = {
        "bit/s": 1,
        "kbit/s": 10**3,
        "Mbit/s": 10**6,
        "Gbit/s": 10**9,
        "Tbit/s": 10**12,
    }


@dataclass(frozen=True, order=True)
class Ratio(Quantity):
    """A share of a whole in parts per million."""

    dimension = "a ratio"
    example = "12.5 %"
    units: ClassVar[Mapping[str, int]] = {"ppm": 1, "%": 10_000}


def read_quantity(text: str) -> Quantity | None:
    """Read a quantity of any dimension; None when the text has no known unit.

    Raises StudyError when the unit is known but the value is negative or would have to be rounded.
    """
    match = _TEXT.fullmatch(text)
    symbol = match and match.group(2)
    kinds: tuple[type[Quantity], ...] = (Duration, Size, Rate, Ratio)
    return next((kind.parse(text) for kind in kinds if symbol in kind.units), None)


def _nearest_unit(symbol: str, units: Mapping[str, int]) -> str:
    """Return a question with the nearest unit; "" without any."""
    same = [unit for unit in units if unit.lower().removesuffix("/s") == symbol.lower().removesuffix("/s")]
    near = same or difflib.get_close_matches(symbol, units, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}? " if near else ""
