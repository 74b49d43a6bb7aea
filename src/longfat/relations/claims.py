# SPDX-License-Identifier: Apache-2.0
"""Claims of a study: data written before the run, loaded with all problems at once.

Owns the format of claims.yaml and its agreement with the study next to it. Judges nothing: ``longfat.relations.judge``
does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import filter as filter_names
from fnmatch import fnmatchcase
from pathlib import Path as FilePath
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from longfat.manifest.models import Header
from longfat.manifest.study import Study
from longfat.metrics.registry import load_own_metrics
from longfat.relations.bind import Scope, check_relation, check_term, selection_of, terms_of
from longfat.relations.paper import quantity
from longfat.relations.syntax import Relation, RelationError, parse, parse_term
from longfat.relations.tables import RETEST, Cell, TableError, read_claimed
from longfat.schema import fields as f
from longfat.schema.closed import Closed
from longfat.schema.document import document_of
from longfat.schema.names import Finding, Path, unknown
from longfat.schema.source import Source


def _syntax(given: str) -> str:
    try:
        parse(given)
    except RelationError as error:
        raise f.fault(_placed(given, error), error.hint) from error
    return given


def _placed(text: str, error: RelationError) -> str:
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
    contradicts: tuple[f.Name, ...] = Field((), description="claims that exclude this one")
    same_as: f.Name | None = Field(None, description="the claim that is the same test; it counts once")
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
    contradicts: dict[str, tuple[f.Name, ...]] = Field({}, description="by claim, the claims that exclude it")
    same_as: dict[str, f.Name] = Field({}, description="by claim, the claim that is the same test")
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
        return any(True for relation in self.relations for _ in terms_of(relation.claim))

    @property
    def kind(self) -> str:
        """The category in which it is counted: measured claims, or one of the kinds that are counted separately."""
        if self.not_testable is None and not self.measured:
            return "arithmetic"
        return self.declared or ("calibrated" if self.calibrated_on else "measured")


KINDS = ("measured", "calibrated", "law", "construction", "arithmetic")


def claims_of(source: Source, study: Study) -> tuple[Claim, ...]:
    """The claims of a ``claims.yaml``, checked against the study in the same folder.

    Raises StudyError with all its problems, each with file, line and key.
    """
    from longfat.relations.gates import check_gates  # they know of claims

    folder = FilePath(source.file).parent
    load_own_metrics(folder)
    claims: list[Claim] = []

    def check(document: ClaimsDocument) -> Iterator[Finding]:
        if document.study != study.name:
            yield Finding(("study",), f"{document.study!r} is not the study in this folder, {study.name!r}")
        for place, needs in _all_needs(document):
            yield from _unknown_experiments(needs, (*place, "needs"), study)
        for index, table in enumerate(document.tables):
            table = table if table.needs else table.model_copy(update={"needs": document.needs})
            yield from _take_table(table, ("tables", index), folder, study, claims)
        for index, written in enumerate(document.claims):
            written = written if written.needs else written.model_copy(update={"needs": document.needs})
            if any(claim.id == written.id for claim in claims[: len(claims) - index]):
                yield Finding(("claims", index, "id"), f"claim {written.id!r} is given in a table too; ids are unique")
            if written.paper is None and study.header.paper is not None:
                message = f"claim {written.id!r} does not say what the paper states"
                yield Finding(("claims", index), message, "give `paper`; only a study without a paper has none")
            yield from _take(written, ("claims", index), study, claims)
        yield from check_gates(claims, study)

    document_of(source, ClaimsDocument, "claims", "id", check)
    return tuple(claims)


def _all_needs(document: ClaimsDocument) -> Iterator[tuple[Path, Needs | None]]:
    yield (), document.needs
    yield from ((("tables", index), table.needs) for index, table in enumerate(document.tables))
    yield from ((("claims", index), written.needs) for index, written in enumerate(document.claims))


def _unknown_experiments(needs: Needs | None, place: Path, study: Study) -> Iterator[Finding]:
    """Names of experiments that the study does not have."""
    known = [swept.id for swept in study.experiments]
    for name in needs.lasts if needs and isinstance(needs.lasts, dict) else ():
        if not filter_names(known, name):
            yield Finding((*place, "lasts", name), *unknown("experiment", name, known))


def _take(written: WrittenClaim, place: Path, study: Study, claims: list[Claim]) -> Iterator[Finding]:
    """Add a claim, and yield the faults of its relations."""
    relations: list[Relation] = []
    instead: list[Relation] = []
    deviation = written.deviation
    for number, text in enumerate(written.relation):
        yield from _take_relation(text, (*place, "relation", number), study, relations)
    for number, text in enumerate(deviation.relation if deviation else ()):
        yield from _take_relation(text, (*place, "deviation", "relation", number), study, instead)
    oracle: dict[Hashable, float] = {}
    for text, printed in written.oracle.items():
        try:
            term = parse_term(text)
            check_term(term, Scope(study))
            oracle[quantity(selection_of(term, Scope(study)), study)] = printed
        except RelationError as error:
            yield Finding((*place, "oracle", text), _placed(text, error), error.hint)
    paper = written.paper
    claims.append(
        Claim(
            written.id,
            written.artifact,
            written.also,
            written.statement,
            paper.text() if paper else "",
            paper.where if paper else "",
            tuple(relations),
            written.not_testable,
            written.kind,
            written.calibrated_on,
            oracle,
            written.inconsistent,
            written.contradicts,
            written.same_as,
            (written.retest,) * len(relations),
            written.needs,
            place,
            deviation.reason if deviation else None,
            tuple(instead),
        )
    )


def _take_relation(text: str, place: Path, study: Study, relations: list[Relation]) -> Iterator[Finding]:
    """Add a relation, or yield its faults."""
    try:
        relations.append(_checked(text, study))
    except RelationError as error:
        yield Finding(place, _placed(text, error), error.hint)


def _take_table(
    table: TableClaims, place: Path, folder: FilePath, study: Study, claims: list[Claim]
) -> Iterator[Finding]:
    """Add the claims of a table, and yield its faults."""
    try:
        claimed = read_claimed(folder / table.file)
    except TableError as error:
        yield Finding((*place, "file"), str(error))
        return
    known = {claim.id for claim in claims}
    for claim, rows in claimed.items():
        if claim in known:
            yield Finding((*place, "file"), f"claim {claim!r} is given twice; ids are unique")
        relations = []
        retests = []
        for row in rows:
            for number, template in enumerate(table.relation):
                below = (*place, "relation", number)
                try:
                    relations.append(_checked(row.filled(template), study))
                    retests.append(table.retest if row.columns.get(RETEST) == "yes" else None)
                except TableError as error:
                    yield Finding(below, str(error))
                except RelationError as error:
                    message = f"{table.file}, line {row.line}: {_placed(row.filled(template), error)}"
                    yield Finding(below, message, error.hint)
        cells = ", ".join(row.named for row in rows if isinstance(row, Cell))
        statement = printed = None
        try:
            statement = rows[0].filled(table.statement, **({"cells": cells} if cells else {}))
        except TableError as error:
            yield Finding((*place, "statement"), str(error))
        try:
            printed = "; ".join(row.filled(table.paper) for row in rows) if table.paper else cells
        except TableError as error:
            yield Finding((*place, "paper"), str(error))
        if printed == "":
            yield Finding((*place, "file"), "has no column value", "give `paper`, what the paper states in a row")
        if statement and printed:
            paper = f"{printed} {table.unit}".strip()
            claims.append(
                Claim(
                    claim,
                    table.artifact,
                    table.also,
                    statement,
                    paper,
                    table.where,
                    tuple(relations),
                    table.not_testable,
                    declared=table.kind,
                    contradicts=table.contradicts.get(claim, ()),
                    same_as=table.same_as.get(claim),
                    retests=tuple(retests),
                    needs=table.needs,
                    place=place,
                )
            )


def _checked(text: str, study: Study) -> Relation:
    relation = parse(text)
    check_relation(relation, study)
    return relation


def claim_nouns(header: Header) -> tuple[str, str]:
    """The noun for a claim of the study, singular and plural: without a paper it is the author's own hypothesis."""
    return ("claim", "claims") if header.paper else ("hypothesis", "hypotheses")


def counted_claims(count: int, header: Header) -> str:
    """A number of claims, for people."""
    return f"{count} {claim_nouns(header)[count != 1]}"
