# SPDX-License-Identifier: Apache-2.0
"""The meaning of a relation's names in a study: experiments, factors, values, flows, parameters.

Owns how a term becomes a selection of runs, and the values that the variables of loops take. Measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from longfat.manifest.study import Study, SweptExperiment
from longfat.metrics import METRICS, Metric
from longfat.metrics.quantities import Condition, Selection
from longfat.relations.formulas import FORMULAS, arguments_of
from longfat.relations.syntax import (
    Alike,
    Binary,
    Chain,
    Count,
    Expression,
    Extreme,
    Formula,
    Gain,
    Item,
    Loop,
    Number,
    Places,
    Rank,
    Relation,
    RelationError,
    Term,
    Value,
    Within,
)
from longfat.runspec import Scalar
from longfat.schema.names import unknown

Environment = Mapping[str, Value]  # the values of the loops' variables
# Values of a factor over the runs that a selection chooses: all of the study's, or those in the lock.
ValuesOf = Callable[[Selection, str], Sequence[Value]]

_DIMENSIONS = {"time": "Duration", "size": "Size", "rate": "Rate", "number": None}


@dataclass(frozen=True)
class Scope:
    """Where the names of one relation are looked up."""

    study: Study
    where: tuple[Item, ...] = ()
    environment: Environment = field(default_factory=dict)
    held: frozenset[str] = frozenset()  # variables that no term mentions: factors which are held in all of them

    def having(self, variable: str, value: Value, terms: Sequence[Term]) -> Scope:
        """The same with a variable that has a value in these terms."""
        mentioned = any(_mentions(item, variable) for term in terms for item in (*term.items, *self.where))
        held = self.held - {variable} if mentioned else self.held | {variable}
        return Scope(self.study, self.where, {**self.environment, variable: value}, held)

    @property
    def experiments(self) -> dict[str, SweptExperiment]:
        """The study's experiments by id."""
        return {experiment.id: experiment for experiment in self.study.experiments}


def terms_of(node: Chain | Within | Alike | Expression) -> Iterator[Term]:
    """All metrics of a relation or expression, from left to right."""
    if isinstance(node, Term):
        yield node
    elif isinstance(node, Binary | Gain):
        yield from terms_of(node.left)
        yield from terms_of(node.right)
    elif isinstance(node, Rank):
        yield node.of
        yield node.then
    elif isinstance(node, Chain):
        yield from terms_of(node.first)
        for _, limit in node.rest:
            yield from terms_of(limit.of)
    elif isinstance(node, Within | Alike | Extreme | Places | Count):
        yield from terms_of(node.of)


def metric_of(term: Term) -> Metric:
    """The term's metric. Raises RelationError when none has its name."""
    if term.metric not in METRICS:
        message, hint = unknown("metric", term.metric, METRICS)
        if term.metric in FORMULAS and not term.items:
            hint = f"{term.metric} is a formula; write its arguments in parentheses"
        raise RelationError(message, term.column, hint)
    return METRICS[term.metric]


def selection_of(term: Term, scope: Scope) -> Selection:
    """The runs, flow and parameters that a term means. Raises RelationError on an unknown name."""
    metric = metric_of(term)
    experiment, items = _experiment_of(term, scope)
    chosen = _Chosen(metric, experiment, term.column)
    for item in items:
        chosen.take(item, scope, shared=item not in term.items)
    for variable in sorted(scope.held & set(experiment.factors)):
        value = scope.environment[variable]
        chosen.hold(variable, Condition("=", (value.base,), value.text))
    return chosen.selection()


