# SPDX-License-Identifier: Apache-2.0
"""The parser of relations, which turns a text into its tree (``longfat.relations.nodes``).

A chain such as ``a > b = 3`` becomes a comparison for each sign: the difference of ``a`` and ``b`` with 0, and ``b``
with 3. ``longfat.study.expressions`` has the grammar.

Owns the tolerances too, which follow from the paper's wording and numbers, never from a result (docs/claims.md).
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple, TypeGuard, cast

from lark import Token, Transformer, v_args
from lark.exceptions import VisitError

from longfat.metrics import METRICS
from longfat.relations.bind import Item, Loop, RelationError, Term, Value
from longfat.relations.limits import NO_DIFFERENCE, TOLERANCE, Comparator, Limits
from longfat.relations.nodes import (
    Binary,
    Count,
    Expression,
    Extreme,
    Farthest,
    Formula,
    Gain,
    Number,
    Places,
    Rank,
    Spread,
    terms_of,
)
from longfat.relations.relation import Comparison, Relation
from longfat.relations.tree import constant, metric_behind
from longfat.spec.runspec import Scalar
from longfat.spec.units import read_quantity
from longfat.study import expressions
from longfat.system.errors import StudyError

_ONE_LAW = "points are compared with one law of numbers and formulas"


class _Spread(NamedTuple):
    """A side of a chain, with the paper's own standard error of its number."""

    side: Expression
    spread: float | None


def parse(text: str) -> Relation:
    """Return the tree of a relation. Raises RelationError with the column and what was expected there."""
    return cast(Relation, _parsed(text, "relation"))


def parse_expression(text: str) -> Expression:
    """Parse an expression. Raises RelationError."""
    return cast(Expression, _parsed(text, "expression"))


def parse_term(text: str) -> Term:
    """Return the tree of a single metric, such as ``goodput[delay, highspeed]``. Raises RelationError."""
    term = parse_expression(text)
    if not isinstance(term, Term):
        raise RelationError("is not one metric; write METRIC[EXPERIMENT, CONDITION, ...]")
    return term


def parse_formula(text: str) -> Formula:
    """Return the tree of a formula with its arguments. Raises RelationError."""
    formula = parse_expression(text)
    if not isinstance(formula, Formula):
        raise RelationError("is not a formula; write FORMULA(NAME=VALUE, ...)")
    return formula


def parse_items(text: str) -> tuple[Item, ...]:
    """Return the items of a metric's brackets. Raises RelationError with the column in the text."""
    try:
        return parse_term(f"runs[{text}]").items
    except RelationError as error:
        raise RelationError(error.message, max(error.column - len("runs["), 1), error.hint) from error


def _parsed(text: str, start: expressions.Start) -> object:
    try:
        return _Tree(text).transform(expressions.parse(text, start))
    except expressions.ExpressionError as error:
        raise RelationError(error.message, error.column, error.hint) from error
    except VisitError as error:
        raise error.orig_exc from error


def _compared(left: Expression, sign: Comparator, right: Expression, spread: float | None) -> Comparison:
    """Return the comparison of a side of a chain with the next side.

    For two measured sides, < and > compare the difference with 0, and other signs the ratio with 1.
    """
    if _has_points(left):
        if spread is not None or terms_of(right):
            raise RelationError(_ONE_LAW, left.column)
        return Comparison(Farthest(left, sign, right), limits_of_ratio(sign))
    if spread is not None and (sign not in "=~" or spread <= 0 or not terms_of(left)):
        raise RelationError("an error is above 0 and follows = or ~; write `METRIC[...] = NUMBER ± ERROR`")
    if not terms_of(left) and terms_of(right):  # `3 < a` is `a > 3`
        return _compared(right, _MIRRORED.get(sign, sign), left, None)
    if not terms_of(right):
        number = constant(right)
        if sign in "=~" and spread is None and isinstance(right, Number) and number == 0:
            raise RelationError("0 has no relative tolerance; write `0 ± SPREAD` with the paper's own")
        if spread is not None:
            return Comparison(left, Limits.within_error(number, spread), printed=number, error=spread)
        printed = number if sign in "=~" else None
        limits = limits_of(left, sign, right, number)
        return Comparison(left, limits, printed=printed, approximate=sign == "~")
    if sign in "<>":
        above, below = (left, right) if sign == ">" else (right, left)
        return Comparison(Binary("-", above, below), Limits(0.0, math.inf, False), order=True)
    return Comparison(Binary("/", left, right), limits_of_ratio(sign))


_MIRRORED: dict[Comparator, Comparator] = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _has_points(side: Expression) -> TypeGuard[Term]:
    """Return whether a side is a metric with several points in a run."""
    return isinstance(side, Term) and side.metric in METRICS and bool(METRICS[side.metric].over)


