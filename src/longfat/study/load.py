# SPDX-License-Identifier: Apache-2.0
"""Loading of a study: YAML, models, sweeps and checks, with every problem reported at once.

Owns the order of the checks. Reads only the given file and the files that it names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from longfat.spec.runspec import Scalar
from longfat.study.catalog.kernels import KERNELS
from longfat.study.changing import FOLDER
from longfat.study.formulas import Formula, FormulaError
from longfat.study.graphs import lot_sides
from longfat.study.inherit import Placed, inherited
from longfat.study.lint import experiment_findings
from longfat.study.models import Document, Experiment, Header, Hosts
from longfat.study.points import Surroundings, concrete, reference_findings, references
from longfat.study.profiles import Factors, profile_findings
from longfat.study.schema.explain import MISSING, explain, with_nearest_kinds
from longfat.study.schema.fields import MOST_FLOWS, REFERENCE
from longfat.study.schema.names import Finding, Path, shown, unknown
from longfat.study.schema.source import Source, read_source, refused, repeated
from longfat.study.study import Point, Study, SweptExperiment, host_settings
from longfat.study.sweep import Cell, Records, Sweep, factor_levels, grid, sweep_findings
from longfat.study.thinning import Profile, Profiles
from longfat.study.topologies import TOPOLOGIES, end_hosts
from longfat.study.traffic import SECTIONS
from longfat.study.traffic.algorithm import Algorithm
from longfat.study.unknowns import assumed
from longfat.system.errors import StudyError

Model = TypeVar("Model", bound=BaseModel)


def load_study(path: FilePath, given: Mapping[str, Scalar] = MappingProxyType({})) -> Study:
    """Read and check a ``study.yaml``; ``given`` values of unknowns replace their defaults.

    Raises StudyError when it cannot be read, or with all its problems, each with file, line and key.
    """
    return study_of(read_source(path), given)


def study_of(source: Source, given: Mapping[str, Scalar] = MappingProxyType({}), only: Collection[str] = ()) -> Study:
    """Check a ``study.yaml`` that has been read. Raises StudyError with all its problems, like ``load_study``.

    With ``only``, the study has only the named experiments, and the others are not checked.
    """
    if not isinstance(source.data, dict):
        raise StudyError("the study is not a mapping of keys to values", where=source.file)
    data, found = assumed(source.data, given)
    study, findings = _checked(source.file, data, only)
    findings = [*source.findings, *findings, *found]
    if findings or study is None:
        raise refused(source, findings, "the study")
    return study


def header_of(source: Source) -> Header:
    """Return a ``study.yaml`` without its experiments, which are not checked. Raises StudyError."""
    given = source.data if isinstance(source.data, dict) else {}
    given, _ = assumed(given, {})
    head = {key: value for key, value in given.items() if key != "experiments"}
    header, findings = _validated(Header, head, _outside(source.file, head))
    if header is None:
        problems = tuple(source.problem(finding) for finding in findings)
        raise StudyError("the study's header cannot be read", where=source.file, problems=problems)
    return header


def _checked(file: str, data: dict[str, Any], only: Collection[str]) -> tuple[Study | None, list[Finding]]:
    """Return the study, or None with the problems. Each part is checked even if others are wrong."""
    head = {key: value for key, value in data.items() if key != "experiments"}
    outside = _outside(file, head)
    header, findings = _validated(Header, head, outside, within=Document)
    findings = [*_misplaced(head), *(one for one in findings if one.path not in dict(references(head)))]
    findings += _kernel_findings(outside, head)
    raws = data.get("experiments")
    if not isinstance(raws, list) or not raws:
        message = "is required here: a list of at least one experiment"
        return None, [*findings, Finding(("experiments",), message)]
    findings += repeated(raws, "experiment", ("experiments",), "id")
    entries, found = inherited(raws, data.get("defaults"))
    findings += found
    named = {one.data["id"]: one for one in entries if one and isinstance(one.data.get("id"), str)}
    around = _Around(data, outside)
    findings += around.findings
    swept, head_findings = [], list(findings)
    for index, placed in enumerate(entries):
        if placed is None:
            _, found = _validated(Experiment, raws[index], {})
            findings += [finding.below("experiments", index) for finding in found]
            continue
        if only and placed.data.get("id") not in only:
            continue
        findings += [*_pair_findings(placed, named)]
        experiment, found = _swept(placed, around)
        findings += [finding for finding in found if not _follows(finding, head_findings)]
        if experiment:
            swept.append(experiment)
    factors = {name: _factors(placed.data) for name, placed in named.items()}
    profiles = data.get("profiles")
    for name in Profiles.model_fields:
        raw_profile = profiles.get(name) if isinstance(profiles, dict) else None
        profile, _ = _validated(Profile, raw_profile, {})
        if profile:
            found = profile_findings(profile, factors, swept)
            findings += [finding.below("profiles", name) for finding in found]
    if header and len(swept) == len(entries):
        findings += _host_findings(header, swept)
    return (Study(file, header, tuple(swept)).over_backends() if header else None), findings


def _follows(finding: Finding, head: Iterable[Finding]) -> bool:
    """Return whether an experiment's finding repeats one of ``paths`` or ``defaults``, from which it has its keys."""
    missing = finding.path[-1:] if finding.message == MISSING else None
    return any(finding.path == one.path or (missing == one.path[-1:] and one.message == MISSING) for one in head)


