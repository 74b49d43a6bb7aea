# SPDX-License-Identifier: Apache-2.0
"""Loading of a study: YAML, models, sweeps and checks, with every problem reported at once.

Owns the order of the checks. It must not look at anything but the one file it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from longfat.errors import StudyError
from longfat.manifest.explain import explain
from longfat.manifest.lint import experiment_findings
from longfat.manifest.models import (
    TOPOLOGIES,
    Algorithm,
    Document,
    Experiment,
    Header,
    Hosts,
    Sweep,
    end_hosts,
)
from longfat.manifest.names import Finding, Path, key_text
from longfat.manifest.profiles import Factors, profile_findings
from longfat.manifest.source import read_source
from longfat.manifest.study import ExcludedPoint, Point, Study, SweptExperiment
from longfat.manifest.sweep import (
    SWEPT_SECTIONS,
    Cell,
    Level,
    exclusion_of,
    factor_levels,
    grid,
    reference_findings,
    replaced,
    sweep_findings,
    swept_references,
)
from longfat.manifest.thinning import Profile, Profiles

Model = TypeVar("Model", bound=BaseModel)


def load_study(path: FilePath) -> Study:
    """Read and check a ``study.yaml``.

    Raises StudyError when it cannot be read, or with all its problems, each with file, line and key.
    """
    source = read_source(path)
    if not isinstance(source.data, dict):
        raise StudyError("the study is not a mapping of keys to values", where=source.file)
    study, findings = _checked(source.file, source.data)
    problems = [source.problem(finding) for finding in dict.fromkeys([*source.findings, *findings])]
    if problems or study is None:
        problems.sort(key=lambda problem: problem.line or 0)
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise StudyError(f"the study has {count}", problems=tuple(problems))
    return study


def load_header(path: FilePath) -> Header:
    """Only what a ``study.yaml`` says beside its experiments, which are not looked at.

    Raises StudyError when it cannot be read or the header has problems.
    """
    source = read_source(path)
    given = source.data if isinstance(source.data, dict) else {}
    header, findings = _validated(Header, {key: value for key, value in given.items() if key != "experiments"}, {})
    if header is None:
        problems = tuple(source.problem(finding) for finding in findings)
        raise StudyError("the study's header cannot be read", where=source.file, problems=problems)
    return header


def _checked(file: str, data: dict[str, Any]) -> tuple[Study | None, list[Finding]]:
    """The study, or None with what is wrong; each part is checked whatever became of the others."""
    head = {key: value for key, value in data.items() if key != "experiments"}
    header, findings = _validated(Header, head, {}, within=Document)
    raws = data.get("experiments")
    if not isinstance(raws, list) or not raws:
        message = "is required here: a list of at least one experiment"
        return None, [*findings, Finding(("experiments",), message)]
    findings += _repeated(raws, "id", "experiment", "experiments")
    around = _Around(data)
    swept = []
    for index, raw in enumerate(raws):
        experiment, found = _swept(raw, around)
        findings += [finding.below("experiments", index) for finding in found]
        if experiment:
            swept.append(experiment)
    factors = {raw["id"]: _factors(raw) for raw in raws if isinstance(raw, dict) and isinstance(raw.get("id"), str)}
    profiles = data.get("profiles")
    for name in Profiles.model_fields:
        raw_profile = profiles.get(name) if isinstance(profiles, dict) else None
        profile, _ = _validated(Profile, raw_profile, {})
        if profile:
            found = profile_findings(profile, factors, swept)
            findings += [finding.below("profiles", name) for finding in found]
    return (Study(file, header, tuple(swept)) if header else None), findings


def _factors(raw: Mapping[str, Any]) -> Factors | None:
    """An experiment's factors with their values, whatever else is wrong; None when unreadable."""
    sweep, _ = _validated(Sweep, raw.get("sweep", {}), {})
    if sweep is None:
        return None
    return {name: tuple(level.value for level in row) for name, row in factor_levels(sweep).items()}


