# SPDX-License-Identifier: Apache-2.0
"""A whole relation: its comparisons, and the runs that they concern."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from longfat.metrics.quantities import Selection
from longfat.relations.bind import (
    Item,
    Loop,
    RelationError,
    Scope,
    Term,
    ValuesOf,
    along,
    check_each,
    experiment_of,
    parameters_of,
    without,
)
from longfat.relations.limits import Limits
from longfat.relations.nodes import Expression, terms_of
from longfat.relations.tree import bounds_of, check, require_one_unit, selections
from longfat.study.study import Study


@dataclass(frozen=True)
class Comparison:
    """An expression with its limits.

    An ``order`` states which of two measured sides is larger, by their difference. ``printed`` is the paper's own
    number if the text contains it, ``approximate`` after ``~``, ``error`` its standard error.
    """

    of: Expression
    limits: Limits
    order: bool = False
    printed: float | None = None
    approximate: bool = False
    error: float = 0.0


@dataclass(frozen=True)
class Relation:
    """Comparisons that must hold for each value of the loops' variables, over the runs that ``where`` chooses.

    ``sides`` are the expressions from left to right. The methods raise RelationError on an unknown name.
    """

    comparisons: tuple[Comparison, ...]
    sides: tuple[Expression, ...]
    loops: tuple[Loop, ...] = ()
    where: tuple[Item, ...] = ()
    text: str = ""

    def scopes(self, study: Study, values_of: ValuesOf | None = None) -> Iterator[Scope]:
        """Yield a scope for each combination of the values of the loops."""
        yield from self._looped(self.loops, Scope(study, values_of, self.where))

    def _looped(self, loops: tuple[Loop, ...], scope: Scope) -> Iterator[Scope]:
        if not loops:
            yield scope
            return
        for inner in along(loops[0], scope, terms_of(*self.sides)):
            yield from self._looped(loops[1:], inner)

    def check(self, study: Study) -> None:
        """Check all names."""
        found = False
        unused = {item.name: item for item in self.where if item.relation and item.name not in ("flow", "experiment")}
        for scope in self.scopes(study):
            found = True
            check_each(*(partial(check, comparison.of, scope) for comparison in self.comparisons))
            check_each(*(partial(require_one_unit, *sides) for sides in pairwise(self.sides)))
            check_each(*(partial(_require_open, comparison, scope) for comparison in self.comparisons))
            for term in terms_of(*self.sides) if unused else ():
                for name in parameters_of(term, scope):
                    unused.pop(name, None)
        if unused:
            item = next(iter(unused.values()))
            raise RelationError(f"{item.name!r} is a parameter or factor of no metric of the relation", item.column)
        if not found:
            variables = ", ".join(loop.variable for loop in self.loops)
            message = f"there is no value for {variables} among the runs of the relation's first metric that has it"
            raise RelationError(message, self.loops[-1].column, "name the metric with all values first")

    def experiments(self, study: Study) -> tuple[str, ...]:
        """Return its experiments, in the order of their names in the text."""
        terms = terms_of(*self.sides)
        found = (experiment_of(term, scope)[0].id for scope in self.scopes(study) for term in terms)
        return tuple(dict.fromkeys(found))

    def first_experiment(self, study: Study) -> str:
        """Return the experiment of the first metric, even if a loop has no values."""
        scope = Scope(study, where=self.where)
        term: Term = terms_of(*self.sides)[0]
        for loop in self.loops:
            if loop.listed:  # the values may be experiments
                scope = scope.having(loop.variable, loop.listed[0], (term,))
            else:
                term = without(term, loop.variable)
        return experiment_of(term, scope)[0].id

    def selections(self, study: Study, values_of: ValuesOf | None = None) -> Iterator[Selection]:
        """Yield the selections of its terms, for all values of its loops."""
        for scope in self.scopes(study, values_of):
            for comparison in self.comparisons:
                yield from selections(comparison.of, scope)


def _require_open(comparison: Comparison, scope: Scope) -> None:
    """Raise RelationError if no run could decide a comparison: all values lie inside the limits, or outside."""
    known = bounds_of(comparison.of, scope)
    if known and (holds := comparison.limits.foregone(*known[2:])):
        name, unit, low, high = known
        ends = (
            f"from {low:g}" if math.isinf(high) else f"to {high:g}" if math.isinf(low) else f"from {low:g} to {high:g}"
        )
        raise RelationError(f"the comparison {holds}: {name} goes {ends} {unit}".rstrip())
