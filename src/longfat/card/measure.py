# SPDX-License-Identifier: Apache-2.0
"""Fills a report card from a dataset: the value of each cell, and the verdict of each row that has a claim."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from longfat.card.card import Card, Cell, Judgement, Word
from longfat.card.document import CardDocument, Row
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import significant
from longfat.plan.model import Plan
from longfat.relations.bind import Scope
from longfat.relations.evaluate import Evidence, Grounds, evaluated
from longfat.relations.judge import Verdict
from longfat.relations.syntax import parse_expression
from longfat.relations.tree import selections

RUN_DIGITS = 8
_WORDS: Mapping[str, Word] = {
    "reproduced": "no worse",
    "agrees": "no worse",
    "not_reproduced": "worse",
    "inconclusive": "open",
}


def measured(
    algorithm: str, document: CardDocument, grounds: Grounds, verdicts: Sequence[Verdict], plan: Plan, lock: str
) -> Card:
    """The card of an algorithm from the runs of a plan and the verdicts on the study's claims."""
    by_claim = {verdict.claim: verdict for verdict in verdicts}
    runs = grounds.dataset.runs
    return Card(
        algorithm=algorithm,
        study=document.study,
        profile=plan.profile,
        kernel=plan.pins.get("kernel", ""),
        lock=lock,
        valid=sum(run.status == "ok" for run in runs),
        planned=len(runs),
        cells={row.row: {column: _cell(row, column, grounds) for column in document.columns} for row in document.rows},
        verdicts={row.row: _judged(by_claim[row.claim]) for row in document.rows if row.claim is not None},
    )


def _cell(row: Row, column: str, grounds: Grounds) -> Cell:
    expression = parse_expression(row.expression(column))
    chosen = selections(expression, Scope(grounds.study))
    runs = {run.run_id[:RUN_DIGITS] for selection in chosen for run in selection.chosen(grounds.dataset)}
    try:
        found = evaluated(expression, grounds, least=1)
        low, high = found.interval() if found.n > 1 else (None, None)
    except (NoValue, ValueError) as error:
        return Cell(reason=str(error), runs=tuple(sorted(runs)))
    return Cell(significant(found.value), _end(low), _end(high), found.n, tuple(sorted(runs)))


def _end(value: float | None) -> float | None:
    """An end of an interval; None where there is none or it is not finite."""
    return significant(value) if value is not None and math.isfinite(value) else None


def _judged(verdict: Verdict) -> Judgement:
    lines = tuple(_lines(verdict.evidence)) or ((verdict.reason,) if verdict.reason else ())
    return Judgement(_WORDS.get(verdict.verdict, "not measured"), lines)


def _lines(evidence: Sequence[Evidence]) -> Iterator[str]:
    for item in evidence:
        if item.mean is None:
            yield f"{item.what}: {item.reason}"
        else:
            interval = "" if item.low is None or item.high is None else f" ({item.low:.4g} to {item.high:.4g})"
            yield f"{item.what}: {item.mean:.4g}{interval}, allowed {item.limit}, n = {item.n}"
