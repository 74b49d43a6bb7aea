# SPDX-License-Identifier: Apache-2.0
"""The text of a relation as a tree.

Owns the nodes and the parser. The meaning of the names does not matter here: ``longfat.relations.bind`` knows the
study.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError

from longfat.errors import StudyError
from longfat.runspec import Scalar
from longfat.units import read_quantity

Operator = Literal["+", "-", "*", "/"]
Comparator = Literal["<", "<=", ">", ">=", "=", "~"]


class RelationError(Exception):
    """The fault of a relation, the column of its text (from 1), and a hint if there is one."""

    def __init__(self, message: str, column: int = 1, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.column, self.hint = message, column, hint


@dataclass(frozen=True)
class Value:
    """A value of a factor or parameter: in base units, and as it was written."""

    base: Scalar
    text: str
    column: int
    word: bool = False  # a bare word, which may also be the variable of a loop
    dimension: str | None = None  # of a quantity: the name of its class in longfat.units


@dataclass(frozen=True)
class Item:
    """One entry in brackets or after ``where``: a bare word, or a name in relation to a value or one of several."""

    name: str
    relation: str | None
    values: tuple[Value, ...]
    column: int


@dataclass(frozen=True)
class Term:
    """A metric over chosen runs."""

    metric: str
    items: tuple[Item, ...]
    column: int


@dataclass(frozen=True)
class Number:
    """A number; ``percent`` when it was written as one."""

    value: float
    text: str
    percent: bool = False


@dataclass(frozen=True)
class Binary:
    """Arithmetic on two expressions."""

    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Gain:
    """By how many percent ``left`` exceeds ``right``."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Formula:
    """A formula of the papers, computed and not measured. An argument of None is the variable of each point."""

    name: str
    arguments: tuple[tuple[str, Value | None], ...]
    column: int


@dataclass(frozen=True)
class Places:
    """At how many different places the points of a metric lie."""

    of: Term


@dataclass(frozen=True)
class Extreme:
    """The largest or the smallest of an expression's values along a loop."""

    kind: Literal["max", "min"]
    of: Expression
    loop: Loop


@dataclass(frozen=True)
class Count:
    """For how many values along a loop a metric's mean is at least, at most, above or below a number."""

    of: Term
    sign: Comparator
    level: float
    loop: Loop
    column: int


@dataclass(frozen=True)
class Rank:
    """The place of one value of a factor among all, 1 for the best by ``of``; among similar values, by ``then``."""

    value: Value
    factor: str
    of: Term
    then: Term
    column: int


@dataclass(frozen=True)
class Loop:
    """A variable with the values that it takes: those ``listed``, or all of the factor of its name, one left out."""

    variable: str
    listed: tuple[Value, ...] | None
    but: Value | None
    column: int


Expression = Term | Number | Binary | Gain | Formula | Extreme | Rank | Places | Count


@dataclass(frozen=True)
class Limit:
    """The other side of a chain's comparison: an expression, or a number with the paper's own spread."""

    of: Expression
    spread: float | None = None


@dataclass(frozen=True)
class Chain:
    """``a > b > c``: each side stands in the relation to the next."""

    first: Expression
    rest: tuple[tuple[Comparator, Limit], ...]


@dataclass(frozen=True)
class Within:
    """An expression between two numbers, these included."""

    of: Expression
    low: float
    high: float


@dataclass(frozen=True)
class Alike:
    """An expression is the same for all values of a factor; ``nearly`` doubles the allowed difference."""

    of: Expression
    factor: str
    nearly: bool
    column: int


@dataclass(frozen=True)
class Relation:
    """A whole relation: the claim, for each value of the loops' variables, about the runs that ``where`` chooses."""

    claim: Chain | Within | Alike
    loops: tuple[Loop, ...]
    where: tuple[Item, ...]
    text: str


@cache
def _parser() -> Lark:
    grammar = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=True)


def parse(text: str) -> Relation:
    """The tree of a relation's text. Raises RelationError with the column and what was expected there."""
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _explained(error, text) from error
    try:
        return cast(Relation, _Tree(text).transform(tree))
    except VisitError as error:
        raise error.orig_exc from error


