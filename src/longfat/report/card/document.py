# SPDX-License-Identifier: Apache-2.0
"""The rows of a report card: card.yaml, checked against the study with all problems at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from longfat.data.study_folder import StudyFolder
from longfat.relations.bind import RelationError, Scope
from longfat.relations.syntax import parse_expression
from longfat.relations.tree import check as check_expression
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding, unknown
from longfat.study.schema.source import document_of, read_source

FILE = "card.yaml"
WHO = "${who}"

Asks = Literal["MUST", "SHOULD", "should"]
Section = Annotated[str, Field(pattern=r"^\d+(\.\d+)*(, \d+(\.\d+)*)*$", strict=True)]


class Row(f.Closed):
    """One requirement, with the number that is shown for the candidate and for each peer."""

    row: f.Name = Field(description="name of the row, the same in all cards")
    section: Section = Field(description="sections of the document")
    asks: Asks | None = Field(None, description="its word, such as MUST; absent in a document without such words")
    shows: f.Text = Field(description="what is measured, in a few words")
    of: f.Text = Field(description="the expression of a cell; `${who}`, needed with peers, is replaced by an algorithm")
    unit: str = Field(description="unit of its value")
    digits: f.CountFromZero = Field(1, description="decimals that are printed")
    better: Literal["less", "more"] | None = Field(None, description="which values are better, if that is clear")
    claim: f.Name | None = Field(None, description="the claim that gives its verdict; none gives no verdict")

    def expression(self, who: str) -> str:
        """Return the expression of the cell of an algorithm."""
        return self.of.replace(WHO, who)


class LeftOut(f.Closed):
    """A requirement without a row, and the reason."""

    section: Section
    asks: Asks | None = None
    what: f.Text
    reason: f.Text


class CardDocument(f.Closed):
    """The contents of card.yaml."""

    format: Literal[2] = Field(description="version of this format")
    study: f.Name = Field(description="name of the study")
    against: f.Text = Field(description="the document that the card evaluates against, as in a heading")
    verdicts: f.Text = Field(description="the meaning of a verdict, in a few sentences")
    candidate: f.Name = Field(description="the value of the factor `who` that is the candidate")
    peers: dict[f.Name, f.Text] = Field({}, description="its other values, with their names on a card")
    rows: tuple[Row, ...] = Field(description="the rows, in the order of the card")
    left_out: tuple[LeftOut, ...] = Field((), description="requirements that no row shows")

    @property
    def columns(self) -> tuple[str, ...]:
        """All values of the factor, the candidate first."""
        return (self.candidate, *self.peers)


def card_document(folder: StudyFolder) -> CardDocument:
    """Read the rows of a study's card. Raises StudyError with all problems of card.yaml."""
    study, claims = folder.study, {claim.id for claim in folder.claims}

    def check(document: CardDocument) -> Iterator[Finding]:
        if document.study != study.name:
            yield Finding(("study",), f"{document.study!r} is not the study in this folder, {study.name!r}")
        for index, row in enumerate(document.rows):
            if row.claim is not None and row.claim not in claims:
                yield Finding(("rows", index, "claim"), *unknown("claim", row.claim, claims))
            if document.peers and WHO not in row.of:
                yield Finding(("rows", index, "of"), f"names no place for the algorithm; write {WHO}")
                continue
            for text in map(row.expression, document.columns):
                try:
                    check_expression(parse_expression(text), Scope(study))
                except RelationError as error:
                    message = f"column {error.column} of {text!r}: {error.message}"
                    yield Finding(("rows", index, "of"), message, error.hint)
                    break

    return document_of(read_source(folder.path / FILE), CardDocument, "rows", "row", check)
