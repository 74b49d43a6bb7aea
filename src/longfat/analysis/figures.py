# SPDX-License-Identifier: Apache-2.0
"""Which figures and tables a study draws: figures.yaml, checked against the study with all problems at once.

Owns the document and its agreement with the study beside it (experiments, factors, values, flows). Draws
nothing; the form of each kind is in ``longfat.analysis.figure_kinds``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path as FilePath
from typing import Literal

from pydantic import Field, ValidationError

from longfat.analysis.claims import factor_findings, load_document, quantity_findings, study_beside
from longfat.analysis.expressions import Quantity, base_units
from longfat.analysis.figure_kinds import FLOW, AnyFigure, Bars, OneFigure, Ranking, Table, TimeSeries, Topology
from longfat.errors import StudyError
from longfat.manifest import fields as f
from longfat.manifest.closed import Closed
from longfat.manifest.names import Finding, Path, unknown
from longfat.manifest.source import read_source
from longfat.manifest.study import Study, SweptExperiment

FIGURES = "figures.yaml"
BEYOND = ("sensitivity-", "extra-")  # how ids of figures begin that the paper does not have


class Coverage(Closed):
    """How many artifacts and claims the paper has, so that the report can say how many are here."""

    artifacts: f.Count
    claims: f.Count


class FiguresDocument(Closed):
    """The whole of figures.yaml."""

    format: Literal[1] = Field(description="version of this format")
    study: f.Name = Field(description="name of the study")
    paper: Coverage | None = Field(None, description="size of the paper's catalogue")
    figures: tuple[AnyFigure, ...] = Field(description="the figures, in the order of the report")

    def figure(self, artifact: str) -> OneFigure:
        """The figure of an artifact. Raises StudyError when there is none."""
        for figure in self.figures:
            if figure.artifact == artifact:
                return figure
        message, hint = unknown("artifact", artifact, [figure.artifact for figure in self.figures])
        raise StudyError(message, where=FIGURES, hint=hint)


def beyond_the_paper(artifact: str | None) -> bool:
    """Whether an id is of a figure that asks what the paper does not."""
    return artifact is not None and artifact.startswith(BEYOND)


def load_figures(path: FilePath) -> FiguresDocument:
    """Read and check a ``figures.yaml``, against the ``study.yaml`` in the same folder when there is one.

    Raises StudyError when it cannot be read, or with all its problems, each with file, line and key.
    """
    study = study_beside(path)

    def check(document: FiguresDocument) -> Iterator[Finding]:
        if study and document.study != study.name:
            yield Finding(("study",), f"{document.study!r} is not the study in this folder, {study.name!r}")
        for index, figure in enumerate(document.figures):
            place = ("figures", index)
            yield from (finding.below(*place) for finding in figure.faults())
            if study:
                yield from _findings(figure, place, study)

    return load_document(path, FiguresDocument, "figures", "artifact", check)


@dataclass(frozen=True)
class Catalogue:
    """The size of the paper's catalogue, if it is stated, and which of its artifacts each figure shows."""

    size: Coverage | None
    shows: Mapping[str, str]

    def shown(self, figures: Iterable[str]) -> int:
        """How many of the paper's artifacts the figures of these ids show; what the paper does not have counts not."""
        return len({self.shows[figure] for figure in figures if figure in self.shows})


def load_catalogue(path: FilePath) -> Catalogue:
    """What a ``figures.yaml`` says of the paper's catalogue; how the figures are drawn is not looked at.

    Raises StudyError when it cannot be read.
    """
    data = read_source(path).data
    try:
        figures = [(figure["artifact"], figure.get("part_of")) for figure in data["figures"]]
        size = Coverage.model_validate(data["paper"]) if "paper" in data else None
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise StudyError(f"the catalogue cannot be read: {error!r}", where=str(path)) from error
    return Catalogue(size, {own: whole or own for own, whole in figures if not beyond_the_paper(own)})


def _findings(figure: OneFigure, place: Path, study: Study) -> Iterator[Finding]:
    """What in a figure is not in the study."""
    experiments = {item.id: item for item in study.experiments}
    if isinstance(figure, TimeSeries | Topology):
        experiment = experiments.get(figure.experiment)
        if experiment is None:
            yield Finding((*place, "experiment"), *unknown("experiment", figure.experiment, experiments))
        elif isinstance(figure, TimeSeries):
            yield from _curve_findings(figure, place, experiment, study)
    if isinstance(figure, Bars):
        yield from quantity_findings(figure.of, (*place, "of"), study)
        if experiment := experiments.get(figure.of.experiment):
            yield from _bars_findings(figure, place, experiment)
    if isinstance(figure, Table):
        for (row, column), cell in figure.measured.items():
            yield from quantity_findings(cell, (*place, "rows", row, column), study)
    if isinstance(figure, Ranking):
        yield from quantity_findings(figure.of, (*place, "of"), study)
        yield from quantity_findings(figure.then, (*place, "then"), study)
        if experiment := experiments.get(figure.of.experiment):
            yield from factor_findings(figure.by, (*place, "by"), experiment)
            yield from _among("flow", figure.names, (*place, "names"), experiment.flows)
            for index, value in enumerate(figure.expected):
                yield from _value_findings(figure.by, value, (*place, "expected", index), experiment)