def parse_term(text: str) -> Term:
    """The tree of a single metric, such as ``goodput[delay, highspeed]``. Raises RelationError."""
    relation = parse(f"{text} > 0")
    assert isinstance(relation.claim, Chain)
    if not isinstance(relation.claim.first, Term) or len(relation.claim.rest) > 1:
        raise RelationError("is not one metric; write METRIC[EXPERIMENT, CONDITION, ...]")
    return relation.claim.first


def parse_expression(text: str) -> Expression:
    """The tree of an expression. Raises RelationError."""
    claim = parse(f"{text} > 0").claim
    if not isinstance(claim, Chain) or len(claim.rest) > 1:
        raise RelationError("is a comparison, not an expression")
    return claim.first


def parse_formula(text: str) -> Formula:
    """The tree of a formula with its arguments. Raises RelationError."""
    expression = parse_expression(text)
    if not isinstance(expression, Formula):
        raise RelationError("is not a formula; write FORMULA(NAME=VALUE, ...)")
    return expression


def parse_items(text: str) -> tuple[Item, ...]:
    """An item of a metric's brackets. Raises RelationError with the column in the text."""
    try:
        return parse_term(f"runs[{text}]").items
    except RelationError as error:
        raise RelationError(error.message, max(error.column - len("runs["), 1), error.hint) from error


# A reader's names of the grammar's terminals.
_SPOKEN = {
    "NAME": "a name",
    "NUMBER": "a number",
    "SIGNED": "a number",
    "PERCENT": "a number",
    "QUANTITY": "a quantity such as 30 ms",
    "STRING": "a text in quotes",
    "RELATION": "one of < <= > >= = ~",
    "CONDITION": "one of < <= > >= = !=",
    "PLUS_MINUS": "'±'",
    "NEARLY": "nearly",
    "$END": "the end",
}


def _explained(error: UnexpectedInput, text: str) -> RelationError:
    names: Sequence[str] = ()
    if isinstance(error, UnexpectedToken):
        names = sorted(error.accepts or error.expected)
    elif isinstance(error, UnexpectedCharacters):
        names = sorted(error.allowed or ())
    spoken = {_SPOKEN.get(name) or _literal(name) for name in names}
    expected = f"; expected {', '.join(sorted(spoken))}" if spoken else ""
    at_end = isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END")
    if at_end:
        return RelationError(f"the relation ends too early{expected}", len(text) + 1)
    column = max(error.column, 1)
    found = str(error.token) if isinstance(error, UnexpectedToken) else text[column - 1 : column]
    return RelationError(f"{found!r} was not expected here{expected}", column)


def _literal(name: str) -> str:
    pattern = next((terminal.pattern.value for terminal in _parser().terminals if terminal.name == name), name)
    return f"'{pattern}'"


@v_args(inline=True)
class _Tree(Transformer[Token, object]):
    """From lark's tree to the nodes above."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def start(self, claim: Chain | Within | Alike, *rest: Loop | tuple[Item, ...]) -> Relation:
        loops = tuple(part for part in rest if isinstance(part, Loop))
        where = [item for part in rest if isinstance(part, tuple) for item in part]
        return Relation(claim, loops, tuple(where), self._text)

    def experiment(self, name: Token) -> tuple[Item, ...]:
        return (Item(str(name), None, (), name.column or 1),)

    def where(self, *items: Item) -> tuple[Item, ...]:
        return items

    def chain(self, first: Expression, *rest: Token | Expression | Limit) -> Chain:
        sides = []
        for sign, side in zip(rest[::2], rest[1::2], strict=True):
            limit = side if isinstance(side, Limit) else Limit(cast(Expression, side))
            sides.append((cast(Comparator, str(sign)), limit))
        return Chain(first, tuple(sides))

    def spread(self, value: Number, _: Token, spread: Number) -> Limit:
        return Limit(value, spread.value)

    def within(self, of: Expression, low: Number, high: Number) -> Within:
        return Within(of, low.value, high.value)

    def alike(self, of: Expression, factor: Token, nearly: Token | None) -> Alike:
        return Alike(of, str(factor), nearly is not None, factor.column or 1)

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
        return Count(of, cast(Comparator, str(sign)), level.value, loop, sign.column or 1)

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
        return Number(_number(text.rstrip(" %"), token), text, percent=text.endswith("%"))


def _number(text: str, token: Token) -> float:
    """The number that a text is. Raises RelationError where none is so large."""
    number = float(text)
    if math.isinf(number):
        raise RelationError("is no number that can be reckoned with: it is too large", token.column or 1)
    return number
