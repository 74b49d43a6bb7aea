# SPDX-License-Identifier: Apache-2.0
"""Reader of claims.yaml, which checks the claims against the study in the same folder and reports all problems."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable, Iterator
from fnmatch import filter as filter_names
from fnmatch import fnmatchcase
from pathlib import Path as FilePath

from longfat.metrics.registry import load_own_metrics
from longfat.relations.bind import RelationError, Scope, check_term, quantity, selection_of
from longfat.relations.claim_lint import contradicted, grouped
from longfat.relations.claims import Change, Claim, ClaimsDocument, Needs, Retest, TableClaims, WrittenClaim, placed
from longfat.relations.relation import Relation
from longfat.relations.syntax import parse, parse_term
from longfat.relations.tables import RETEST, Row, TableError, read_claimed
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding, Path, unknown
from longfat.study.schema.source import Source, document_of
from longfat.study.study import Study


def claims_of(source: Source, study: Study) -> tuple[Claim, ...]:
    """Return the claims of a ``claims.yaml``. Raises StudyError with all its problems, each with file, line and key."""
    folder = FilePath(source.file).parent
    load_own_metrics(folder)
    claims: list[Claim] = []

    def check(document: ClaimsDocument) -> Iterator[Finding]:
        if document.study != study.name:
            yield Finding(("study",), f"{document.study!r} is not the study in this folder, {study.name!r}")
        yield from _unknown_experiments(document, study)
        for index, table in enumerate(document.tables):
            yield from _add_table(table, table.needs or document.needs, ("tables", index), folder, study, claims)
        in_tables = {claim.id for claim in claims}
        for index, written in enumerate(document.claims):
            if written.id in in_tables:
                yield Finding(("claims", index, "id"), f"claim {written.id!r} is given in a table too; ids are unique")
            if written.paper is None and study.header.paper is not None:
                message = f"claim {written.id!r} lacks the statement of the paper"
                yield Finding(("claims", index), message, "give `paper`; only a study without a paper has none")
            yield from _add(written, written.needs or document.needs, ("claims", index), study, claims)
        yield from contradicted(claims, study)
        for index, change in enumerate(document.changes):
            for number, name in enumerate(change.claims):
                if not filter_names([claim.id for claim in claims], name):
                    known = [claim.id for claim in claims]
                    yield Finding(("changes", index, "claims", number), *unknown("claim", name, known))

    document = document_of(source, ClaimsDocument, "claims", "id", check)
    return tuple(_with_changes(claim, document.changes) for claim in grouped(claims, study))


def _with_changes(claim: Claim, changes: Iterable[Change]) -> Claim:
    own = tuple(one for one in changes if any(fnmatchcase(claim.id, name) for name in one.claims))
    return dataclasses.replace(claim, changes=own) if own else claim


def _unknown_experiments(document: ClaimsDocument, study: Study) -> Iterator[Finding]:
    """Yield unknown names of experiments in ``needs``."""
    known = [swept.id for swept in study.experiments]
    every: list[tuple[Path, Needs | None]] = [((), document.needs)]
    every += [(("tables", index), table.needs) for index, table in enumerate(document.tables)]
    every += [(("claims", index), written.needs) for index, written in enumerate(document.claims)]
    for place, needs in every:
        for name in needs.lasts if needs and isinstance(needs.lasts, dict) else ():
            if not filter_names(known, name):
                yield Finding((*place, "needs", "lasts", name), *unknown("experiment", name, known))


def _add(
    written: WrittenClaim, needs: Needs | None, place: Path, study: Study, claims: list[Claim]
) -> Iterator[Finding]:
    """Add a claim, and yield the faults of its relations."""
    relations: list[Relation] = []
    instead: list[Relation] = []
    yield from _add_relations(written.relation, place, study, relations)
    if written.deviation:
        yield from _add_relations(written.deviation.relation, (*place, "deviation"), study, instead)
    oracle: dict[Hashable, float] = {}
    for text, printed in written.oracle.items():
        try:
            term = parse_term(text)
            check_term(term, Scope(study))
            identity = quantity(selection_of(term, Scope(study)), study)
            if identity in oracle:
                raise RelationError("this number is given twice")
            oracle[identity] = printed
        except RelationError as error:
            yield Finding((*place, "oracle", text), placed(text, error), error.hint)
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
            not_testable=written.not_testable,
            declared=written.kind,
            calibrated_on=written.calibrated_on,
            oracle=oracle,
            inconsistent=written.inconsistent,
            retests=(written.retest,) * len(relations),
            needs=needs,
            place=place,
            deviation=written.deviation.reason if written.deviation else None,
            instead=tuple(instead),
            scenario_differs=written.scenario_differs,
        )
    )


def _add_table(
    table: TableClaims, needs: Needs | None, place: Path, folder: FilePath, study: Study, claims: list[Claim]
) -> Iterator[Finding]:
    """Add the claims of a table, and yield its faults."""
    try:
        claimed = read_claimed(folder / table.file)
    except TableError as error:
        yield Finding((*place, "file"), str(error))
        return
    known = {claim.id for claim in claims}
    column = any(RETEST in row.columns for rows in claimed.values() for row in rows)
    if column != (table.retest is not None):
        needed = "needs the key `retest`" if column else "is missing, and the key `retest` needs it"
        yield Finding((*place, "file"), f"{table.file}: the column {RETEST} {needed}")
    for claim, rows in claimed.items():
        if claim in known:
            yield Finding((*place, "file"), f"claim {claim!r} is given twice; ids are unique")
        if not f.is_name(claim):
            yield Finding((*place, "file"), f"{table.file}, line {rows[0].line}: claim {claim[:64]!r} is not a name")
        relations: list[Relation] = []
        retests: list[Retest | None] = []
        for row in rows:
            yield from _add_relations(table.relation, place, study, relations, (table.file, row))
            try:
                retests += [_retest(table, row)] * (len(relations) - len(retests))
            except ValueError:
                fault = f"{table.file}, line {row.line}: retest: {row.columns[RETEST]!r} is neither yes nor a number"
                yield Finding((*place, "file"), fault)
        cells = ", ".join(row.named for row in rows if row.printed)
        try:
            key = "statement"
            statement = rows[0].filled(table.statement, **({"cells": cells} if cells else {}))
            key = "paper"
            printed = "; ".join(row.filled(table.paper) for row in rows) if table.paper else cells
        except TableError as error:
            yield Finding((*place, key), str(error))
            continue
        if not printed:
            yield Finding((*place, "file"), "has no column value", "give `paper`, the paper's statement in a row")
        claims.append(
            Claim(
                claim,
                table.artifact,
                table.also,
                statement,
                f"{printed} {table.unit}".strip(),
                table.where,
                tuple(relations),
                not_testable=table.not_testable,
                declared=table.kind,
                calibrated_on=_first(rows, "calibrated_on"),
                retests=tuple(retests),
                needs=needs,
                place=place,
                scenario_differs=_first(rows, "scenario_differs") or table.scenario_differs,
            )
        )


def _first(rows: Iterable[Row], column: str) -> str | None:
    return next((text for row in rows if (text := row.columns.get(column))), None)


def _retest(table: TableClaims, row: Row) -> Retest | None:
    """Return the retest of a row: none, the table's, or with the row's own deviation. Raises ValueError."""
    given = row.columns.get(RETEST)
    if not given or table.retest is None:
        return None
    if given == "yes":
        return table.retest
    if not 0 <= (deviation := float(given)) < math.inf:
        raise ValueError("not a deviation")
    return table.retest.model_copy(update={"deviation": deviation})


def _add_relations(
    texts: Iterable[str], place: Path, study: Study, relations: list[Relation], of: tuple[str, Row] | None = None
) -> Iterator[Finding]:
    """Add relations, and yield their faults; ``of`` is the file and the row that fill their templates."""
    for number, template in enumerate(texts):
        text = template
        try:
            text = of[1].filled(template) if of else template
            relation = parse(text)
            relation.check(study)
            relations.append(relation)
        except TableError as error:
            yield Finding((*place, "relation", number), str(error))
        except RelationError as error:
            row = f"{of[0]}, line {of[1].line}: " if of else ""
            for one in (error, *error.further):
                yield Finding((*place, "relation", number), f"{row}{placed(text, one)}", one.hint)