def _bars_findings(figure: Bars, place: Path, experiment: SweptExperiment) -> Iterator[Finding]:
    yield from factor_findings(figure.x, (*place, "x"), experiment)
    if figure.highlight is not None:
        yield from _value_findings(figure.x, figure.highlight, (*place, "highlight"), experiment)
    if figure.series == FLOW:
        flows = experiment.flows
        yield from _among("flow", figure.names, (*place, "names"), flows)
        if figure.over is not None and figure.over not in flows:
            yield Finding((*place, "over"), *unknown("flow", figure.over, flows))
    elif figure.series is not None:
        yield from factor_findings(figure.series, (*place, "series"), experiment)
        if figure.over is not None:
            yield from _value_findings(figure.series, figure.over, (*place, "over"), experiment)
        values = [str(value) for value in experiment.factors.get(figure.series, ())]
        if values:
            yield from _among(figure.series, figure.names, (*place, "names"), values)


def _curve_findings(figure: TimeSeries, place: Path, experiment: SweptExperiment, study: Study) -> Iterator[Finding]:
    chosen = Quantity.model_construct(metric="goodput", experiment=figure.experiment, where=figure.where)
    findings = list(quantity_findings(chosen, place, study))
    for key in ("series", "panels"):
        if name := getattr(figure, key):
            findings += factor_findings(name, (*place, key), experiment)
    flows = (*experiment.flows, *(experiment.udp if figure.what == "goodput" else ()))
    findings += _among("flow", [figure.flow] if figure.flow else [], (*place, "flow"), flows, below=False)
    findings += _among("flow", figure.flows, (*place, "flows"), flows)
    if not findings:
        sampled = _capture_findings if figure.captured else _window_findings
        sampled = _ping_findings if figure.what == "rtt" else sampled
        findings += sampled(figure, place, experiment)
        findings += _ambiguous(figure, place, experiment)
    yield from findings


def _capture_findings(figure: TimeSeries, place: Path, experiment: SweptExperiment) -> Iterator[Finding]:
    """Flows that no run captures: outstanding data and throughput are read from captures."""
    captured = experiment.points[0].experiment.probes.capture
    captured_flow = partial(_among, "captured flow", allowed=captured)
    yield from captured_flow([figure.flow] if figure.flow else [], (*place, "flow"), below=False)
    yield from captured_flow(figure.flows, (*place, "flows"))
    if not figure.flow and not figure.flows and len(captured) != 1:
        counted = ", ".join(captured) or "none"
        yield Finding((*place, "flow"), f"is required here: captured flows of the experiment are {counted}")


def _ping_findings(figure: TimeSeries, place: Path, experiment: SweptExperiment) -> Iterator[Finding]:
    """RTTs of an experiment without pings."""
    if experiment.points[0].experiment.probes.ping is None:
        yield Finding((*place, "what"), f"experiment {experiment.id!r} has no pings", "probes: {ping: 100 ms}")


def _window_findings(figure: TimeSeries, place: Path, experiment: SweptExperiment) -> Iterator[Finding]:
    """A flow that is not named: windows and goodput are read from the sending sockets."""
    flows = experiment.flows
    if not figure.flow and not figure.flows and len(flows) != 1:
        yield Finding((*place, "flow"), f"is required here: flows of the experiment are {', '.join(flows)}")


def _ambiguous(figure: TimeSeries, place: Path, experiment: SweptExperiment) -> Iterator[Finding]:
    """A curve that stands for several points of the sweep."""
    held = [name for name in (figure.panels, figure.series) if name]
    points = [
        point
        for point in experiment.points
        if all(condition.holds(point.factors.get(name)) for name, condition in figure.where.items())
    ]
    most = max(Counter(tuple(point.factors[name] for name in held) for point in points).values())
    if most > 1:
        message = f"{most} points of the sweep would be one curve"
        yield Finding(place, message, "narrow them down with where, series or panels")


def _value_findings(factor: str, value: object, place: Path, experiment: SweptExperiment) -> Iterator[Finding]:
    """A finding when a factor of the experiment does not have the value."""
    values = experiment.factors.get(factor, ())
    if values and base_units(value) not in values:  # type: ignore[arg-type]
        yield Finding(place, *unknown(factor, value, map(str, values)))


def _among(
    what: str, given: Iterable[str], place: Path, allowed: Sequence[str], below: bool = True
) -> Iterator[Finding]:
    """A finding for each name that is not allowed, at its key ``below`` the place or at the place itself."""
    for name in given:
        if name not in allowed:
            yield Finding((*place, name) if below else place, *unknown(what, name, allowed))
