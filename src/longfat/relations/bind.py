# SPDX-License-Identifier: Apache-2.0
"""Binding of a relation's names to a study: experiments, factors, values, flows, parameters.

Translates the brackets behind a metric to a selection of runs. If ``w`` is 8 MiB in the scope,
``goodput[delay, window=w, flow=stream1]`` selects the experiment ``delay``, the condition ``window = 8 MiB`` and the
flow ``stream1``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from longfat.metrics import METRICS, Metric
from longfat.metrics.quantities import Condition, Selection
from longfat.relations.formulas import FORMULAS
from longfat.spec.runspec import Scalar
from longfat.spec.units import read_quantity
from longfat.study.expressions import ExpressionError
from longfat.study.schema.names import unknown
from longfat.study.study import Study, SweptExperiment
from longfat.study.sweep import same
from longfat.system.errors import StudyError


class RelationError(ExpressionError):
    """An error in a relation: its syntax, or an unknown name; ``further`` has errors elsewhere in the text."""

    further: tuple[RelationError, ...] = ()


def check_each(*checks: Callable[[], object]) -> None:
    """Make all checks. Raises the first RelationError, with the others in ``further``."""
    found: dict[tuple[int, str], RelationError] = {}
    for check in checks:
        try:
            check()
        except RelationError as error:
            found |= {(one.column, one.message): one for one in (error, *error.further)}
    if found:
        first, *others = (found[place] for place in sorted(found))
        first.further = tuple(others)
        raise first


@dataclass(frozen=True)
class Value:
    """A value of a factor or parameter in base units, and its text."""

    base: Scalar
    text: str
    column: int
    word: bool = False  # a bare word, perhaps the variable of a loop
    dimension: str | None = None  # of a quantity: the name of its class in longfat.spec.units


@dataclass(frozen=True)
class Item:
    """An entry in brackets or after ``where``: a bare word, or a name compared with values."""

    name: str
    relation: str | None
    values: tuple[Value, ...]
    column: int


@dataclass(frozen=True)
class Term:
    """A metric with its brackets."""

    metric: str
    items: tuple[Item, ...]
    column: int


@dataclass(frozen=True)
class Loop:
    """A variable with its values: ``listed`` ones, or all values of the factor with its name except ``but``."""

    variable: str
    listed: tuple[Value, ...] | None
    but: Value | None
    column: int


# Values of a factor in the runs that a selection chooses, of all the study's runs or of those in the lock.
ValuesOf = Callable[[Selection, str], Sequence[Value]]

QUANTITIES = {"time": "Duration", "size": "Size", "rate": "Rate", "number": None}
ALLOWED = {
    "time": "a length of time such as 5 s",
    "size": "a size such as 1500 B",
    "rate": "a rate",
    "number": "a number",
}


@dataclass(frozen=True)
class Scope:
    """The names in a relation, and their meaning.

    ``environment`` maps variables of loops to values; ``held`` contains the variables that no term mentions: these
    factors are fixed in all terms. ``over`` lists the variables that a formula may take from the points of a metric.
    """

    study: Study
    given_values: ValuesOf | None = None
    where: tuple[Item, ...] = ()
    environment: Mapping[str, Value] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    over: tuple[str, ...] = ()

    def having(self, variable: str, value: Value, terms: Sequence[Term]) -> Scope:
        """Return the scope in which a variable has a value in these terms."""
        mentioned = any(_mentions(item, variable) for term in terms for item in (*term.items, *self.where))
        held = self.held - {variable} if mentioned else self.held | {variable}
        return dataclasses.replace(self, environment={**self.environment, variable: value}, held=held)

    def resolved(self, value: Value) -> Value:
        """Return the value; for the name of a variable, the variable's value."""
        return self.environment.get(str(value.base), value) if value.word else value

    def values_of(self, selection: Selection, factor: str) -> Sequence[Value]:
        """Return the values of a factor that a selection chooses."""
        return (self.given_values or values_in_study(self.study))(selection, factor)

    @property
    def experiments(self) -> dict[str, SweptExperiment]:
        """The study's experiments by id."""
        return {experiment.id: experiment for experiment in self.study.experiments}


def metric_of(term: Term) -> Metric:
    """Return the term's metric. Raises RelationError on an unknown name."""
    if term.metric not in METRICS:
        message, hint = unknown("metric", term.metric, METRICS)
        if term.metric in FORMULAS and not term.items:
            hint = f"{term.metric} is a formula; write its arguments in parentheses"
        raise RelationError(message, term.column, hint)
    return METRICS[term.metric]


def parameters_of(term: Term, scope: Scope) -> tuple[str, ...]:
    """Return what ``NAME=VALUE`` may give for a term: the factors of its experiment, and its metric's parameters."""
    return (*experiment_of(term, scope)[0].factors, *metric_of(term).parameters)