def _host_findings(header: Header, swept: list[SweptExperiment]) -> Iterator[Finding]:
    """Yield the study's settings of single hosts that are in no experiment."""
    sides = [point.experiment.sides for one in swept for point in one.points]
    known = list(dict.fromkeys(name for both in sides for side in both for name in side))
    for name in header.hosts.per_host:
        if name not in known:
            yield Finding(("hosts", "per_host", name), *unknown("node", name, known))


def _misplaced(head: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield references outside the experiments, where no factor has a value."""
    for section in ("paths", "hosts", "algorithms", "defaults"):
        for path, text in references(head.get(section), (section,)):
            if REFERENCE.fullmatch(text):
                place = "`topology` of an experiment" if section == "paths" else "an experiment"
                message = f"{text} has no value here: references belong into experiments"
                yield Finding(path, message, f"give this key in {place}, which is laid over this one")


def _factors(raw: Mapping[str, Any]) -> Factors | None:
    """Return an experiment's factors with their values; None if the sweep is unreadable."""
    sweep, _ = _validated(Sweep, raw.get("sweep", {}), {})
    if sweep is None:
        return None
    return {name: tuple(level.value for level in row) for name, row in factor_levels(sweep).items()}


class _Around:
    """The valid parts of the rest of the study, as far as an experiment needs them."""

    def __init__(self, data: Mapping[str, Any], outside: dict[str, Any]) -> None:
        self.outside = outside
        self.misplaced = {
            match[1].split(".")[0]
            for _, text in references({key: value for key, value in data.items() if key != "experiments"})
            if (match := REFERENCE.fullmatch(text))
        }
        raw = data.get("algorithms", {})
        entries: dict[str, Any] = raw if isinstance(raw, dict) else {}
        self.names = list(entries) if isinstance(raw, dict) else None
        parts = {name: _validated(Algorithm, entry, outside)[0] for name, entry in entries.items()}
        self.algorithms = {name: part for name, part in parts.items() if part}
        self.hosts = _validated(Hosts, data.get("hosts", {}), {})[0] or Hosts()
        paths, stacks = _records(data, "paths"), _records(data, "stacks")
        self.findings = [
            Finding(("stacks", name), "is also the name of a path; names of records are unique")
            for name in stacks
            if name in paths
        ]
        self.surroundings = Surroundings(paths, {**stacks, **paths}, str(host_settings(self.hosts, Hosts()).mtu))

    def context(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return the names that keys of an experiment may refer to; None for unknown ones."""
        nodes, traffic = _nodes(raw.get("topology")), _traffic_names(raw)
        return {**self.outside, "node": nodes, "traffic": traffic, "algorithm": self.names}


def _outside(file: str, head: Mapping[str, Any]) -> dict[str, Any]:
    """Return the validation context of all models: the study's folder, and the names of kernels."""
    own = head.get("kernels")
    return {FOLDER: FilePath(file).parent, "kernel": [*KERNELS, *(own if isinstance(own, dict) else ())]}


def _kernel_findings(outside: Mapping[str, Any], head: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield kernels of the study that have the name of a kernel in ``kernels/``."""
    for name in KERNELS:
        if outside["kernel"].count(name) > 1:
            yield Finding(("kernels", name), "is the name of a kernel of the project", "give it another name")


def _records(data: Mapping[str, Any], section: str) -> Records:
    """Return the named records of a section with their places, without entries that are not mappings."""
    raw = data.get(section)
    entries = raw.items() if isinstance(raw, dict) else ()
    return {name: ((section, name), fields) for name, fields in entries if isinstance(fields, dict)}


def _traffic_names(raw: Mapping[str, Any]) -> list[str] | None:
    """Return the names of all traffic of an experiment given as plain data; None if a count is unknown."""
    names: list[str] = []
    for section in SECTIONS:
        entries = raw.get(section, [])
        if not isinstance(entries, list):
            return None
        for entry in (one for one in entries if isinstance(one, dict)):
            name, count = str(entry.get("name")), entry.get("count") if section == "flows" else None
            if count is not None and not (isinstance(count, int) and count <= MOST_FLOWS):
                return None
            names += [name] if count is None else [f"{name}{number}" for number in range(1, count + 1)]
    return names


def _nodes(topology: Any) -> list[str] | None:
    """Return the hosts of a topology given as plain data; None if they are unknown."""
    if not isinstance(topology, dict) or topology.get("kind") not in list(TOPOLOGIES):
        return None
    if topology["kind"] == "graph":
        named = [topology.get(key) for key in ("senders", "receivers")]
        return [str(name) for names in named if isinstance(names, list) for name in names]
    senders, receivers = topology.get("senders", 1), topology.get("receivers", 1)
    if topology["kind"] == "parking_lot":
        receivers = topology.get("bottlenecks")
    if not all(isinstance(count, int) and 1 <= count <= 100 for count in (senders, receivers)):
        return None
    sides = lot_sides if topology["kind"] == "parking_lot" else partial(end_hosts, topology["kind"])
    clients, servers = sides(senders, receivers)
    return [*clients, *servers]


def _validated(
    model: type[Model], raw: Any, context: dict[str, Any], within: type[BaseModel] | None = None
) -> tuple[Model | None, list[Finding]]:
    """Return the model of plain data, or None with the problems."""
    try:
        return model.model_validate(raw, context=context), []
    except ValidationError as error:
        findings = explain(error, within or model)
        repaired = with_nearest_kinds(error, raw)
        return None, findings if repaired is None else [*findings, *_validated(model, repaired, context, within)[1]]


def _pair_findings(placed: Placed, named: Mapping[str, Placed]) -> Iterator[Finding]:
    """Yield a pair whose partner does not exist, or takes its own draws from another experiment."""
    partner = placed.data.get("pairs_with")
    if not isinstance(partner, str):
        return
    place = placed.place(("pairs_with",))
    if partner not in named:
        yield Finding(place, *unknown("experiment", partner, named))
    elif further := named[partner].data.get("pairs_with"):
        message = f"{partner!r} takes its draws from {shown(further)}"
        yield Finding(place, message, "let both pair with the same experiment")


def _swept(placed: Placed, around: _Around) -> tuple[SweptExperiment | None, list[Finding]]:
    """Return an experiment at all points of its sweep, or None with the problems at their places in the file."""
    raw = placed.data
    sweep, found = _validated(Sweep, raw.get("sweep", {}), {})
    if sweep is None:
        found = [finding.below("sweep") for finding in found]
        return None, [*_found(found, placed), *_points(placed, Sweep(), {}, [], around)[1]]
    formulas, found = _formulas(sweep)
    for name, section in SECTIONS.items():
        found += repeated(raw.get(name), section.one, (name,), "name")
    wrong = sweep_findings(sweep)
    found += [*wrong, *reference_findings(raw, sweep, formulas, around.misplaced)]
    levels = factor_levels(sweep, around.surroundings.records)
    # If a sweep cannot be expanded, check each single value of its factors.
    cells = [{name: level} for name, row in levels.items() for level in row] if wrong else grid(sweep, levels)
    points, faults = _points(placed, sweep, formulas, cells, around)
    findings = list(dict.fromkeys([*_found(found, placed), *faults]))
    if findings or not points:
        return None, findings
    first = points[0].experiment
    factors = {name: tuple(level.value for level in row) for name, row in levels.items()}
    swept = SweptExperiment(first.id, first.repetitions, factors, tuple(points), dict(sweep.derived))
    return swept, []


def _found(findings: list[Finding], placed: Placed) -> list[Finding]:
    return [Finding(placed.place(finding.path), finding.message, finding.hint) for finding in findings]


def _formulas(sweep: Sweep) -> tuple[dict[str, Formula], list[Finding]]:
    """Return the readable formulas of a sweep, and the faults of the others."""
    formulas, found = {}, []
    for name, text in sweep.derived.items():
        try:
            formulas[name] = Formula(text)
        except FormulaError as error:
            found.append(Finding(("sweep", "derived", name), error.message, error.hint))
    return formulas, found


def _points(
    placed: Placed, sweep: Sweep, formulas: Mapping[str, Formula], cells: list[Cell], around: _Around
) -> tuple[list[Point], list[Finding]]:
    """Return the experiment at every cell; findings about a factor's value point to its place.

    The experiment is first checked with its references unresolved, so that faults outside the sweep always show.
    """
    points: list[Point] = []
    findings: dict[Finding, None] = {}

    def check(cell: Cell) -> tuple[Experiment | None, Mapping[Path, Path]]:
        at = concrete(placed, sweep, formulas, cell, around.surroundings)
        experiment, found = _validated(Experiment, at.data, around.context(at.data))
        if experiment:
            found = experiment_findings(experiment, around.algorithms, around.hosts)
        waiting = (at.placed(finding) for finding in found)
        findings.update(dict.fromkeys([*at.findings, *(finding for finding in waiting if finding)]))
        return experiment, at.places

    if cells != [{}]:
        check({})
    for cell in cells:
        experiment, places = check(cell)
        if experiment:
            factors = {name: level.value for name, level in cell.items()}
            labels = {name: str(level.given) for name, level in cell.items()}
            points.append(Point(factors, labels, experiment, places))
    return points, list(findings)
