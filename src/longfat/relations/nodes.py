# SPDX-License-Identifier: Apache-2.0
"""The nodes of a relation's tree: ``gain(goodput[a], goodput[b])`` is a ``Gain`` of two ``Term``.

A new construct is a line in the grammar, a method of the parser (``longfat.relations.syntax``), a node here, and its
cases in ``longfat.relations.tree``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longfat.relations.bind import Loop, Term, Value
from longfat.relations.limits import Comparator

Operator = Literal["+", "-", "*", "/"]


@dataclass(frozen=True)
class Number:
    """A number, with its text."""

    number: float
    text: str


@dataclass(frozen=True)
class Formula:
    """A formula, which is computed and not measured. An argument of None takes its value from each point."""

    name: str
    arguments: tuple[tuple[str, Value | None], ...]
    column: int


@dataclass(frozen=True)
class Binary:
    """Arithmetic on two expressions."""

    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Gain:
    """The percentage by which ``left`` exceeds ``right``."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Extreme:
    """The largest or the smallest value of an expression along a loop."""

    kind: Literal["max", "min"]
    of: Expression
    loop: Loop


@dataclass(frozen=True)
class Count:
    """The number of a loop's values for which a metric's mean compares with a number as ``sign`` says."""

    of: Term
    sign: Comparator
    level: float
    loop: Loop


@dataclass(frozen=True)
class Rank:
    """The rank of one value of a factor, 1 for the best by ``of``; ``then`` decides among similar values."""

    value: Value
    factor: str
    of: Term
    then: Term
    column: int


@dataclass(frozen=True)
class Spread:
    """The percentage by which the largest value of an expression along a factor exceeds the smallest."""

    of: Expression
    factor: str
    column: int


@dataclass(frozen=True)
class Places:
    """The number of distinct places of a metric's points."""

    of: Term


@dataclass(frozen=True)
class Farthest:
    """The point of a metric that violates ``sign`` most, divided by the law at this point."""

    of: Term
    sign: Comparator
    law: Expression


Expression = Term | Number | Formula | Binary | Gain | Extreme | Count | Rank | Spread | Places | Farthest


def parts(node: Expression) -> tuple[Expression, ...]:
    """Return the subexpressions of a node."""
    match node:
        case Binary() | Gain():
            return node.left, node.right
        case Rank():
            return node.of, node.then
        case Extreme() | Count() | Spread() | Places() | Farthest():
            return (node.of,)
    return ()


def terms_of(*nodes: Expression) -> tuple[Term, ...]:
    """Return all terms of expressions, from left to right."""
    return tuple(term for node in nodes for term in ([node] if isinstance(node, Term) else terms_of(*parts(node))))