def selection_of(term: Term, scope: Scope) -> Selection:
    """Return the selection of a term. Raises RelationError on an unknown name."""
    metric = metric_of(term)
    experiment, items = experiment_of(term, scope)
    chosen = _Choice(scope, metric, experiment)
    check_each(*(partial(chosen.add, item, shared=item not in term.items) for item in items))
    missing = [name for name in metric.required if name not in {*chosen.parameters, *(["flow"] if chosen.flow else [])}]
    if missing:
        raise RelationError(f"metric {metric.name!r} needs {', '.join(missing)}", term.column)
    since, until = chosen.parameters.get("since"), chosen.parameters.get("until")
    if since is not None and until is not None and since >= until:
        window = f"the window of {metric.name!r} from {since / 1e6:g} s to {until / 1e6:g} s"
        raise RelationError(f"{window} is empty", term.column)
    if chosen.parameters.get("interval") == 0:
        raise RelationError(f"the interval of {metric.name!r} has no length", term.column)
    held = {name: scope.environment[name] for name in sorted(scope.held & set(experiment.factors))}
    fixed = [(name, Condition("=", (value.base,), value.text)) for name, value in held.items()]
    return Selection(metric.name, experiment.id, (*chosen.where.items(), *fixed), chosen.flow, chosen.parameters)


@dataclass
class _Choice:
    """Conditions, flow and parameters from the items of a term."""

    scope: Scope
    metric: Metric
    experiment: SweptExperiment
    where: dict[str, Condition] = field(default_factory=dict)
    parameters: dict[str, float] = field(default_factory=dict)
    flow: str | None = None

    def add(self, item: Item, shared: bool) -> None:
        """Add one item; ``shared`` marks an item after ``where``, whose parameters apply to all metrics."""
        if item.relation is None:
            self._add_word(item)
        elif item.name == "flow":
            self._add_flow(item)
        elif item.name in self.experiment.factors:
            self._add_condition(item.name, self._condition(item), item.column)
        elif item.name in self.metric.parameters:
            self._add_parameter(item)
        elif not (shared and any(item.name in metric.parameters for metric in METRICS.values())):
            allowed = [*self.experiment.factors, *self.metric.parameters, *(["flow"] if self.metric.flow else [])]
            message, hint = unknown(f"name for {self.metric.name}[{self.experiment.id}]", item.name, allowed)
            raise RelationError(message, item.column, hint)

    def _add_condition(self, factor: str, condition: Condition, column: int) -> None:
        if factor in self.where:
            raise RelationError(f"{factor!r} is given twice", column)
        self.where[factor] = condition

    def _condition(self, item: Item) -> Condition:
        values = [self.scope.resolved(value) for value in item.values]
        if item.relation != "=" and len(values) > 1:
            raise RelationError(f"{item.relation} has several values; only = allows them", item.column)
        for given, value in zip(item.values, values, strict=True):
            self._check_value(item, given, value)
        texts = " or ".join(value.text for value in values)
        text = texts if item.relation == "=" else f"{item.relation} {texts}"
        return Condition(str(item.relation), tuple(value.base for value in values), text)

    def _check_value(self, item: Item, given: Value, value: Value) -> None:
        """Raise RelationError for a value that the factor does not have, or that cannot be ordered with its values."""
        labels = self.experiment.labels[item.name]
        if item.relation in ("=", "!="):
            if not has_value(labels, value):
                raise unknown_at(item.name, value.text, [str(text) for text in labels.values()], given.column)
            return
        kinds = {kind_of(text) for text in labels.values()}
        if kinds != {kind_of(value.text)}:
            message = f"{item.name} {item.relation} {value.text}: its values are like {next(iter(labels.values()))}"
            raise RelationError(message, given.column)
        if isinstance(value.base, str):
            raise RelationError(f"{item.name} {item.relation} {value.text}: words have no order", given.column)

    def _add_word(self, item: Item) -> None:
        """Add a bare word: a loop's variable, or a value of exactly one factor."""
        value, factors = self.scope.environment.get(item.name), self.experiment.factors
        if value is not None and item.name in factors:
            self._add_condition(item.name, Condition("=", (value.base,), value.text), item.column)
            return
        word = str(value.base) if value is not None else item.name
        having = [name for name, values in factors.items() if word in values]
        if len(having) > 1:
            hint = f"write {' or '.join(f'{name}={word}' for name in having)}"
            raise RelationError(f"{word!r} is a value of {' and of '.join(having)}", item.column, hint)
        if not having:
            values = [str(value) for row in factors.values() for value in row]
            raise unknown_at(f"experiment, or value of a factor of {self.experiment.id!r},", word, values, item.column)
        self._add_condition(having[0], Condition("=", (word,), word), item.column)

    def _add_flow(self, item: Item) -> None:
        if not self.metric.flow:
            raise RelationError(f"metric {self.metric.name!r} takes no flow", item.column)
        if item.relation != "=" or len(item.values) != 1:
            raise RelationError("a flow is named by `flow=NAME`", item.column)
        value = self.scope.resolved(item.values[0])
        if self.flow is not None:
            raise RelationError("'flow' is given twice", item.column)
        self.flow = str(value.base)
        if self.flow not in self.experiment.flows:
            raise unknown_at("flow", self.flow, self.experiment.flows, value.column)

    def _add_parameter(self, item: Item) -> None:
        if item.relation != "=" or len(item.values) != 1:
            raise RelationError(f"{item.name!r} is a parameter: write {item.name}=VALUE", item.column)
        if item.name in self.parameters:
            raise RelationError(f"{item.name!r} is given twice", item.column)
        value, dimension = self.scope.resolved(item.values[0]), self.metric.parameters[item.name].dimension
        if value.dimension != QUANTITIES[dimension] or isinstance(value.base, str):
            message = f"{item.name} is {value.text!r}; allowed: {ALLOWED[dimension]}"
            raise RelationError(message, value.column)
        self.parameters[item.name] = float(value.base)