class _Chosen:
    """The choices of a term's items so far."""

    def __init__(self, metric: Metric, experiment: SweptExperiment, column: int) -> None:
        self._metric, self._experiment, self._column = metric, experiment, column
        self._where: dict[str, Condition] = {}
        self._held: list[tuple[str, Condition]] = []
        self._parameters: dict[str, float] = {}
        self._flow: str | None = None

    def take(self, item: Item, scope: Scope, shared: bool) -> None:
        """Add one item; ``shared`` marks an item after ``where``, whose parameters apply to all metrics."""
        if item.relation is None:
            self._bare(item, scope.environment)
            return
        values = tuple(_resolved(value, scope.environment) for value in item.values)
        if item.name == "flow":
            self._take_flow(item, values)
        elif item.name in self._experiment.factors:
            self.condition(item.name, _condition(item, values), item.column)
        elif item.name in self._metric.parameters:
            self._parameter(item, values)
        elif not (shared and any(item.name in metric.parameters for metric in METRICS.values())):
            allowed = [*self._experiment.factors, *self._metric.parameters, *(["flow"] if self._metric.flow else [])]
            message, hint = unknown(f"name for {self._metric.name}[{self._experiment.id}]", item.name, allowed)
            raise RelationError(message, item.column, hint)

    def condition(self, factor: str, condition: Condition, column: int) -> None:
        """Add a condition on a factor. Raises RelationError when it has one already."""
        if factor in self._where:
            raise RelationError(f"{factor!r} is given twice", column)
        self._where[factor] = condition

    def hold(self, factor: str, condition: Condition) -> None:
        """Hold a factor at a value, in addition to any condition on it."""
        self._held.append((factor, condition))

    def _bare(self, item: Item, environment: Environment) -> None:
        """A word alone: a loop's variable, or a value that only one factor has."""
        value = environment.get(item.name)
        if value is not None and item.name in self._experiment.factors:
            self.condition(item.name, Condition("=", (value.base,), value.text), item.column)
            return
        word = str(value.base) if value is not None else item.name
        factors = [name for name, values in self._experiment.factors.items() if word in values]
        if len(factors) != 1:
            values = [str(value) for row in self._experiment.factors.values() for value in row]
            message, hint = unknown(f"value of a factor of {self._experiment.id!r}", word, values)
            if factors:
                message = f"{word!r} is a value of {' and of '.join(factors)}"
                hint = f"write {' or '.join(f'{name}={word}' for name in factors)}"
            raise RelationError(message, item.column, hint)
        self.condition(factors[0], Condition("=", (word,), word), item.column)

    def _take_flow(self, item: Item, values: Sequence[Value]) -> None:
        if not self._metric.flow:
            raise RelationError(f"metric {self._metric.name!r} takes no flow", item.column)
        if item.relation != "=" or len(values) != 1:
            raise RelationError("a flow is named by `flow=NAME`", item.column)
        flow = str(values[0].base)
        if flow not in self._experiment.flows:
            raise RelationError(*_at(unknown("flow", flow, self._experiment.flows), values[0].column))
        self._flow = flow

    def _parameter(self, item: Item, values: Sequence[Value]) -> None:
        parameter = self._metric.parameters[item.name]
        if item.relation != "=" or len(values) != 1:
            raise RelationError(f"{item.name!r} is a parameter: write {item.name}=VALUE", item.column)
        (value,) = values
        if value.dimension != _DIMENSIONS[parameter.dimension] or isinstance(value.base, str):
            allowed = {
                "time": "a length of time such as 5 s",
                "size": "a size such as 1500 B",
                "rate": "a rate",
                "number": "a number",
            }
            message = f"{item.name} is {value.text!r}; allowed: {allowed[parameter.dimension]}"
            raise RelationError(message, value.column)
        self._parameters[item.name] = float(value.base)

    def selection(self) -> Selection:
        """All of it. Raises RelationError when the metric lacks something or a window of time is empty."""
        name = self._metric.name
        given = {*self._parameters, *(["flow"] if self._flow else [])}
        missing = [needed for needed in self._metric.required if needed not in given]
        if missing:
            raise RelationError(f"metric {name!r} needs {', '.join(missing)}", self._column)
        since, until = self._parameters.get("since"), self._parameters.get("until")
        if since is not None and until is not None and since >= until:
            raise RelationError(
                f"the window of {name!r} from {since / 1e6:g} s to {until / 1e6:g} s is empty", self._column
            )
        return Selection(name, self._experiment.id, (*self._where.items(), *self._held), self._flow, self._parameters)


