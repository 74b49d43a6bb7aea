# SPDX-License-Identifier: Apache-2.0
"""The parser of expressions: relations between metrics, and arithmetic on the values of a manifest.

Owns the grammar (``expressions.lark``) and the messages of syntax errors. Must not interpret names.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Literal

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from longfat.spec.units import Duration, Rate, Ratio, Size

MOST_LEVELS = 100  # of nested operations; a sum of n terms has n levels

Start = Literal["relation", "expression", "derived"]

_UNITS = tuple(unit for kind in (Duration, Size, Rate, Ratio) for unit in kind.units)
# The grammar's terminals in the words of messages.
_SPOKEN = {
    **dict.fromkeys(("NAME", "VARIABLE"), "a name"),
    **dict.fromkeys(("NUMBER", "SIGNED", "PERCENT"), "a number"),
    "QUANTITY": "a quantity such as 30 ms",
    "STRING": "a text in quotes",
    "RELATION": "one of < <= > >= = ~",
    "CONDITION": "one of < <= > >= = !=",
    "PLUS_MINUS": "'±'",
    "NEARLY": "nearly",
    "$END": "the end",
}


class ExpressionError(Exception):
    """An error in an expression, with its column (from 1) and an optional hint."""

    def __init__(self, message: str, column: int = 1, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.column, self.hint = message, column, hint


def parse(text: str, start: Start) -> Tree[Token]:
    """Return the tree of a text. Raises ExpressionError with the column and what was expected there."""
    try:
        tree = _parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise _explained(error, text) from error
    level, depth = [tree], 0
    while level:  # the tree's readers are recursive
        level, depth = [one for node in level for one in node.children if isinstance(one, Tree)], depth + 1
    if depth > MOST_LEVELS:
        raise ExpressionError(f"more than {MOST_LEVELS} operations or parentheses are nested")
    return tree


@cache
def _parser() -> Lark:
    grammar = files(__package__).joinpath("expressions.lark").read_text(encoding="utf-8")
    units = "|".join(sorted(_UNITS, key=len, reverse=True)).replace("/", r"\/")  # a slash would end the pattern
    starts = ["relation", "expression", "derived"]
    return Lark(
        grammar.replace("UNITS", units), parser="lalr", start=starts, maybe_placeholders=True, propagate_positions=True
    )


def _explained(error: UnexpectedInput, text: str) -> ExpressionError:
    names: set[str] = set()
    if isinstance(error, UnexpectedToken):
        names = error.accepts or error.expected
    elif isinstance(error, UnexpectedCharacters):
        names = error.allowed or set()
    spoken = sorted({_SPOKEN.get(name) or _literal(name) for name in names})
    expected = f"; expected {', '.join(spoken)}" if spoken else ""
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        return ExpressionError(f"the text ends too early{expected}", len(text) + 1)
    column = max(error.column, 1)
    found = str(error.token) if isinstance(error, UnexpectedToken) else text[column - 1 : column]
    number, _, unit = found.partition(" ")
    if number[:1].isalpha():  # such as "Mb/s", an unknown unit
        number, unit = _number_before(text[: column - 1]), number
    hint = f"write {number}: a metric has its own unit" if unit and number[:1].isdigit() else None
    inside = re.search(r"(\bin\s*)?\[[^][]*$", text[: column - 1])
    if hint and inside and not inside[1]:
        hint = f"units: {', '.join(_UNITS)}"
    if unit == "bdp":
        hint = f'write "{number} bdp" in quotes'
    if (former := text[column - 2 : column]) in ("=>", "=<"):
        hint = f"write {former[::-1]}"
    return ExpressionError(f"{found!r} was not expected here{expected}", column, hint)


def _number_before(text: str) -> str:
    """Return the number at the end of a text; "" without one."""
    match = re.search(r"(?<![\w.])[\d.]+\s*$", text)
    return match[0].strip() if match else ""


def _literal(name: str) -> str:
    pattern = next((terminal.pattern.value for terminal in _parser().terminals if terminal.name == name), name)
    return f"'{pattern}'"
