# SPDX-License-Identifier: Apache-2.0
"""Claims of a study: the format of claims.yaml, and a claim as it is judged."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from longfat.relations.bind import RelationError
from longfat.relations.nodes import terms_of
from longfat.relations.relation import Relation
from longfat.relations.syntax import parse
from longfat.study.models import Header
from longfat.study.schema import fields as f
from longfat.study.schema.files import FileName
from longfat.study.schema.names import Path, shown


def _syntax(given: str) -> str:
    try:
        parse(given)
    except RelationError as error:
        raise f.fault(placed(given, error), error.hint) from error
    return given


def _day(given: str) -> str:
    try:
        day = date.fromisoformat(given)
    except ValueError:
        day = None
    if day is None or str(day) != given:
        raise f.fault(f"{shown(given)} is not a day", "such as 2026-11-30")
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


class PaperStatement(f.Closed):
    """The paper's statement, as printed, and its place."""

    value: f.Number | f.Text | tuple[f.Number, ...] | None = Field(None, description="as printed")
    unit: str = Field("", description="unit of the value")
    where: f.Text = Field(description="section, figure or table of the paper")

    def text(self) -> str:
        """Format the value with its unit."""
        if self.value is None:
            return "no number stated"
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        shown = ", ".join(value if isinstance(value, str) else f"{value:,.10g}" for value in values)
        return f"{shown} {self.unit}".strip()


class Deviation(f.Closed):
    """Known behaviour that deviates from a claim."""

    reason: f.Text = Field(description="reason, with its source, such as a file of the kernel")
    relation: Relations = Field(min_length=1, description="relations that all hold instead")


class Inconsistent(f.Closed):
    """A place where the paper's own figures contradict the statement."""

    where: f.Text = Field(description="the place in the paper that contradicts the statement")
    reason: f.Text = Field(description="the text or number there")


class Retest(f.Closed):
    """Difference between the paper's own measurements of one number."""

    deviation: f.Number = Field(ge=0, description="standard deviation, in percent of the number or in its unit")
    of: Literal["number", "unit"] = Field("number", description="number: in percent of the number; unit: in its unit")
    where: f.Text = Field(description="where the paper measures again")


class Needs(f.Closed):
    """The condition that runs must meet before a claim is judged on them."""

    lasts: f.Length | dict[str, f.Length] | None = Field(
        None,
        description="least length of each run's traffic; or the length by experiment, with ids or patterns such as"
        " `*-ireland`: an id takes precedence over a pattern, and a later pattern over an earlier one",
    )

    def lasts_in(self, experiment: str) -> float:
        """Return the least length in seconds of the traffic of an experiment's runs; 0 if any length suffices."""
        if not isinstance(self.lasts, dict):
            return self.lasts.value / 1e6 if self.lasts else 0.0
        matching = [length for name, length in self.lasts.items() if fnmatchcase(experiment, name)]
        length = self.lasts.get(experiment) or next(reversed(matching), None)
        return length.value / 1e6 if length else 0.0


Kind = Literal["law", "construction"]


class _Tested(f.Closed):
    """The common keys of claims and tables of claims. A subclass has the relations."""

    artifact: f.Name | None = Field(None, description="the figure or table of the claim")
    also: tuple[f.Name, ...] = Field((), description="further figures or tables")
    not_testable: f.Text | None = Field(None, description="reason why this testbed cannot test it")
    kind: Kind | None = Field(
        None, description="law: a rule of an algorithm, for which two runs suffice; construction: true by the set-up"
    )
    scenario_differs: f.Text | None = Field(
        None, description="why the scenario here is not the paper's; the reason behind `not reproduced`"
    )
    retest: Retest | None = Field(
        None,
        description="difference between the paper's own measurements of the number; in a table for rows with `yes`,"
        " or their own deviation, in the column retest",
    )
    needs: Needs | None = Field(None, description="the condition on its runs")

    @model_validator(mode="after")
    def _check_test(self) -> Self:
        if bool(getattr(self, "relation", ())) == bool(self.not_testable):
            raise f.fault("give either `relation` or the reason why it is not testable")
        return self


