# SPDX-License-Identifier: Apache-2.0
"""Claims of a study: the format of claims.yaml, and a claim as it is judged.

``longfat.relations.claim_file`` reads them. Judges nothing: ``longfat.relations.judge`` does.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from longfat.manifest.models import Header
from longfat.relations.bind import RelationError
from longfat.relations.nodes import terms_of
from longfat.relations.relation import Relation
from longfat.relations.syntax import parse
from longfat.schema import fields as f
from longfat.schema.closed import Closed
from longfat.schema.names import Path


def _syntax(given: str) -> str:
    try:
        parse(given)
    except RelationError as error:
        raise f.fault(placed(given, error), error.hint) from error
    return given


def placed(text: str, error: RelationError) -> str:
    """Return the message of an error with its column in the text."""
    return f"column {error.column} of {text!r}: {error.message}"


RelationText = Annotated[f.Text, AfterValidator(_syntax)]
_Listed = BeforeValidator(lambda given: [given] if isinstance(given, str) else given)
_OneOrSeveral = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
)
Relations = Annotated[tuple[RelationText, ...], _Listed, _OneOrSeveral]
# Relations in which `${COLUMN}` is replaced by the row's value.
Templates = Annotated[tuple[f.Text, ...], _Listed, _OneOrSeveral]


class PaperStatement(Closed):
    """The paper's statement, as printed, and its place."""

    value: f.Number | f.Text | tuple[f.Number, ...] | None = Field(None, description="as printed")
    unit: str = Field("", description="unit of the value")
    where: f.Text = Field(description="section, figure or table of the paper")

    def text(self) -> str:
        """The value with its unit, for people."""
        if self.value is None:
            return "no number stated"
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        shown = ", ".join(value if isinstance(value, str) else f"{value:,.10g}" for value in values)
        return f"{shown} {self.unit}".strip()


class Deviation(Closed):
    """Known behaviour that differs from a claim."""

    reason: f.Text = Field(description="why, with the source: a file of the kernel, say")
    relation: Relations = Field(description="what holds instead; of several each must hold")


class Inconsistent(Closed):
    """Where the paper's own figures contradict the statement."""

    where: f.Text = Field(description="the place in the paper that contradicts it, beside that of the statement")
    reason: f.Text = Field(description="what stands there")


class Retest(Closed):
    """How much the paper's own numbers differ when it measures the same again."""

    deviation: f.Number = Field(description="standard deviation, in percent of the number or in its unit")
    of: Literal["number", "unit"] = Field("number", description="number: in percent of it; unit: in its unit")
    where: f.Text = Field(description="where the paper measures again")


class Needs(Closed):
    """Conditions on runs for the claim to be judged on them at all."""

    lasts: f.Length | dict[str, f.Length] | None = Field(
        None,
        description="each run's traffic lasts at least so long; or so long by experiment, by id or by names such as"
        " `*-ireland`, of which an id takes precedence, then a later name",
    )
    epochs: f.Count | None = Field(None, description="windows are cut at least so often in each run")
    utilisation: f.Number | None = Field(None, description="the bottleneck is used by at least so many percent")
    at_least_n: f.Count | None = Field(None, description="each scenario has at least so many runs")

    def lasts_in(self, experiment: str) -> float:
        """Seconds that the traffic of an experiment's runs lasts at least; 0 where any length does."""
        if not isinstance(self.lasts, dict):
            return self.lasts.value / 1e6 if self.lasts else 0.0
        matching = [length for name, length in self.lasts.items() if fnmatchcase(experiment, name)]
        length = self.lasts.get(experiment) or next(reversed(matching), None)
        return length.value / 1e6 if length else 0.0


Kind = Literal["law", "construction"]


class WrittenClaim(Closed):
    """One testable statement of the paper, or a hypothesis of one's own study, as in claims.yaml."""

    id: f.Name = Field(description="unique in the study; that of the paper's catalogue, if there is a paper")
    artifact: f.Name | None = Field(None, description="figure or table that it is about")
    also: tuple[f.Name, ...] = Field((), description="further figures or tables")
    statement: f.Text = Field(description="the statement in one sentence of our own")
    paper: PaperStatement | None = Field(
        None, description="what the paper states; required where the study has a paper"
    )
    relation: Relations = Field((), description="what decides it; of several each must hold")
    deviation: Deviation | None = Field(None, description="what is known to hold instead, and why")
    not_testable: f.Text | None = Field(None, description="why this testbed cannot test it")
    kind: Kind | None = Field(
        None, description="law: a rule of an algorithm, two runs suffice; construction: true by how runs are set up"
    )
    calibrated_on: f.Text | None = Field(None, description="which setting was chosen with this number in sight")
    oracle: dict[str, f.Number] = Field({}, description="the paper's own numbers, by the metric as a relation names it")
    inconsistent: Inconsistent | None = Field(None, description="where the paper contradicts its statement")
    retest: Retest | None = Field(None, description="how much the paper's number differs when it measures again")
    needs: Needs | None = Field(None, description="what its runs must be")

    @model_validator(mode="after")
    def _check_test(self) -> WrittenClaim:
        if bool(self.relation) == bool(self.not_testable):
            raise f.fault("give either relation or not_testable")
        return self