def has_value(labels: Mapping[Scalar, str], value: Value) -> bool:
    """Return whether a factor with these labels has a value: an equal one of the same dimension."""
    return any(
        same(base, value.base) and (isinstance(base, bool | str) or kind_of(str(label)) == kind_of(value.text))
        for base, label in labels.items()
    )


def kind_of(text: str) -> str:
    """Return the dimension of a value as text: the class of a quantity, a number, or a word."""
    try:
        quantity = read_quantity(text)
    except StudyError:
        quantity = None
    if quantity is not None:
        return type(quantity).__name__
    try:
        float(text)
    except ValueError:
        return "word"
    return "number"


def experiment_of(term: Term, scope: Scope) -> tuple[SweptExperiment, list[Item]]:
    """Return the experiment of a term, and its other items. Raises RelationError if it names no experiment."""
    experiments = scope.experiments
    items, words = [*term.items, *scope.where], []
    for item in items:
        if item.relation is None:
            value = scope.environment.get(item.name)
            name = str(value.base) if value is not None else item.name
            words.append((name, item))
        elif item.name == "experiment" and item.relation == "=" and len(item.values) == 1:
            name = str(scope.resolved(item.values[0]).base)
            if name not in experiments:
                raise unknown_at("experiment", name, experiments, item.values[0].column)
        else:
            continue
        if name in experiments:
            if item.relation is None and value is None:
                _require_clear(experiments[name], item)
            return experiments[name], [other for other in items if other is not item]
    if len(experiments) == 1:
        return next(iter(experiments.values())), items
    known = {value for one in experiments.values() for values in one.factors.values() for value in values}
    for name, item in words:
        if name not in known:
            raise unknown_at("experiment", name, experiments, item.column)
    raise RelationError(f"{term.metric} names no experiment; allowed: {', '.join(experiments)}", term.column)


def _require_clear(experiment: SweptExperiment, item: Item) -> None:
    """Raise RelationError if the word that names an experiment is a value of one of its factors, too."""
    factor = next((name for name, values in experiment.factors.items() if item.name in values), None)
    if factor is not None:
        message = f"{item.name!r} is an experiment and a value of its factor {factor}"
        raise RelationError(message, item.column, f"write experiment={item.name} or {factor}={item.name}")


def unknown_at(kind: str, name: str, known: Iterable[str], column: int) -> RelationError:
    """Return the error of an unknown name at a column."""
    message, hint = unknown(kind, name, list(known))
    return RelationError(message, column, hint)


def along(loop: Loop, scope: Scope, terms: Sequence[Term]) -> Iterator[Scope]:
    """Yield the scope for each value of a loop's variable. Raises RelationError if nothing uses the variable."""
    if loop.listed is not None and terms and not any(_uses(term, loop.variable, scope) for term in terms):
        message = f"no metric uses {loop.variable!r}, which is not a factor of their experiments"
        raise RelationError(message, loop.column, "the comparison would be the same for each value")
    values = _all_values(loop, scope, terms) if loop.listed is None else loop.listed
    for value in tuple(values):
        yield scope.having(loop.variable, value, terms)


