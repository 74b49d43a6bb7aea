# SPDX-License-Identifier: Apache-2.0
"""One run, found by the first digits of its id: in the results folders, else in the committed evidence.

Reads only the names of other runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.cli.paths import repository_root
from longfat.cli.study import every_study, find_study, known_baselines
from longfat.data.study_folder import StudyFolder
from longfat.evidence.rows import Row, read_line, standing
from longfat.evidence.store import EVIDENCE, SUFFIX, Place
from longfat.evidence.stored_dataset import Planned
from longfat.plan import PlannedRun
from longfat.spec.runspec import RunSpec
from longfat.study.catalog.kernels import KERNELS, OwnKernel
from longfat.study.catalog.stacks import kernel_of_stack
from longfat.system.errors import RecordError, StudyError

SHORTEST = 4  # fewest digits of an id that identify a run
AGAIN, PCAP = "again", "pcap"  # folders of repeated runs below results/, which are not searched
SHOWN = 10  # candidates in a message
_FOLDER = re.compile(r"(?P<scenario>.+)\.r(?P<repetition>\d{2,})\.(?P<id8>[0-9a-f]{8})")


@dataclass(frozen=True)
class Found:
    """A run. ``folder`` is its record and ``row`` its evidence, each None if absent.

    ``study`` is the name of the study in the lock of the results or in the evidence.
    """

    spec: RunSpec
    scenario: str
    repetition: int
    study: str
    stack: str | None = None
    profile: str | None = None
    experiment: str | None = None
    factors: Mapping[str, Any] | None = None
    folder: Path | None = None
    row: Row | None = None
    source: Mapping[str, Any] = field(default_factory=dict)  # of its kernel, as in the lock
    home: StudyFolder | None = None  # the study, if the run is a point of it and not a record

    @property
    def kernels(self) -> tuple[tuple[str, ...], Mapping[str, OwnKernel]]:
        """The names of the kernels for a repetition, the stack's first, and the kernels with files of its study.

        Raises StudyError if the study is gone or its files are not trusted.
        """
        first = kernel_of_stack(self.stack or "")
        named = self.source.get("name") or self.spec.pins.get("kernel", first)
        home = self.home
        if self.source.get("own") and self.folder is not None:
            kept = self.folder.resolve().parents[1] / "study" / self.study  # of `longfat try`
            home = find_study(str(kept) if kept.is_dir() else self.study)
        own = home.own_kernels(self.stack) if home else {}
        names = (named,) if self.home else (named, *own)  # a record has no names of kernels with files, only digests
        return tuple(dict.fromkeys((first, *(name for name in names if name in {*KERNELS, *own})))), own

    @property
    def name(self) -> str:
        """Scenario, repetition and the first digits of the id, for people."""
        return f"{self.scenario}.r{self.repetition:02d}.{self.spec.run_id[:8]}"

    @property
    def backend(self) -> str:
        """The backend that executed it."""
        return self.spec.pins.get("backend", DEFAULT_BACKEND)

    def planned(self, spec: RunSpec) -> PlannedRun:
        """Return the run as an entry of a plan, with another spec."""
        experiment = self.experiment or self.scenario
        return PlannedRun(spec.run_id, self.scenario, experiment, dict(self.factors or {}), self.repetition, spec)


def find_run(text: str, given: Path | None = None) -> Found:
    """Return the run whose id begins with ``text``, or whose folder has this path or name.

    The results folder ``given`` is searched, else all folders below ``results/`` and then the evidence. Raises
    StudyError for no such run, or for several.
    """
    if (Path(text) / "spec.json").is_file():
        return _of_folder(Path(text))
    wanted = text.lower()
    paths = sorted(path for path in _run_folders(given) if _matches(path, wanted))
    if len({_id(path) for path in paths}) == 1:
        return _of_folder(max(paths, key=_is_ok))
    folders = {path.name for path in paths}
    found = [] if folders or given else _in_evidence(wanted)
    if len(found) == 1:
        return found[0]
    if names := sorted(folders) or sorted(one.name for one in found):
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise StudyError(f"{len(names)} runs match {text!r}: {', '.join(names[:SHOWN])}{more}", hint="give more digits")
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST},64}}", wanted):
        hint = f"give {SHORTEST} or more digits of a run's id, the name of its folder, or its path"
        raise StudyError(f"no run has the name {text!r}", hint=hint)
    where = str(given or f"{repository_root() / 'results'} and the evidence")
    raise StudyError(f"no run has an id that begins with {text!r}", where=where, hint="`./just run STUDY` makes runs")


def run_names() -> list[str]:
    """Return the short ids of recorded runs, for completion."""
    return sorted({_id(path) for path in _run_folders(None)})


def _run_folders(given: Path | None) -> Iterator[Path]:
    """Yield the folders of recorded runs."""
    home = repository_root() / "results"
    for pattern in ("raw/*",) if given else ("*/raw/*", "*/*/raw/*"):
        for path in (given or home).glob(pattern):
            if _FOLDER.fullmatch(path.name) and (given or path.parent.parent.name not in (AGAIN, PCAP)):
                yield path


def _id(path: Path) -> str:
    return path.name.rpartition(".")[2]


def _matches(path: Path, wanted: str) -> bool:
    """Return whether a text is the folder's name, with or without the id, or the beginning of the id."""
    name, _, own = path.name.rpartition(".")
    if wanted in (path.name, name):
        return True
    if len(wanted) <= len(own):
        return len(wanted) >= SHORTEST and own.startswith(wanted)
    return wanted.startswith(own) and _spec(path).run_id.startswith(wanted)