def _experiment_of(term: Term, scope: Scope) -> tuple[SweptExperiment, list[Item]]:
    """The experiment of a term, and the items that are left to be looked up in it."""
    experiments = scope.experiments
    items = [*term.items, *scope.where]
    for item in items:
        if item.relation is None:
            value = scope.environment.get(item.name)
            name = str(value.base) if value is not None else item.name
        elif item.name == "experiment" and item.relation == "=" and len(item.values) == 1:
            name = str(_resolved(item.values[0], scope.environment).base)
            if name not in experiments:
                raise RelationError(*_at(unknown("experiment", name, experiments), item.values[0].column))
        else:
            continue
        if name in experiments:
            return experiments[name], [other for other in items if other is not item]
    if len(experiments) == 1:
        return next(iter(experiments.values())), items
    words = [item for item in term.items if item.relation is None]
    word = words[0].name if words else None
    message, hint = unknown("experiment", word, experiments)
    if word is None:
        message, hint = f"{term.metric} names no experiment; allowed: {', '.join(experiments)}", None
    raise RelationError(message, words[0].column if words else term.column, hint)


def _resolved(value: Value, environment: Environment) -> Value:
    return environment.get(str(value.base), value) if value.word else value


def _condition(item: Item, values: Sequence[Value]) -> Condition:
    if item.relation != "=" and len(values) > 1:
        raise RelationError("several values go with = alone", item.column)
    texts = " or ".join(value.text for value in values)
    text = texts if item.relation == "=" else f"{item.relation} {texts}"
    return Condition(str(item.relation), tuple(value.base for value in values), text)


def _mentions(item: Item, variable: str) -> bool:
    """Whether an item is, or has as a value, the variable. A condition on its factor does not count."""
    if item.relation is None:
        return item.name == variable
    return any(value.word and value.base == variable for value in item.values)


def _at(message_and_hint: tuple[str, str | None], column: int) -> tuple[str, int, str | None]:
    message, hint = message_and_hint
    return message, column, hint


def scopes(relation: Relation, study: Study, values_of: ValuesOf) -> Iterator[Scope]:
    """A scope for each combination of the values that the relation's loops give. Raises RelationError."""
    terms = tuple(terms_of(relation.claim))
    yield from _looped(list(relation.loops), Scope(study, relation.where), terms, values_of)


def _looped(loops: list[Loop], scope: Scope, terms: Sequence[Term], values_of: ValuesOf) -> Iterator[Scope]:
    if not loops:
        yield scope
        return
    for inner in along(loops[0], scope, terms, values_of):
        yield from _looped(loops[1:], inner, terms, values_of)


def along(loop: Loop, scope: Scope, terms: Sequence[Term], values_of: ValuesOf) -> Iterator[Scope]:
    """The scope for each value of a loop's variable. Raises RelationError when nothing uses the variable."""
    values = loop.listed
    if values is None:
        values = tuple(_all_values(loop, scope, terms, values_of))
    for value in values:
        yield scope.having(loop.variable, value, terms)


def _all_values(loop: Loop, scope: Scope, terms: Sequence[Term], values_of: ValuesOf) -> Iterator[Value]:
    """The values of the factor that a loop without a list goes along, in the runs of the first metric that has it."""
    for term in terms:
        experiment, _ = _experiment_of(_without(term, loop.variable), scope)
        factor = _factor_of(loop.variable, term)
        if factor not in experiment.factors:
            continue
        for value in values_of(selection_of(_without(term, loop.variable), scope), factor):
            if loop.but is None or value.base != loop.but.base:
                yield value
        return
    message = f"{loop.variable!r} is no factor of the metrics here, so what it stands for has to be listed"
    raise RelationError(message, loop.column, f"write `for {loop.variable} in [...]`")


def _factor_of(variable: str, term: Term) -> str:
    """The factor that a term compares with the variable, or the one of its name."""
    for item in term.items:
        if any(value.word and value.base == variable for value in item.values):
            return item.name
    return variable


def _without(term: Term, variable: str) -> Term:
    """The term without its items about a variable that has no value yet."""
    items = tuple(
        item
        for item in term.items
        if not (item.relation is None and item.name == variable)
        and not any(value.word and value.base == variable for value in item.values)
    )
    return Term(term.metric, items, term.column)