class WrittenClaim(_Tested):
    """A testable statement of the paper, or a hypothesis of a study without one, as in claims.yaml."""

    id: f.Name = Field(description="unique in the study; the id in the paper's catalogue, if there is a paper")
    statement: f.Text = Field(description="the statement in one sentence, in our own words")
    paper: PaperStatement | None = Field(None, description="the paper's statement; required if the study has a paper")
    relation: Relations = Field((), description="relations that must all hold")
    deviation: Deviation | None = Field(None, description="relations known to hold instead, with the reason")
    calibrated_on: f.Text | None = Field(None, description="the setting that was calibrated on this number")
    oracle: dict[str, f.Number] = Field({}, description="the paper's own numbers, by metric as in a relation")
    inconsistent: Inconsistent | None = Field(None, description="the place where the paper contradicts its statement")


class TableClaims(_Tested):
    """A table of the paper whose rows are claims: all rows with the same ``claim`` are one claim.

    ``${COLUMN}`` is replaced by the row's value. If the rows are cells, ``${value}`` includes the paper's own error, if
    any, and ``${cells}`` lists all cells of a claim.
    """

    file: FileName = Field(
        description="CSV file next to claims.yaml with a column claim; if its rows are cells, with columns value and,"
        " optionally, cell, error and n"
    )
    artifact: f.Name = Field(description="the table")
    unit: str = Field("", description="unit of the values")
    where: f.Text = Field(description="table of the paper")
    statement: f.Text = Field(description="the statement of a claim, from the columns of its first row")
    paper: f.Text | None = Field(None, description="the paper's statement in a row (default: the claim's cells)")
    relation: Templates = Field((), description="relations of a row, which must all hold")


class Change(f.Closed):
    """A change of the criterion of claims after their first run."""

    claims: tuple[f.Text, ...] = Field(min_length=1, description="ids of claims, or patterns such as `fair-*`")
    date: Annotated[f.Text, AfterValidator(_day)] = Field(description="day of the change, such as 2026-11-30")
    old: f.Text = Field(description="the former criterion")
    new: f.Text = Field(description="the new criterion")
    reason: f.Text = Field(description="the reason, with its place in the paper")
    was: f.Text = Field(description="the verdict by the former criterion, on the runs of that day")
    became: f.Text = Field(description="the verdict by the new criterion, on the same runs")


class ClaimsDocument(f.Closed):
    """The whole of claims.yaml."""

    format: Literal[2] = Field(description="version of this format")
    study: f.Name = Field(description="name of the study")
    needs: Needs | None = Field(None, description="conditions on the runs of claims without `needs`")
    changes: tuple[Change, ...] = Field((), description="every change of a criterion after its first run")
    tables: tuple[TableClaims, ...] = Field((), description="the paper's tables whose cells are claims")
    claims: tuple[WrittenClaim, ...] = Field((), description="the claims")


@dataclass(frozen=True)
class Claim:
    """A testable statement with the relations that must all hold, or the reason why it cannot be tested.

    ``paper`` is the paper's statement and ``where`` its place; both are "" for a hypothesis. ``place`` is the claim's
    place in claims.yaml. ``contradicts`` lists the claims that exclude it, ``same_as`` names an earlier claim with the
    same test. ``retests`` has the paper's own retest for each relation. ``deviation`` is the reason why the relations
    in ``instead`` are known to hold. ``scenario_differs`` is the difference to the paper's scenario;
    ``changes`` lists the changes of its criterion after its first run.
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
    scenario_differs: str | None = None
    changes: tuple[Change, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether its verdict depends on runs."""
        return any(terms_of(*relation.sides) for relation in self.relations)

    @property
    def artifacts(self) -> frozenset[str]:
        """Its figures and tables."""
        return frozenset(name for name in (self.artifact, *self.also) if name)

    @property
    def kind(self) -> str:
        """The category in which it is counted: measured, or a separate kind."""
        if self.not_testable is None and not self.measured:
            return "arithmetic"
        return self.declared or ("calibrated" if self.calibrated_on else "measured")


KINDS = ("measured", "calibrated", "law", "construction", "arithmetic")


def claim_nouns(header: Header) -> tuple[str, str]:
    """Return the noun for a claim, singular and plural; without a paper it is hypothesis."""
    return ("claim", "claims") if header.paper else ("hypothesis", "hypotheses")


def counted_claims(count: int, header: Header) -> str:
    """Format a number of claims."""
    return f"{count} {claim_nouns(header)[count != 1]}"