class TableClaims(Closed):
    """A table of the paper whose rows are claims: rows of one ``claim`` are one claim, those without one are none.

    ``${COLUMN}`` stands for what a row has there. Where each row is a cell, ``${value}`` brings the paper's own error
    along, if the row has one, and ``${cells}`` stands for all of a claim's cells.
    """

    file: f.Text = Field(
        description="CSV file beside claims.yaml with a column claim; if its rows are cells with value, and cell, error"
        " and n if need be"
    )
    artifact: f.Name = Field(description="the table")
    also: tuple[f.Name, ...] = Field((), description="further figures or tables")
    unit: str = Field("", description="unit of the values")
    where: f.Text = Field(description="table of the paper")
    statement: f.Text = Field(description="the statement of a claim, from the columns of its first row")
    paper: f.Text | None = Field(None, description="what the paper states in a row (default: the claim's cells)")
    relation: Templates = Field((), description="the relation of a row; of several each must hold")
    not_testable: f.Text | None = Field(None, description="why this testbed cannot test its claims")
    retest: Retest | None = Field(
        None,
        description="how much the numbers differ when the paper measures again; column retest says where",
    )
    kind: Kind | None = Field(None, description="as of a claim: law or construction")
    needs: Needs | None = Field(None, description="what the runs of its claims must be")

    @model_validator(mode="after")
    def _check_test(self) -> TableClaims:
        if bool(self.relation) == bool(self.not_testable):
            raise f.fault("give either relation or not_testable")
        return self


class ClaimsDocument(Closed):
    """The whole of claims.yaml."""

    format: Literal[2] = Field(description="version of this format")
    study: f.Name = Field(description="name of the study")
    needs: Needs | None = Field(None, description="what the runs of a claim must be that has no `needs` of its own")
    tables: tuple[TableClaims, ...] = Field((), description="the paper's tables whose cells are claims")
    claims: tuple[WrittenClaim, ...] = Field((), description="the claims")


@dataclass(frozen=True)
class Claim:
    """One testable statement with its decision: relations that must all hold, or why it cannot be tested.

    ``paper`` is the paper's statement and ``where`` its place; both are "" for a hypothesis. ``place`` is its place in
    claims.yaml. ``retests`` has, for each relation, the deviation of the paper's own retests. ``deviation`` states why
    something else is known to hold, and ``instead`` what.
    """

    id: str
    artifact: str | None
    also: tuple[str, ...]
    statement: str
    paper: str
    where: str
    relations: tuple[Relation, ...]
    not_testable: str | None = None
    declared: Kind | None = None
    calibrated_on: str | None = None
    oracle: Mapping[Hashable, float] = field(default_factory=dict)
    inconsistent: Inconsistent | None = None
    contradicts: tuple[str, ...] = ()
    same_as: str | None = None
    retests: tuple[Retest | None, ...] = ()
    needs: Needs | None = None
    place: Path = ()
    deviation: str | None = None
    instead: tuple[Relation, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether it depends on a run."""
        return any(terms_of(*relation.sides) for relation in self.relations)

    @property
    def artifacts(self) -> frozenset[str]:
        """The figures and tables that it is about."""
        return frozenset(name for name in (self.artifact, *self.also) if name)

    @property
    def kind(self) -> str:
        """The category in which it is counted: measured claims, or one of the kinds that are counted separately."""
        if self.not_testable is None and not self.measured:
            return "arithmetic"
        return self.declared or ("calibrated" if self.calibrated_on else "measured")


KINDS = ("measured", "calibrated", "law", "construction", "arithmetic")


def claim_nouns(header: Header) -> tuple[str, str]:
    """The noun for a claim of the study, singular and plural: without a paper it is the author's own hypothesis."""
    return ("claim", "claims") if header.paper else ("hypothesis", "hypotheses")


def counted_claims(count: int, header: Header) -> str:
    """A number of claims, for people."""
    return f"{count} {claim_nouns(header)[count != 1]}"