def selections_in(nodes: Iterable[Expression], scope: Scope, values_of: ValuesOf) -> Iterator[Selection]:
    """All that expressions read in a scope; of a loop within, for each of its values. Raises RelationError."""
    for node in nodes:
        if isinstance(node, Term):
            yield selection_of(node, scope)
        elif isinstance(node, Binary | Gain):
            yield from selections_in((node.left, node.right), scope, values_of)
        elif isinstance(node, Rank):
            yield from selections_in((node.of, node.then), scope, values_of)
        elif isinstance(node, Extreme | Count):
            for inner in along(node.loop, scope, tuple(terms_of(node.of)), values_of):
                yield from selections_in((node.of,), inner, values_of)


def first_experiment(relation: Relation, study: Study) -> str:
    """The experiment of the relation's first metric. Raises RelationError when it names none."""
    term, scope = next(terms_of(relation.claim)), Scope(study, relation.where)
    for loop in relation.loops:
        if loop.listed:  # the values may be experiments
            scope = scope.having(loop.variable, loop.listed[0], (term,))
        else:
            term = _without(term, loop.variable)
    return _experiment_of(term, scope)[0].id


def experiments_of(relation: Relation, study: Study) -> tuple[str, ...]:
    """The experiments whose runs a relation is about, in the order in which it names them. Raises RelationError."""
    found: dict[str, None] = {}
    for scope in scopes(relation, study, values_in_study(study)):
        for term in terms_of(relation.claim):
            found[_experiment_of(term, scope)[0].id] = None
    return tuple(found)


def is_constant(expression: Expression) -> bool:
    """Whether an expression rests on no measurement."""
    return not any(True for _ in terms_of(expression))


def values_in_study(study: Study) -> ValuesOf:
    """The values of a factor over the points of the study that a selection chooses, in the manifest's order."""
    experiments = {experiment.id: experiment for experiment in study.experiments}

    def values(selection: Selection, factor: str) -> Sequence[Value]:
        found: dict[Scalar, Value] = {}
        for point in experiments[selection.experiment].points:
            if all(condition.holds(point.factors.get(name)) for name, condition in selection.where):
                base = point.factors[factor]
                found.setdefault(base, Value(base, point.labels[factor], 1))
        return tuple(found.values())

    return values


def check_term(term: Term, scope: Scope, *, several: bool = False) -> None:
    """Raise RelationError when the term's names are unknown, or no run of the study meets its conditions.

    Its metric must be one with ``several`` points in a run, or must not.
    """
    if bool(metric_of(term).over) != several:
        message = f"metric {term.metric!r} has {'one value' if several else 'several points'} in a run"
        hint = None if several else f"hold it against one law: {term.metric}[...] = FORMULA(...)"
        raise RelationError(message, term.column, hint)
    selection = selection_of(term, scope)
    points = scope.experiments[selection.experiment].points
    if not any(
        all(condition.holds(point.factors.get(name)) for name, condition in selection.where) for point in points
    ):
        raise RelationError(f"no run of experiment {selection.experiment!r} meets these conditions", term.column)


def check_relation(relation: Relation, study: Study) -> None:
    """Raise RelationError on the first name of a relation that is unknown in the study."""
    values_of = values_in_study(study)
    found = False
    for scope in scopes(relation, study, values_of):
        found = True
        _check(relation.claim, scope, values_of)
    if not found:
        variables = ", ".join(loop.variable for loop in relation.loops)
        message = f"there is no value for {variables} among the runs of the relation's first metric that has it"
        raise RelationError(message, relation.loops[-1].column, "name the metric with all values first")


def check_expression(expression: Expression, study: Study) -> None:
    """Raise RelationError on the first name of an expression that is unknown in the study."""
    _check(expression, Scope(study), values_in_study(study))