@v_args(inline=True)
class _Tree(Transformer[Token, object]):
    """The nodes for lark's tree."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def relation(self, claim: Relation, *rest: Loop | tuple[Item, ...]) -> Relation:
        loops = tuple(part for part in rest if isinstance(part, Loop))
        where = tuple(item for part in rest if isinstance(part, tuple) for item in part)
        return dataclasses.replace(claim, loops=loops, where=where, text=self._text)

    def experiment(self, name: Token) -> tuple[Item, ...]:
        return (Item(str(name), None, (), name.column or 1),)

    def where(self, *items: Item) -> tuple[Item, ...]:
        return items

    def chain(self, first: Expression, *rest: Token | Expression | _Spread) -> Relation:
        sides, comparisons = [first], []
        for sign, limit in zip(rest[::2], rest[1::2], strict=True):
            right, spread = limit if isinstance(limit, _Spread) else _Spread(cast(Expression, limit), None)
            comparisons.append(_compared(sides[-1], cast(Comparator, str(sign)), right, spread))
            sides.append(right)
        if len(comparisons) > 1 and _has_points(first):
            raise RelationError(_ONE_LAW, first.column)
        return Relation(tuple(comparisons), tuple(sides))

    def spread(self, value: Number, _: Token, spread: Number) -> _Spread:
        return _Spread(value, spread.number)

    def within(self, of: Expression, low: Number, high: Number) -> Relation:
        if low.number >= high.number:
            raise RelationError(f"no number lies between {low.text} and {high.text}")
        return Relation((Comparison(of, Limits(low.number, high.number, True)),), (of,))

    def alike(self, of: Expression, factor: Token, nearly: Token | None) -> Relation:
        percent = 100 * (TOLERANCE if nearly is None else APPROXIMATE_TOLERANCE)
        spread = Spread(of, str(factor), factor.column or 1)
        return Relation((Comparison(spread, Limits(-math.inf, percent, True)),), (of,))

    def each(self, variable: Token) -> Loop:
        return Loop(str(variable), None, None, variable.column or 1)

    def each_but(self, variable: Token, but: Value) -> Loop:
        return Loop(str(variable), None, but, variable.column or 1)

    def listed(self, variable: Token, *values: Value) -> Loop:
        return Loop(str(variable), values, None, variable.column or 1)

    def add(self, left: Expression, right: Expression) -> Binary:
        return Binary("+", left, right)

    def subtract(self, left: Expression, _: Token, right: Expression) -> Binary:
        return Binary("-", left, right)

    def multiply(self, left: Expression, right: Expression) -> Binary:
        return Binary("*", left, right)

    def divide(self, left: Expression, right: Expression) -> Binary:
        return Binary("/", left, right)

    def gain(self, left: Expression, right: Expression) -> Gain:
        return Gain(left, right)

    def largest(self, of: Expression, loop: Loop) -> Extreme:
        return Extreme("max", of, loop)

    def smallest(self, of: Expression, loop: Loop) -> Extreme:
        return Extreme("min", of, loop)

    def rank(self, value: Value, factor: Token, of: Term, then: Term | None) -> Rank:
        return Rank(value, str(factor), of, then or of, factor.column or 1)

    def places(self, of: Term) -> Places:
        return Places(of)

    def count(self, of: Term, sign: Token, level: Number, loop: Loop) -> Count:
        if sign in "=~":
            raise RelationError(f"count has {sign}; allowed: >=, <=, > or <", sign.column or 1)
        return Count(of, cast(Comparator, str(sign)), level.number, loop)

    def formula(self, name: Token, *arguments: tuple[str, Value | None] | None) -> Formula:
        return Formula(str(name), tuple(pair for pair in arguments if pair is not None), name.column or 1)

    def argument(self, name: Token, value: Value | None) -> tuple[str, Value | None]:
        return str(name), value

    def term(self, metric: Token, *items: Item | None) -> Term:
        return Term(str(metric), tuple(item for item in items if item is not None), metric.column or 1)

    def bare(self, name: Token) -> Item:
        return Item(str(name), None, (), name.column or 1)

    def condition(self, name: Token, sign: Token, *values: Value) -> Item:
        return Item(str(name), str(sign), values, name.column or 1)

    def number(self, token: Token) -> Value:
        text = str(token)
        number = _number(text, token)
        return Value(int(text) if text.isdigit() else number, text, token.column or 1)

    def quantity(self, token: Token) -> Value:
        try:
            quantity = read_quantity(str(token))
        except StudyError as error:
            raise RelationError(error.message, token.column or 1, error.hint) from error
        if quantity is None:
            raise RelationError(f"{str(token)!r} has more digits than a quantity may have", token.column or 1)
        return Value(quantity.value, str(token), token.column or 1, dimension=type(quantity).__name__)

    def word(self, token: Token) -> Value:
        words: dict[str, Scalar] = {"true": True, "false": False}
        return Value(words.get(str(token), str(token)), str(token), token.column or 1, word=True)

    def text(self, token: Token) -> Value:
        return Value(str(token)[1:-1], str(token)[1:-1], token.column or 1)

    def signed(self, token: Token) -> Number:
        text = str(token)
        if text.endswith("%"):
            hint = "a number has the unit of what it is compared with, so 0.5 for a part and 50 for a metric in percent"
            raise RelationError(f"{text!r} has a unit; write the number alone", token.column or 1, hint)
        return Number(_number(text, token), text)


def _number(text: str, token: Token) -> float:
    """Return the number of a text. Raises RelationError if it is too large."""
    number = float(text)
    if math.isinf(number):
        raise RelationError(f"{text} is out of range; allowed: up to 1e308", token.column or 1)
    return number


APPROXIMATE_TOLERANCE = 0.10  # after ~
EVENTS = ("transfers", "cuts", "changes", "streams")  # units of counts
COUNTS = ("retransmissions",)  # counting metrics whose unit is not one of EVENTS
JAIN = "jain"  # the name of a metric of Jain's index begins so
FEW = 2  # events; up to this number the paper's count is exact
WHOLE = 100.0  # percent
HALF = 0.5  # margin around a whole number that excludes all others


def limits_of(left: Expression, sign: Comparator, right: Expression, number: float) -> Limits:
    """Return the limits of ``left sign right``, where ``right`` has the value ``number`` without runs."""
    if sign in "<>":
        return Limits.of(sign, number)
    if sign in ("<=", ">="):
        return Limits.of(sign, number, _slack(left, number))
    share = APPROXIMATE_TOLERANCE if sign == "~" else TOLERANCE
    if (known := metric_behind(left)) and known.name.startswith(JAIN):
        return _fairness(number, share)
    return Limits.of(sign, number, _margin(left, right, number, share, sign == "~"))


def limits_of_ratio(sign: Comparator) -> Limits:
    """Return the limits of the ratio of two measured sides."""
    if sign in ("<=", ">="):
        return Limits.of(sign, 1.0, NO_DIFFERENCE)
    return Limits.of(sign, 1.0, APPROXIMATE_TOLERANCE if sign == "~" else TOLERANCE)


def _slack(left: Expression, number: float) -> float:
    """Return the margin of a bound: half an event for counts, 1 % for a ratio of at least or at most 1, else none."""
    if _counts(left) or isinstance(left, Rank):
        own = isinstance(left, Rank | Count)  # of the study, not of a run: 0 has a margin, too
        return HALF if number == round(number) and (number or own) else 0.0
    return NO_DIFFERENCE if isinstance(left, Binary) and left.operator == "/" and number == 1 else 0.0


def _margin(left: Expression, right: Expression, number: float, share: float, approximate: bool) -> float:
    if isinstance(left, Rank) or (_counts(left) and abs(number) <= FEW):
        return HALF
    if _counts(left):
        return max(1.0, share * abs(number))
    known = metric_behind(left)
    if known and known.unit == "%" and known.bounds[1] == WHOLE:
        return share * min(abs(number), abs(WHOLE - number))
    if isinstance(right, Number) and (isinstance(left, Gain) or (isinstance(left, Binary) and left.operator == "-")):
        return _resolution(right.text, approximate)
    match right:
        case Binary(operator="/", left=Number() as over, right=Number() as under):
            return _of_quotient(number, over, under, share)
    return share * abs(number)


def _counts(left: Expression) -> bool:
    if isinstance(left, Count):
        return True
    known = metric_behind(left)
    return known is not None and (known.unit in EVENTS or known.name in COUNTS)


def _fairness(number: float, share: float) -> Limits:
    """Return the limits of Jain's index F: its coefficient of variation, sqrt(1/F - 1), may differ by ``share``."""
    variation = math.sqrt(max(1 / number - 1, 0.0)) if number > 0 else 0.0
    low, high = (1 / (1 + max(one, 0.0) ** 2) for one in (variation + share, variation - share))
    return Limits(low, high, True)


def _of_quotient(number: float, over: Number, under: Number, share: float) -> float:
    """Return the margin of a ratio of two printed numbers: half of their difference, at most 5 %."""
    printed = abs(number) * sum(_resolution(one.text, False) / abs(one.number) for one in (over, under) if one.number)
    return min(share * abs(number), max(printed, abs(number - 1) / 2))


def _resolution(text: str, approximate: bool) -> float:
    """Return half a unit of a number's last digit; after ~, of its last nonzero digit."""
    digits, _, exponent = text.lstrip("-").partition("e")
    decimals = len(digits.partition(".")[2])
    zeros = len(digits) - len(digits.rstrip("0")) if approximate and not decimals else 0
    return HALF * 10.0 ** (zeros - decimals + int(exponent or 0))
