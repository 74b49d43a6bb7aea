# SPDX-License-Identifier: Apache-2.0
"""Quantities of format 1 as terms of the language of relations, in the names of the converted study.

Owns how values are written, and which of them need no factor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from longfat.convert.former import Condition, Quantity
from longfat.errors import StudyError
from longfat.manifest.names import Finding, Path, unknown
from longfat.manifest.study import Study
from longfat.metrics.quantities import RELATIONS
from longfat.runspec import Scalar
from longfat.units import read_quantity

_COMPARED = re.compile(rf"\s*({'|'.join(RELATIONS)})\s*(.+?)\s*")
_WORD = re.compile(r"[0-9]*[a-z_][a-z0-9_]*([-.]+[a-z0-9_]+)*")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
VARIABLE = "value"  # of a loop along a factor that has the name of an experiment


@dataclass(frozen=True)
class Item:
    """An item in a metric's brackets; ``value`` is the text of a single value that a ``factor`` has there."""

    text: str
    factor: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class Term:
    """A metric over chosen runs; the first item is the experiment."""

    metric: str
    items: tuple[Item, ...]

    def text(self, without: Iterable[Item] = ()) -> str:
        """The term without the parts that are written elsewhere."""
        own = [item.text for item in self.items if item not in without]
        return f"{self.metric}[{', '.join(own)}]" if own else self.metric


class Terms:
    """Writes terms for one study."""

    def __init__(self, study: Study) -> None:
        self.experiments = {experiment.id: experiment for experiment in study.experiments}
        factors = {name for experiment in study.experiments for name in experiment.factors}
        # Words with another meaning.
        self._taken = {*factors, *self.experiments, VARIABLE, "true", "false"}

    def value(self, given: Scalar) -> str:
        """A value, in quotes where it would be read as something else."""
        if not isinstance(given, str):
            return bare(given)
        plain = given not in self._taken if _WORD.fullmatch(given) else _is_quantity(given)
        return given if plain else f'"{given}"'

    def of(self, quantity: Quantity, held: Mapping[str, Scalar] = MappingProxyType({})) -> Term:
        """The term of a quantity in which some factors are also ``held`` at a value."""
        where = {**held, **{factor: value for factor, value in quantity.where.items() if factor not in held}}
        return Term(quantity.metric, self.items(quantity.experiment, where, quantity.parameters))

    def items(
        self, experiment: str, where: Mapping[str, Condition], parameters: Mapping[str, Scalar]
    ) -> tuple[Item, ...]:
        """The chosen runs, and the parameters."""
        conditions = [self._condition(experiment, factor, condition) for factor, condition in where.items()]
        given = [Item(f"{name}={self.value(value)}") for name, value in parameters.items()]
        return (Item(experiment), *conditions, *given)

    def _condition(self, experiment: str, factor: str, condition: Condition) -> Item:
        if isinstance(condition, tuple):
            return Item(f"{factor}={' | '.join(map(self.value, condition))}")
        if isinstance(condition, str) and (match := _COMPARED.fullmatch(condition)):
            value = match[2] if _NUMBER.fullmatch(match[2]) else self.value(match[2])
            return Item(f"{factor} {match[1]} {value}")
        value = self.value(condition)
        return Item(value if self._tells(experiment, factor, condition) else f"{factor}={value}", factor, value)

    def _tells(self, experiment: str, factor: str, value: Scalar) -> bool:
        """Whether a word alone identifies the factor whose value it is."""
        if not isinstance(value, str) or not _WORD.fullmatch(value) or value in self._taken:
            return False
        known = self.experiments.get(experiment)
        return known is not None and [name for name, values in known.factors.items() if value in values] == [factor]

    def findings(self, quantity: Quantity, place: Path) -> Iterator[Finding]:
        """The parts of a quantity that the converted study lacks: its experiment, or factors of it."""
        if quantity.experiment not in self.experiments:
            yield Finding((*place, "experiment"), *unknown("experiment", quantity.experiment, self.experiments))
        for factor in quantity.where:
            yield from self.gone(factor, quantity.experiment, (*place, "where", factor))

    def gone(self, factor: str, experiment: str, place: Path) -> Iterator[Finding]:
        """A finding when the experiment of the converted study has no such factor."""
        known = self.experiments.get(experiment)
        if known is not None and factor not in known.factors:
            there = ", ".join(known.factors) or "none"
            message = f"{factor!r} is no factor of {experiment!r} in the converted study; factors there: {there}"
            hint = f"choose the runs by one of these, or give {factor!r} in the sweep of {experiment!r} again"
            yield Finding(place, message, hint)


def bare(given: Scalar) -> str:
    """A value without quotes: true, 12, 1e-07."""
    return str(given).lower() if isinstance(given, bool) else str(given)


def _is_quantity(text: str) -> bool:
    try:
        return read_quantity(text) is not None
    except StudyError:
        return False