def _check(node: Chain | Within | Alike | Expression, scope: Scope, values_of: ValuesOf) -> None:
    if isinstance(node, Term):
        check_term(node, scope)
    elif isinstance(node, Binary | Gain):
        _check(node.left, scope, values_of)
        _check(node.right, scope, values_of)
    elif isinstance(node, Extreme | Count):
        if isinstance(node, Count) and node.sign in "=~":
            raise RelationError(f"{node.sign} is no bound to count by; write >=, <=, > or <", node.column)
        for inner in along(node.loop, scope, tuple(terms_of(node.of)), values_of):
            _check(node.of, inner, values_of)
    elif isinstance(node, Rank):
        _check_rank(node, scope, values_of)
    elif isinstance(node, Formula):
        check_formula(node)
    elif isinstance(node, Places):
        check_term(node.of, scope, several=True)
    elif isinstance(node, Chain) and has_points(node.first):
        _check_points(node, scope)
    elif isinstance(node, Chain):
        _check(node.first, scope, values_of)
        for sign, limit in node.rest:
            _check(limit.of, scope, values_of)
            if sign in "=~" and limit.spread is None and isinstance(limit.of, Number) and limit.of.value == 0:
                raise RelationError("0 has no relative tolerance; write `0 ± SPREAD` with the paper's own")
    elif isinstance(node, Within | Alike):
        _check(node.of, scope, values_of)
        if isinstance(node, Within) and node.low >= node.high:
            raise RelationError(f"between {node.low:g} and {node.high:g} lies nothing")
        if isinstance(node, Alike):
            _check_along(node.factor, node.of, scope, node.column)


def has_points(side: Expression) -> bool:
    """Whether a side of a relation is a metric with several points in a run. Raises RelationError."""
    return isinstance(side, Term) and bool(metric_of(side).over)


def _check_points(chain: Chain, scope: Scope) -> None:
    assert isinstance(chain.first, Term)
    check_term(chain.first, scope, several=True)
    (_, limit), *more = chain.rest
    if more or limit.spread is not None or not is_constant(limit.of):
        raise RelationError("points are held against one law of numbers and formulas", chain.first.column)
    _check_law(limit.of, metric_of(chain.first).over, chain.first.column)


def _check_law(law: Expression, over: Sequence[str], column: int) -> None:
    if isinstance(law, Binary):
        _check_law(law.left, over, column)
        _check_law(law.right, over, column)
    elif isinstance(law, Formula):
        check_formula(law, over)
    elif not isinstance(law, Number):
        raise RelationError("points are held against one law of numbers and formulas", column)


def _check_along(factor: str, of: Expression, scope: Scope, column: int) -> None:
    for term in terms_of(of):
        experiment, _ = _experiment_of(term, scope)
        if factor not in experiment.factors:
            raise RelationError(*_at(unknown("factor", factor, experiment.factors), column))


def _check_rank(rank: Rank, scope: Scope, values_of: ValuesOf) -> None:
    for term in (rank.of, rank.then):
        check_term(term, scope)
    _check_along(rank.factor, rank.of, scope, rank.column)
    of, then = selection_of(rank.of, scope), selection_of(rank.then, scope)
    if of.experiment != then.experiment:
        message = f"the ranked metrics are of experiments {of.experiment!r} and {then.experiment!r}; one is ranked"
        raise RelationError(message, rank.then.column)
    values = values_of(of, rank.factor)
    wanted = _resolved(rank.value, scope.environment)
    if wanted.base not in [value.base for value in values]:
        found = unknown(rank.factor, wanted.text, [value.text for value in values])
        raise RelationError(*_at(found, rank.value.column))


def check_formula(formula: Formula, over: Sequence[str] = ()) -> None:
    """Raise RelationError unless it is a known formula with its arguments, each a number or a quantity above 0.

    The variable that points are ``over`` may be an argument by its name alone.
    """
    if formula.name not in FORMULAS:
        raise RelationError(*_at(unknown("formula", formula.name, FORMULAS), formula.column))
    needed, given = arguments_of(formula.name), dict(formula.arguments)
    for name, value in formula.arguments:
        if name not in needed:
            column = value.column if value else formula.column
            raise RelationError(*_at(unknown(f"argument of {formula.name}", name, needed), column))
        if value is None:
            if name not in over:
                known = f"the points are over {', '.join(over)}" if over else "there are no points to take it from"
                raise RelationError(f"argument {name} has no value, and {known}", formula.column)
            continue
        if isinstance(value.base, bool | str) or value.base <= 0:
            message = f"argument {name} is {value.text!r}; allowed: a number or a quantity above 0"
            raise RelationError(message, value.column)
    missing = [name for name in needed if name not in given]
    if missing:
        raise RelationError(f"formula {formula.name!r} needs {', '.join(missing)}", formula.column)