def _is_ok(path: Path) -> bool:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return bool(json.loads((path / "run.json").read_text(encoding="ascii"))["status"] == "ok")
    return False


def _spec(folder: Path) -> RunSpec:
    """Read the spec of a record. Raises RecordError."""
    path = folder / "spec.json"
    try:
        return RunSpec.from_json(path.read_text(encoding="ascii"))
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"the record cannot be read: {error!r}", where=str(path)) from error


def _of_folder(folder: Path) -> Found:
    """Return the run of a record, with the description in its lock if that is readable. Raises RecordError."""
    match = _FOLDER.fullmatch(folder.resolve().name)
    spec, results = _spec(folder), folder.resolve().parent.parent
    plan: Mapping[str, Any] = {}
    entry: Mapping[str, Any] = {}
    source: Mapping[str, Any] = {}
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        lock = json.loads((results / "lock.json").read_text(encoding="ascii"))
        entry = next((run for run in lock["runs"] if run["run_id"] == spec.run_id), {})
        plan = lock
        source = dict(lock.get("kernels", {}).get(spec.pins.get("kernel"), {}))
    return Found(
        spec=spec,
        scenario=entry.get("scenario") or (match["scenario"] if match else folder.name),
        repetition=entry.get("repetition") or (int(match["repetition"]) if match else 1),
        study=plan.get("study", results.name),
        stack=plan.get("stack") if entry else None,
        profile=plan.get("profile") if entry else None,
        experiment=entry.get("experiment"),
        factors=entry.get("factors"),
        folder=folder,
        source=source,
    )


def _in_evidence(wanted: str) -> list[Found]:
    """Return the evidence's runs whose id has this beginning, each from the newest baseline that has it."""
    order = {baseline.name: place for place, baseline in enumerate(known_baselines())}
    found: dict[str, Found] = {}
    for folder in every_study() if len(wanted) >= SHORTEST else ():
        rows = sorted(_rows(folder, wanted), key=lambda one: order.get(one[0].baseline, -1))
        kept = {id(row) for row in standing(row for _, row in rows) if row.withdrawn is None}
        for place, row in ((place, row) for place, row in rows if id(row) in kept):
            planned = Planned(folder.assuming(row.assuming).study, place.stack, place.profile)
            if run := planned.run(row.scenario, row.repetition):
                found[row.run_id] = Found(
                    spec=run.spec,
                    scenario=row.scenario,
                    repetition=row.repetition,
                    study=folder.name,
                    stack=place.stack,
                    profile=place.profile,
                    experiment=run.experiment,
                    factors=run.factors,
                    row=row,
                )
    return list(found.values())


def _rows(folder: StudyFolder, wanted: str) -> Iterator[tuple[Place, Row]]:
    """Yield the rows of a study with such an id; only lines that contain the digits are parsed."""
    for path in (folder.path / EVIDENCE).rglob(f"*{SUFFIX}"):
        for number, line in enumerate(path.read_text(encoding="ascii", errors="replace").splitlines(), 1):
            if f'"run":"{wanted}' in line or f'"spec":"{wanted}' in line:
                try:
                    baseline, stack, profile, _ = path.relative_to(folder.path / EVIDENCE).parts
                    yield Place(baseline, stack, profile, path.stem), Row.read(read_line(line))
                except (ValueError, KeyError, TypeError, RecursionError, RecordError) as error:
                    raise StudyError(f"the row is damaged: {error}", where=f"{path}:{number}") from error