class _Around:
    """What an experiment needs of the rest of the study, as far as that is right."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        raw = data.get("algorithms")
        entries: dict[str, Any] = raw if isinstance(raw, dict) else {}
        self.names = list(entries) if isinstance(raw, dict) else None
        parts = {name: _validated(Algorithm, entry, {})[0] for name, entry in entries.items()}
        self.algorithms = {name: part for name, part in parts.items() if part}
        self.hosts = _validated(Hosts, data.get("hosts", {}), {})[0] or Hosts()

    def context(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """The names that the fields of an experiment may refer to; None where they cannot be told."""
        return {"node": _nodes(raw.get("topology")), "flow": _flow_names(raw.get("flows")), "algorithm": self.names}


def _flow_names(flows: Any) -> list[str] | None:
    """The names of single flows given as plain data; None while a count is not known."""
    if not isinstance(flows, list):
        return None
    names: list[str] = []
    for flow in (entry for entry in flows if isinstance(entry, dict)):
        count = flow.get("count")
        if count is not None and not isinstance(count, int):
            return None
        name = str(flow.get("name"))
        names += [name] if count is None else [f"{name}{number}" for number in range(1, count + 1)]
    return names


def _nodes(topology: Any) -> list[str] | None:
    """The hosts of a topology given as plain data."""
    if not isinstance(topology, dict) or topology.get("kind") not in list(TOPOLOGIES):
        return None
    senders, receivers = topology.get("senders", 1), topology.get("receivers", 1)
    if not all(isinstance(count, int) and 1 <= count <= 100 for count in (senders, receivers)):
        return None
    clients, servers = end_hosts(topology["kind"], senders, receivers)
    return [*clients, *servers]


def _validated(
    model: type[Model], raw: Any, context: dict[str, Any], within: type[BaseModel] | None = None
) -> tuple[Model | None, list[Finding]]:
    """The model of plain data, or None with what is wrong."""
    try:
        return model.model_validate(raw, context=context), []
    except ValidationError as error:
        return None, explain(error, raw, within or model)


def _repeated(raws: list[Any], key: str, what: str, section: str) -> list[Finding]:
    """Entries of a list that have the name of an earlier one."""
    found: list[Finding] = []
    seen: set[str] = set()
    for index, raw in enumerate(raws):
        name = raw.get(key) if isinstance(raw, dict) else None
        if isinstance(name, str) and name in seen:
            found.append(Finding((section, index, key), f"{what} {name!r} is given twice; names are unique"))
        if isinstance(name, str):
            seen.add(name)
    return found


def _swept(raw: Any, around: _Around) -> tuple[SweptExperiment | None, list[Finding]]:
    """An experiment at all points of its sweep, or None with what is wrong; paths are its own."""
    _, findings = _validated(Experiment, raw, around.context(raw) if isinstance(raw, dict) else {})
    if not isinstance(raw, dict):
        return None, findings
    open_paths = {path for path, _ in swept_references(raw)}
    findings = [finding for finding in findings if not _waits(finding, open_paths)]
    for section, what in (("flows", "flow"), ("web", "web traffic"), ("udp", "UDP traffic")):
        if isinstance(raw.get(section), list):
            findings += _repeated(raw[section], "name", what, section)
    sweep, _ = _validated(Sweep, raw.get("sweep", {}), {})
    if sweep is None:
        return None, findings
    levels = factor_levels(sweep)
    found = [*sweep_findings(sweep), *reference_findings(raw, list(levels))]
    # A sweep that cannot be expanded still shows what is wrong with each single value of its factors.
    cells = grid(sweep) if not sweep_findings(sweep) else _single_cells(levels)
    points, excluded, wrong = _points(raw, sweep, cells, around)
    findings = list(dict.fromkeys([*findings, *found, *wrong]))
    if findings or not points:
        return None, findings
    first = points[0].experiment
    swept = SweptExperiment(
        first.id, first.artifacts, first.repetitions, _factors(raw) or {}, tuple(points), tuple(excluded)
    )
    return swept, []


def _single_cells(levels: Mapping[str, tuple[Level, ...]]) -> list[Cell]:
    return [{name: level} for name, row in levels.items() for level in row] or [{}]


def _waits(finding: Finding, open_paths: set[Path]) -> bool:
    """Whether a finding is about a value that only the sweep will give."""
    return finding.path[:1] in [(section,) for section in SWEPT_SECTIONS] and finding.path in open_paths


def _points(
    raw: dict[str, Any], sweep: Sweep, cells: list[Cell], around: _Around
) -> tuple[list[Point], list[ExcludedPoint], list[Finding]]:
    """The experiment at every cell; findings about a factor's value point to where it is listed."""
    points: list[Point] = []
    excluded: list[ExcludedPoint] = []
    findings: dict[Finding, None] = {}
    open_paths = dict(swept_references(raw))
    for cell in cells:
        factors = {name: level.value for name, level in cell.items()}
        exclusion = exclusion_of(cell, sweep)
        if exclusion:
            excluded.append(ExcludedPoint(factors, exclusion.reason))
            continue
        concrete = replaced(raw, cell)
        experiment, found = _validated(Experiment, concrete, around.context(concrete))
        if experiment:
            found = experiment_findings(experiment, around.algorithms, around.hosts)
            labels = {name: str(level.given) for name, level in cell.items()}
            points.append(Point(factors, labels, experiment))
        for finding in found:
            placed = _placed(finding, open_paths, cell)
            if placed:
                findings[placed] = None
    return points, excluded, list(findings)


def _placed(finding: Finding, open_paths: Mapping[Path, str], cell: Cell) -> Finding | None:
    """The finding where the user can mend it: at the factor's value when a factor brought it about."""
    for length in range(len(finding.path), 0, -1):
        text = open_paths.get(finding.path[:length])
        if text is not None:
            level = cell.get(text[2:-1])
            if level is None:
                return None
            return Finding(level.path, f"as {key_text(finding.path)}: {finding.message}", finding.hint)
    return finding
