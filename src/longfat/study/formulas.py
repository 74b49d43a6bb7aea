# SPDX-License-Identifier: Apache-2.0
"""The formulas of derived values: arithmetic with numbers and quantities, exact and with dimensions checked.

Owns their evaluation; ``longfat.study.expressions`` has the grammar. Must not know where the values of names come from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from lark import Token, Tree

from longfat.spec.runspec import Scalar
from longfat.spec.units import Duration, Quantity, Rate, Ratio, Size, read_quantity
from longfat.study.expressions import ExpressionError, parse
from longfat.study.schema.names import nearest, shown
from longfat.system.errors import StudyError

MOST_BITS = 4096  # of an intermediate value
FUNCTIONS = ("min", "max", "round", "floor", "ceil")

# The base unit of each kind of quantity in seconds and bytes, and its exponents of time and data.
_KINDS: tuple[tuple[type[Quantity], Fraction, tuple[int, int]], ...] = (
    (Duration, Fraction(1, 1_000_000), (1, 0)),
    (Size, Fraction(1), (0, 1)),
    (Rate, Fraction(1, 8), (-1, 1)),
    (Ratio, Fraction(1, 1_000_000), (0, 0)),
)


class FormulaError(Exception):
    """An error in a formula, with its column (from 1)."""

    def __init__(self, message: str, column: int, hint: str | None = None) -> None:
        self.message = f"column {column}: {message}"
        super().__init__(self.message)
        self.hint = hint


@dataclass(frozen=True)
class Amount:
    """An exact value in seconds and bytes, with its exponents of time and data."""

    value: Fraction
    dimension: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        if self.dimension == (0, 0):
            return "a number"
        return next((kind.dimension for kind, _, powers in _KINDS if powers == self.dimension), "of no single unit")


def amount_of(given: Scalar) -> Amount | None:
    """Return a number or the text of a quantity as an amount; None for other texts, true and false."""
    if isinstance(given, bool):
        return None
    if not isinstance(given, str):
        return Amount(Fraction(str(given)))
    try:
        quantity = read_quantity(given)
    except StudyError:
        return None
    return next(
        (Amount(quantity.value * base, powers) for kind, base, powers in _KINDS if isinstance(quantity, kind)), None
    )


class Formula:
    """A parsed formula. Raises FormulaError for a text that is not a formula."""

    def __init__(self, text: str) -> None:
        try:
            self._tree = parse(text, "derived")
        except ExpressionError as error:
            raise FormulaError(error.message, error.column, error.hint) from error
        self.names = tuple(dict.fromkeys(str(node.children[0]) for node in self._tree.find_data("name")))

    def value(self, value_of: Callable[[str], Amount]) -> int | float | str:
        """Return the value as a manifest would give it: a number, or the text of a quantity.

        ``value_of`` returns the amount of a name or raises StudyError. Raises FormulaError when a name has none, the
        dimensions do not match, or a quantity is not a whole number of its base unit.
        """
        amount = _evaluate(self._tree, value_of)
        if amount.dimension == (0, 0):
            try:
                return int(amount.value) if amount.value.denominator == 1 else float(amount.value)
            except OverflowError as error:
                raise FormulaError("the number has too many digits", 1) from error
        for kind, base, powers in _KINDS:
            if powers != amount.dimension:
                continue
            whole, unit = amount.value / base, next(iter(kind.units))
            if whole < 0:
                raise FormulaError(f"the result is negative; {kind.dimension} must be 0 or more", 1)
            if whole.denominator != 1:
                hint = f"write round(... / 1 {unit}) * 1 {unit}"
                raise FormulaError(f"the result is not a whole number of {unit}; values are never rounded", 1, hint)
            return str(kind(int(whole)))
        hint = "divide and multiply until the units fit"
        raise FormulaError("the result is neither a number, a length of time, a size nor a rate", 1, hint)


def _evaluate(tree: Tree[Token], value_of: Callable[[str], Amount]) -> Amount:
    column = tree.meta.column
    if tree.data == "call":
        name, *arguments = tree.children
        return _call(str(name), [_evaluate(_tree(one), value_of) for one in arguments], column)
    if tree.data in ("number", "quantity", "name"):
        text = str(tree.children[0])
        if tree.data == "number":
            if math.isinf(float(text)):
                raise FormulaError("the number has too many digits", column)
            return Amount(Fraction(text))
        if tree.data == "quantity":
            return _quantity(text, column)
        try:
            return value_of(text)
        except StudyError as error:
            raise FormulaError(error.message, column, error.hint) from error
    one, *further = (_evaluate(part, value_of) for part in tree.children if isinstance(part, Tree))
    if tree.data == "negate":
        return Amount(-one.value, one.dimension)
    made = _arithmetic(str(tree.data), one, further[0], column)
    if max(made.value.numerator.bit_length(), made.value.denominator.bit_length()) > MOST_BITS:
        raise FormulaError("the number has too many digits", column)
    return made


def _tree(child: Tree[Token] | Token) -> Tree[Token]:
    assert isinstance(child, Tree)  # tokens are only in leaves
    return child


def _quantity(text: str, column: int) -> Amount:
    try:
        quantity = read_quantity(text)
    except StudyError as error:
        raise FormulaError(error.message, column, error.hint) from error
    amount = amount_of(text)
    if quantity is None or amount is None:  # the grammar has no other units
        raise FormulaError(f"{text!r} has more digits than a quantity may have", column)
    return amount


def _dimension(parts: list[Amount], what: str, column: int) -> tuple[int, int]:
    """Return the dimension that all parts have. Raises FormulaError if they differ."""
    for part in parts[1:]:
        if part.dimension != parts[0].dimension:
            raise FormulaError(f"{what} needs amounts of one kind, but these are {parts[0]} and {part}", column)
    return parts[0].dimension


def _arithmetic(operation: str, one: Amount, other: Amount, column: int) -> Amount:
    """Return the sum, difference, product or quotient of two amounts."""
    if operation in ("add", "subtract"):
        dimension = _dimension([one, other], "+" if operation == "add" else "-", column)
        return Amount(one.value + other.value if operation == "add" else one.value - other.value, dimension)
    if operation == "divide" and not other.value:
        raise FormulaError("division by zero", column)
    sign = 1 if operation == "multiply" else -1
    (time, data), (time2, data2) = one.dimension, other.dimension
    return Amount(one.value * other.value**sign, (time + sign * time2, data + sign * data2))


def _call(name: str, arguments: list[Amount], column: int) -> Amount:
    if name not in FUNCTIONS:
        message = f"unknown function {shown(name)}; allowed: {', '.join(FUNCTIONS)}"
        raise FormulaError(message, column, nearest(name, FUNCTIONS))
    if name in ("min", "max"):
        dimension = _dimension(arguments, name, column)
        values = [argument.value for argument in arguments]
        return Amount(min(values) if name == "min" else max(values), dimension)
    if len(arguments) != 1:
        raise FormulaError(f"{name} takes one number, but {len(arguments)} are given", column)
    if arguments[0].dimension != (0, 0):
        raise FormulaError(f"{name} takes a number, but this is {arguments[0]}", column, "divide by a unit, / 1 B")
    value = arguments[0].value
    if name == "round":
        return Amount(Fraction(math.floor(value + Fraction(1, 2))))
    return Amount(Fraction(math.floor(value) if name == "floor" else math.ceil(value)))
