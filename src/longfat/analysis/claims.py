# SPDX-License-Identifier: Apache-2.0
"""Claims of a study: data written before the run, loaded with all problems at once.

Owns the format of claims.yaml and its agreement with the study beside it (experiments, factors, values,
flows). Judges nothing: ``longfat.analysis.judge`` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from longfat.analysis.expressions import AllTest, EqualTest, OrderTest, Quantity, RankTest, Test, base_units
from longfat.errors import StudyError
from longfat.manifest import fields as f
from longfat.manifest.closed import Closed
from longfat.manifest.explain import explain
from longfat.manifest.load import load_study
from longfat.manifest.names import Finding, Path, unknown
from longfat.manifest.source import read_source
from longfat.manifest.study import Study, SweptExperiment
from longfat.runspec import Scalar

Model = TypeVar("Model", bound=BaseModel)
CLAIMS = "claims.yaml"


class PaperStatement(Closed):
    """What the paper states, as printed, and where."""

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


class Claim(Closed):
    """One testable statement of the paper."""

    id: f.Name = Field(description="the catalogue's id, unique in the study")
    artifact: f.Name | None = Field(None, description="figure or table that it is about")
    also: tuple[f.Name, ...] = Field((), description="further figures or tables")
    kind: Literal["analytic", "numeric", "qualitative", "ordering", "ratio"] = Field(description="its sort")
    statement: f.Text = Field(description="the statement in one sentence of our own")
    paper: PaperStatement = Field(description="what the paper states")
    test: Test = Field(description="what decides it")


class ClaimsDocument(Closed):
    """The whole of claims.yaml."""

    format: Literal[1] = Field(description="version of this format")
    study: f.Name = Field(description="name of the study")
    claims: tuple[Claim, ...] = Field(description="the claims")


def load_claims(path: FilePath) -> tuple[Claim, ...]:
    """Read and check a ``claims.yaml``, against the ``study.yaml`` in the same folder when there is one.

    Raises StudyError when it cannot be read, or with all its problems, each with file, line and key.
    """
    study = study_beside(path)

    def check(document: ClaimsDocument) -> Iterator[Finding]:
        if study and document.study != study.name:
            yield Finding(("study",), f"{document.study!r} is not the study in this folder, {study.name!r}")
        for index, claim in enumerate(document.claims):
            for place, quantity in quantities(claim.test, ("claims", index, "test")):
                yield from quantity_findings(quantity, place, study)
            yield from _order_findings(claim.test, ("claims", index, "test"), study)

    return load_document(path, ClaimsDocument, "claims", "id", check).claims


def study_beside(path: FilePath) -> Study | None:
    """The study of the folder that ``path`` is in, or None when it has no study.yaml."""
    manifest = path.with_name("study.yaml")
    return load_study(manifest) if manifest.exists() else None


def load_document(path: FilePath, model: type[Model], section: str, key: str, check: Any) -> Model:
    """Load a YAML file of one list of named entries; ``check`` yields the findings of the whole document.

    Raises StudyError with all problems.
    """
    source = read_source(path)
    if not isinstance(source.data, dict):
        raise StudyError("the file is not a mapping of keys to values", where=source.file)
    findings = [*source.findings, *_repeated(source.data.get(section), section, key)]
    document: Model | None = None
    try:
        document = model.model_validate(source.data)
    except ValidationError as error:
        findings += explain(error, source.data, model)
    if document is not None:
        findings += check(document)
    if findings or document is None:
        problems = [source.problem(finding) for finding in dict.fromkeys(findings)]
        problems.sort(key=lambda problem: problem.line or 0)
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise StudyError(f"{path.name} has {count}", problems=tuple(problems))
    return document


def quantities(test: Any, path: Path) -> Iterator[tuple[Path, Quantity]]:
    """All quantities that a test names, with their places in the file."""
    if isinstance(test, AllTest):
        for index, part in enumerate(test.tests):
            yield from quantities(part, (*path, "tests", index))
    for name in ("of", "to", "over", "minus", "then"):
        if isinstance(value := getattr(test, name, None), Quantity):
            yield (*path, name), value


def quantity_findings(quantity: Quantity, path: Path, study: Study | None) -> Iterator[Finding]:
    """What in a quantity is not in the study: experiment, factors, flow, or any run."""
    if study is None:
        return
    experiments = {item.id: item for item in study.experiments}
    experiment = experiments.get(quantity.experiment)
    if experiment is None:
        message, hint = unknown("experiment", quantity.experiment, experiments)
        yield Finding((*path, "experiment"), message, hint)
        return
    strange = [name for name in quantity.where if name not in experiment.factors]
    for name in strange:
        yield Finding((*path, "where", name), *unknown("factor", name, experiment.factors))
    if quantity.flow and quantity.flow not in experiment.flows:
        yield Finding((*path, "flow"), *unknown("flow", quantity.flow, experiment.flows))
    conditions = quantity.selection().where
    if not strange and not any(
        all(condition.holds(point.factors.get(name)) for name, condition in conditions) for point in experiment.points
    ):
        yield Finding((*path, "where"), f"no run of experiment {experiment.id!r} meets these conditions")


def factor_findings(name: str, path: Path, experiment: SweptExperiment) -> Iterator[Finding]:
    """A finding when the experiment has no such factor."""
    if name not in experiment.factors:
        yield Finding(path, *unknown("factor", name, experiment.factors))


def _order_findings(test: Any, path: Path, study: Study | None) -> Iterator[Finding]:
    """What an order, equality or rank says of factors that the experiment does not have."""
    if isinstance(test, AllTest):
        for index, part in enumerate(test.tests):
            yield from _order_findings(part, (*path, "tests", index), study)
    if not isinstance(test, OrderTest | EqualTest | RankTest) or study is None:
        return
    experiment = next((item for item in study.experiments if item.id == test.of.experiment), None)
    if experiment is None:
        return
    for key in ("by", "across", "for_each"):
        if name := getattr(test, key, None):
            yield from factor_findings(name, (*path, key), experiment)
    for place, factor, value in _named_values(test):
        values = experiment.factors.get(factor)
        if values is not None and base_units(value) not in values:
            yield Finding((*path, *place), *unknown(factor, value, map(str, values)))


def _named_values(test: OrderTest | EqualTest | RankTest) -> Iterator[tuple[Path, str, Scalar]]:
    """Each value of a factor that the test itself names: place, factor, value."""
    if isinstance(test, OrderTest):
        for index, value in enumerate(test.descending):
            yield ("descending", index), test.by, value
    if isinstance(test, RankTest):
        yield ("value",), test.by, test.value


def _repeated(entries: Any, section: str, key: str) -> Iterator[Finding]:
    """Entries with the name of an earlier one."""
    seen: set[str] = set()
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        name = entry.get(key) if isinstance(entry, dict) else None
        if isinstance(name, str) and name in seen:
            message = f"{section.removesuffix('s')} {name!r} is given twice; names are unique"
            yield Finding((section, index, key), message)
        if isinstance(name, str):
            seen.add(name)
