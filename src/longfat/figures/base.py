# SPDX-License-Identifier: Apache-2.0
"""The base of every kind of figure, and the registry of kinds.

A kind is a subclass of Figure in a module of this package; its first key is the name of the kind. It reports its
faults, computes its data as a table and draws this table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from pydantic import AfterValidator, Field

from longfat.figures.parts import UNITS, FigureData, Mark, draw_marks, table, table_height
from longfat.metrics.quantities import Selection, valued
from longfat.plan.model import Plan
from longfat.relations.bind import RelationError, Scope, Term, check_term, selection_of
from longfat.relations.claims import placed
from longfat.relations.evaluate import Grounds
from longfat.relations.nodes import Expression
from longfat.relations.syntax import parse_items, parse_term
from longfat.relations.tree import selections
from longfat.spec.runspec import Scalar
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding, Path, unknown
from longfat.study.study import Study, SweptExperiment
from longfat.study.sweep import base_value, common_unit, has_unit

_AXIS = re.compile(r"(\w+)(?: in (\S+))?")


def _parsed_by(parser: Callable[[str], object]) -> AfterValidator:
    def check(given: str) -> str:
        try:
            parser(given)
        except RelationError as error:
            raise f.fault(placed(given, error), error.hint) from error
        return given

    return AfterValidator(check)


# A metric over selected runs, such as `goodput[delay-9000, flow=stream1]`.
TermText = Annotated[f.Text, _parsed_by(parse_term)]
# A selection of runs, such as `delay-9000, standard, window=1 MiB`: the items of a metric's brackets.
RunsText = Annotated[f.Text, _parsed_by(parse_items)]


def _axis(given: str) -> str:
    match = _AXIS.fullmatch(given)
    if not match:
        raise f.fault(f"{given!r} is not an axis; write FACTOR or FACTOR in UNIT")
    if match[2] and match[2] not in UNITS:
        raise f.fault(*unknown("unit", match[2], UNITS))
    return given


AxisText = Annotated[f.Text, AfterValidator(_axis)]


@dataclass(frozen=True)
class Sources:
    """The sources of figures: a study with its dataset, and the plan that was run."""

    grounds: Grounds
    plan: Plan

    @property
    def study(self) -> Study:
        """The study."""
        return self.grounds.study

    def runs(self, *selections: Selection) -> tuple[str, ...]:
        """Return the ids of the runs behind the values of the selections, in the order of the lock."""
        found = {run.run_id for selection in selections for run in valued(self.grounds.dataset, selection)}
        return tuple(dict.fromkeys(run.run_id for run in self.grounds.dataset.runs if run.run_id in found))


KINDS: dict[str, type[Figure]] = {}
OWN = ("title", "paper", "hypothesis", "marks", "part_of", "like")  # keys that `like` does not copy


class Figure(f.Closed):
    """The keys of every figure. A subclass adds the field ``artifact``, whose alias is the name of its kind."""

    kind: ClassVar[str]
    is_table: ClassVar[bool] = False  # whether the drawing is a table of the data
    artifact: f.Name
    part_of: f.Name | None = Field(None, description="the paper's artifact of which it shows a part")
    like: f.Name | None = Field(
        None, description="an earlier figure of its kind, which has the values of all missing keys"
    )
    title: f.Text = Field(description="one line in our own words")
    paper: f.Text | None = Field(
        None, description="the paper's statement about it, in our own words; required if the study has a paper"
    )
    hypothesis: f.Text | None = Field(None, description="instead of `paper`: the expectation of the study")
    marks: tuple[Mark, ...] = Field((), description="stated numbers, to draw next to the measurement")

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        alias = cls.model_fields["artifact"].alias
        if alias is None:  # base class of several kinds
            return
        assert alias not in KINDS, "each kind has its own name"
        cls.kind = alias
        KINDS[alias] = cls

    @property
    def broad(self) -> bool:
        """Whether a paper shows it across all columns."""
        return self.is_table

    def faults(self) -> Iterator[Finding]:
        """Yield forbidden combinations of keys, with places below the figure."""
        yield from ()

    def findings(self, study: Study) -> Iterator[Finding]:
        """Yield unknown names, with places below the figure."""
        yield from ()

    def data(self, sources: Sources) -> FigureData:
        """Compute the data as a table; without rows if no run is valid."""
        raise NotImplementedError

    def draw(self, canvas: Canvas, data: FigureData, sources: Sources) -> None:
        """Draw data that has rows."""
        table(canvas.add_subplot(), data)

    def mark(self, panels: Sequence[Axes]) -> None:
        """Draw the stated numbers in all axes."""
        draw_marks(panels, self.marks, "stated value" if self.paper else "reference")

    def height(self, data: FigureData, sources: Sources) -> float:
        """Return the height of the drawing in inches."""
        if self.is_table:
            return table_height(data) if data.rows else 1.2
        return 3.9

    def expressions(self) -> Iterator[Expression]:
        """Yield the expressions over metrics that it shows."""
        yield from ()

    def selections(self, study: Study) -> Iterator[Selection]:
        """Yield the selections of its expressions, for all values of their loops."""
        return (one for expression in self.expressions() for one in selections(expression, Scope(study)))

    def experiments(self, study: Study) -> tuple[str, ...]:
        """Return the ids of the experiments whose runs it shows."""
        return tuple(dict.fromkeys(one.experiment for one in self.selections(study)))


def selected(text: str, study: Study) -> Selection:
    """Return the selection of a term or of a text of runs. Raises RelationError."""
    return selection_of(_term(text), Scope(study))


def selection_findings(text: str, key: str, study: Study) -> Iterator[Finding]:
    """Yield the unknown names in a term or in a text of runs."""
    try:
        check_term(_term(text), Scope(study))
    except RelationError as error:
        before = 0 if text.endswith("]") else len("runs[")
        yield Finding((key,), f"column {max(error.column - before, 1)} of {text!r}: {error.message}", error.hint)


def _term(text: str) -> Term:
    """Parse a term; a text of runs becomes the term of a metric whose only parameter is a flow."""
    return parse_term(text) if text.endswith("]") else Term("goodput", parse_items(text), 1)


def axis(text: str) -> tuple[str, str | None]:
    """Split an axis into factor and unit."""
    match = _AXIS.fullmatch(text)
    assert match is not None
    return match[1], match[2]


def factor_findings(name: str, path: Path, experiment: SweptExperiment) -> Iterator[Finding]:
    """Yield a finding if the experiment lacks the factor."""
    if name not in experiment.factors:
        yield Finding(path, *unknown("factor", name, experiment.factors))


def axis_findings(text: str, key: str, experiment: SweptExperiment) -> Iterator[Finding]:
    """Yield a finding if the experiment lacks the factor of an axis, or if axis and values differ in their units."""
    name, unit = axis(text)
    yield from factor_findings(name, (key,), experiment)
    labels = list(experiment.labels.get(name, {}).values())
    if unit is None:
        if own := common_unit(labels):
            message = f"the axis has no unit, and {name!r} the value {labels[-1]!r}"
            yield Finding((key,), message, f"write `{name} in {own}`")
    elif other := next((label for label in labels if not has_unit(label, unit)), None):
        yield Finding((key,), f"{name!r} cannot be drawn in {unit}: it has the value {other!r}")


def value_findings(factor: str, value: Scalar, path: Path, experiment: SweptExperiment) -> Iterator[Finding]:
    """Yield a finding if a factor of the experiment lacks the value."""
    values = experiment.factors.get(factor, ())
    if values and base_value(value) not in values:
        yield Finding(path, *unknown(factor, value, map(str, values)))


def distinct(names: Iterable[tuple[Path, str]]) -> Iterator[Finding]:
    """Yield a finding for each name in a legend, given with its place, that stands there already."""
    found: set[str] = set()
    for path, name in names:
        if name in found:
            yield Finding(path, f"{name!r} is in the legend already")
        found.add(name)


def among(what: str, given: Iterable[str], path: Path, allowed: Sequence[str], below: bool = True) -> Iterator[Finding]:
    """Yield a finding for each unknown name, at its key ``below`` the place or at the place itself."""
    for name in given:
        if name not in allowed:
            yield Finding((*path, name) if below else path, *unknown(what, name, allowed))