def _all_values(loop: Loop, scope: Scope, terms: Sequence[Term]) -> Iterator[Value]:
    """Yield the values of the loop's factor in the runs of the first metric that has it."""
    for term in terms:
        bare = without(term, loop.variable)
        factor = next((item.name for item in term.items if _has_value(item, loop.variable)), loop.variable)
        factors = experiment_of(bare, scope)[0].factors
        if factor not in factors:
            continue
        if loop.but is not None and not any(same(loop.but.base, one) for one in factors[factor]):
            raise unknown_at(factor, loop.but.text, map(str, factors[factor]), loop.but.column)
        for value in scope.values_of(selection_of(bare, scope), factor):
            if loop.but is None or value.base != loop.but.base:
                yield value
        return
    message = f"{loop.variable!r} is not a factor of these metrics, so its values must be listed"
    raise RelationError(message, loop.column, f"write `for {loop.variable} in [...]`")


def _uses(term: Term, variable: str, scope: Scope) -> bool:
    if any(_mentions(item, variable) for item in (*term.items, *scope.where)):
        return True
    try:
        return variable in experiment_of(term, scope)[0].factors
    except RelationError:  # another loop names the experiment
        return True


def without(term: Term, variable: str) -> Term:
    """Return the term without the items that mention a variable without a value yet."""
    return dataclasses.replace(term, items=tuple(item for item in term.items if not _mentions(item, variable)))


def _mentions(item: Item, variable: str) -> bool:
    """Return whether an item is, or has as a value, the variable. A condition on its factor does not count."""
    return item.name == variable if item.relation is None else _has_value(item, variable)


def _has_value(item: Item, variable: str) -> bool:
    return any(value.word and value.base == variable for value in item.values)


def values_in_study(study: Study) -> ValuesOf:
    """Return the values of a factor over the points of the study that a selection chooses, in the manifest's order."""

    def values(selection: Selection, factor: str) -> Sequence[Value]:
        found: dict[Scalar, Value] = {}
        points = experiment_named(selection.experiment, study).points
        for point in (points[place] for place in points_of(selection, study)):
            base = point.factors[factor]
            found.setdefault(base, Value(base, point.labels[factor], 1))
        return tuple(found.values())

    return values


def points_of(selection: Selection, study: Study) -> list[int]:
    """Return the indices of the experiment's points that a selection chooses."""
    points = experiment_named(selection.experiment, study).points
    places = [*range(len(points))]
    for name, condition in selection.where:
        places = [place for place in places if condition.holds(points[place].factors.get(name))]
    return places


def experiment_named(name: str, study: Study) -> SweptExperiment:
    """Return a study's experiment."""
    return next(experiment for experiment in study.experiments if experiment.id == name)


def quantity(selection: Selection, study: Study) -> Hashable:
    """Return the identity of a selection; equal metrics at equal points have equal identities."""
    points = frozenset(points_of(selection, study))
    return selection.metric, selection.experiment, points, selection.flow, tuple(sorted(selection.parameters.items()))


def check_term(term: Term, scope: Scope, *, several: bool = False) -> None:
    """Raise RelationError if a name of the term is unknown, or no run of the study meets its conditions.

    ``several`` states whether its metric must have several points in a run.
    """
    if bool(metric_of(term).over) != several:
        message = f"metric {term.metric!r} has {'one value' if several else 'several points'} in a run"
        hint = None if several else f"compare it with one law: {term.metric}[...] = FORMULA(...)"
        raise RelationError(message, term.column, hint)
    selection = selection_of(term, scope)
    if not points_of(selection, scope.study):
        raise RelationError(f"no run of experiment {selection.experiment!r} meets these conditions", term.column)
    points = experiment_named(selection.experiment, scope.study).points
    for name in metric_of(term).probes:
        if not all(getattr(points[place].experiment.probes, name) for place in points_of(selection, scope.study)):
            hint = "probes: {ping: 100 ms}" if name == "ping" else "probes: {capture: [FLOW]}"
            message = f"runs of experiment {selection.experiment!r} have no {name}, which {term.metric} needs"
            raise RelationError(message, term.column, hint)
    end = max(points[place].experiment.end_us for place in points_of(selection, scope.study))
    times = {name for name, one in metric_of(term).parameters.items() if one.dimension == "time"}
    for name, last in (("since", end - 1), ("at", end)):
        if name in times and selection.parameters.get(name, 0) > last:
            message = f"{name} is {selection.parameters[name] / 1e6:g} s, and these runs end at {end / 1e6:g} s"
            raise RelationError(message, term.column)


def check_factor(factor: str, term: Term, scope: Scope, column: int) -> None:
    """Raise RelationError unless the experiment of the term has the factor."""
    experiment, _ = experiment_of(term, scope)
    if factor not in experiment.factors:
        raise unknown_at("factor", factor, experiment.factors, column)
