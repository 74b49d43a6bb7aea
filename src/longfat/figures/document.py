# SPDX-License-Identifier: Apache-2.0
"""The figures and tables of a study: figures.yaml, checked against the study with all problems at once."""

from __future__ import annotations

import difflib
import functools
import operator
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from longfat.figures import KINDS, Figure
from longfat.figures.base import OWN
from longfat.metrics.registry import load_own_metrics
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding, unknown
from longfat.study.schema.source import Source, document_of
from longfat.study.study import Study
from longfat.system.errors import StudyError

BEYOND = ("sensitivity-", "extra-")  # prefixes of ids of figures that the paper does not have


def _one_kind(given: Any) -> Any:
    if isinstance(given, Figure):
        return given
    if not isinstance(given, Mapping):
        raise f.fault(f"figure is {given!r}; allowed: a mapping of keys to values")
    kinds = [kind for kind in KINDS if kind in given]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        example = "such as `bars: fig-1`"
        message = f"needs one kind of figure with its artifact, {example}; found: {found}; allowed: {', '.join(KINDS)}"
        near = [kind for key in given for kind in difflib.get_close_matches(str(key), KINDS, n=1, cutoff=0.75)]
        raise f.fault(message, f"did you mean {near[0]!r}?" if near and not kinds else None)
    return given


def _kind_of(given: Any) -> str:
    return f"<{given.kind if isinstance(given, Figure) else next(kind for kind in KINDS if kind in given)}>"


def _inherited(given: Any) -> Any:
    """Return each figure as plain data, with the keys of the figure that it is ``like``."""
    if not isinstance(given, list):
        return given
    known: dict[tuple[str, str], Mapping[str, Any]] = {}
    figures: list[Any] = []
    for figure in given:
        kind = next((kind for kind in KINDS if kind in figure), None) if isinstance(figure, Mapping) else None
        if kind is not None:
            base = known.get((kind, str(figure.get("like"))), {})
            if "like" in figure and not base:
                alike = [artifact for of_kind, artifact in known if of_kind == kind]
                message, hint = unknown(f"earlier figure of kind {kind}", figure["like"], alike)
                raise f.fault(f"{figure[kind]}: {message}", hint)
            figure = {key: value for key, value in base.items() if key not in OWN} | dict(figure)
            known[kind, str(figure[kind])] = figure
        figures.append(figure)
    return figures


_UNION: Any = functools.reduce(operator.or_, (Annotated[kind, Tag(f"<{name}>")] for name, kind in KINDS.items()))
AnyFigure = Annotated[_UNION, Discriminator(_kind_of), BeforeValidator(_one_kind)]


class Coverage(f.Closed):
    """The numbers of artifacts and claims in the paper, for the coverage in the report."""

    artifacts: f.Count
    claims: f.Count


class FiguresDocument(f.Closed):
    """The whole of figures.yaml."""

    format: Literal[2] = Field(description="version of this format")
    study: f.Name = Field(description="name of the study")
    paper: Coverage | None = Field(default=None, description="size of the paper's catalogue")
    figures: Annotated[tuple[AnyFigure, ...], BeforeValidator(_inherited)] = Field(
        default=(), description="the figures, in the order of the report"
    )

    def figure(self, artifact: str) -> Figure:
        """Return the figure of an artifact. Raises StudyError for an unknown artifact."""
        for figure in self.figures:
            if isinstance(figure, Figure) and figure.artifact == artifact:
                return figure
        message, hint = unknown("artifact", artifact, [figure.artifact for figure in self.figures])
        raise StudyError(message, where="figures.yaml", hint=hint)


def beyond_the_paper(artifact: str | None) -> bool:
    """Return whether an id belongs to a figure that the paper does not have."""
    return artifact is not None and artifact.startswith(BEYOND)


def figures_of(source: Source, study: Study) -> FiguresDocument:
    """Read the figures of a ``figures.yaml`` and check them against the study in the same folder.

    Raises StudyError with all its problems, each with file, line and key.
    """
    folder = FilePath(source.file).parent
    load_own_metrics(folder)

    def check(document: FiguresDocument) -> Iterator[Finding]:
        if document.study != study.name:
            yield Finding(("study",), f"{document.study!r} is not the study in this folder, {study.name!r}")
        if document.paper and not study.header.paper:
            yield Finding(("paper",), "the study has no paper")
        seen: set[str] = set()
        for index, figure in enumerate(document.figures):
            place = ("figures", index)
            if figure.artifact in seen:
                message = f"figure {figure.artifact!r} is given twice; names are unique"
                yield Finding((*place, figure.kind), message)
            seen.add(figure.artifact)
            if study.header.paper and not figure.paper:
                message = f"figure {figure.artifact!r} lacks the statement of the paper"
                yield Finding((*place, figure.kind), message, "give `paper`")
            if figure.paper and figure.hypothesis:
                yield Finding((*place, "hypothesis"), "give `paper` or `hypothesis`, not both")
            yield from (finding.below(*place) for finding in figure.faults())
            yield from (finding.below(*place) for finding in figure.findings(study))

    return document_of(source, FiguresDocument, "figures", "artifact", check, {"folder": str(folder)})
