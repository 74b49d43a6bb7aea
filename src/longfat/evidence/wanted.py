# SPDX-License-Identifier: Apache-2.0
"""What a study reads from its runs: the selections of its claims, and of its figures and tables.

Found from the study alone, so that it does not depend on which runs there are. Time series are no part of it: figures
that draw them need the raw runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from longfat.figures.bars import Bars
from longfat.figures.base import Figure, chosen
from longfat.figures.document import read_figures
from longfat.figures.ranking import Ranking
from longfat.figures.table import Expression, PaperTable, Table
from longfat.manifest.study import Study
from longfat.metrics import METRICS
from longfat.metrics.quantities import Selection
from longfat.relations.bind import Scope, ValuesOf, along, scopes, selection_of, terms_of, values_in_study
from longfat.relations.claims import Claim, read_claims
from longfat.relations.needs import asked_of
from longfat.relations.syntax import Binary, Chain, Count, Extreme, Gain, Rank, Relation, Term, parse_expression
from longfat.relations.syntax import Expression as Node


def wanted(folder: Path, study: Study) -> tuple[Selection, ...]:
    """What all claims and figures of a study's folder read, each of all runs of its experiment.

    Metrics with several points in a run are left out. The other runs of an experiment are read too: the engine may ask
    them what a metric varies by. Raises StudyError on faulty claims and figures.
    """
    found: list[Selection] = []
    for claim in read_claims(folder, study):
        found += selections_of_claim(claim, study)
    for figure in read_figures(folder, study).figures:
        found += selections_of_figure(figure, study)
    whole = [dataclasses.replace(one, where=(), added=()) for one in found if not METRICS[one.metric].over]
    return tuple(
        {(one.experiment, one.metric, one.flow, *sorted(one.parameters.items())): one for one in whole}.values()
    )


def _what(one: Selection) -> Hashable:
    return one.experiment, one.metric, one.flow, *sorted(one.parameters.items())


def selections_of_claim(claim: Claim, study: Study, values_of: ValuesOf | None = None) -> Iterator[Selection]:
    """All that a claim reads, for all values that its loops take: in the study, or as ``values_of`` says."""
    values_of = values_of or values_in_study(study)
    for relation in claim.relations:
        for _, selections in parts_of(relation, study, values_of):
            for one in selections:
                yield one
                yield from (asked for _, asked in asked_of(claim.needs, one)) if claim.needs else ()


def parts_of(relation: Relation, study: Study, values_of: ValuesOf) -> Iterator[tuple[Scope, tuple[Selection, ...]]]:
    """What each comparison of a relation reads, in the engine's order: for each scope, side after side of a chain."""
    for scope in scopes(relation, study, values_of):
        claim = relation.claim
        if isinstance(claim, Chain):
            sides = [claim.first, *(limit.of for _, limit in claim.rest)]
            for left, right in pairwise(sides):
                yield scope, tuple(_read((left, right), scope, values_of))
        else:
            yield scope, tuple(_read((claim.of,), scope, values_of))


def selections_of_figure(figure: Figure, study: Study) -> Iterator[Selection]:
    """The metrics of a figure or table."""
    if isinstance(figure, Bars):
        yield chosen(figure.of, study)
    elif isinstance(figure, Ranking):
        yield from (chosen(text, study) for text in (figure.of, figure.then))
    elif isinstance(figure, Table | PaperTable):
        nodes = (parse_expression(text) for text in _cells(figure))
        yield from _read(nodes, Scope(study), values_in_study(study))


def _cells(figure: Table | PaperTable) -> Iterator[str]:
    if isinstance(figure, PaperTable):
        yield from (cell.filled(figure.of) for cell in figure.cells)
    else:
        yield from (cell.of for row in figure.rows for cell in row if isinstance(cell, Expression))


def _read(nodes: Iterable[Node], scope: Scope, values_of: ValuesOf) -> Iterator[Selection]:
    """The selections of expressions in a scope; those of a loop within, for each of its values."""
    for node in nodes:
        if isinstance(node, Term):
            yield selection_of(node, scope)
        elif isinstance(node, Binary | Gain):
            yield from _read((node.left, node.right), scope, values_of)
        elif isinstance(node, Rank):
            yield from _read((node.of, node.then), scope, values_of)
        elif isinstance(node, Extreme | Count):
            for inner in along(node.loop, scope, tuple(terms_of(node.of)), values_of):
                yield from _read((node.of,), inner, values_of)
