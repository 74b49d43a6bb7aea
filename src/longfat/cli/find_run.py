# SPDX-License-Identifier: Apache-2.0
"""One run, found by the first digits of its id: in the results folders, else in the committed evidence.

Reads only the names of other runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.cli.paths import repository_root
from longfat.cli.study import every_study
from longfat.data.study_folder import StudyFolder
from longfat.evidence.baselines import FOLDER, read_baselines
from longfat.evidence.planned import Planned
from longfat.evidence.rows import Row, read_line
from longfat.evidence.store import EVIDENCE, SUFFIX, Place
from longfat.plan import PlannedRun
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RecordError, StudyError

SHORTEST = 4  # digits of an id that name a run
AGAIN, PCAP = "again", "pcap"  # folders below results/ with repeated runs, which are never found themselves
SHOWN = 10  # candidates in a message
_FOLDER = re.compile(r"(?P<scenario>.+)\.r(?P<repetition>\d{2,})\.(?P<id8>[0-9a-f]{8})")


@dataclass(frozen=True)
class Found:
    """A run. ``folder`` is its record and ``row`` its evidence, each None if absent.

    ``results`` is the results folder with the record, ``study`` the name of the study there or in the evidence.
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
    results: Path | None = None
    row: Row | None = None

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
    folders = {path.name: path for path in _run_folders(given) if _is_called(path, wanted)}
    if len({_id(path) for path in folders.values()}) == 1:
        return _of_folder(max(folders.values(), key=_is_ok))
    found = [] if folders or given else _in_evidence(wanted)
    if len(found) == 1:
        return found[0]
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST},64}}", wanted) and not (folders or found):
        hint = f"give {SHORTEST} or more digits of a run's id, the name of its folder, or its path"
        raise StudyError(f"no run has the name {text!r}", hint=hint)
    names = sorted(folders) or sorted(one.name for one in found)
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise StudyError(f"{len(names)} runs match {text!r}: {', '.join(names[:SHOWN])}{more}", hint="give more digits")
    where = given or f"{repository_root() / 'results'} and the evidence"
    raise StudyError(
        f"no run has an id that begins with {text!r}",
        where=str(where),
        hint="`longfat run STUDY` makes runs",
    )


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


def _is_called(path: Path, wanted: str) -> bool:
    if path.name == wanted or path.name.rpartition(".")[0] == wanted:
        return True
    own = _id(path)
    if len(wanted) <= len(own):
        return len(wanted) >= SHORTEST and own.startswith(wanted)
    return wanted.startswith(own) and RunSpec.from_json(_text(path / "spec.json")).run_id.startswith(wanted)


def _is_ok(path: Path) -> bool:
    try:
        return bool(json.loads(_text(path / "run.json"))["status"] == "ok")
    except (RecordError, ValueError, KeyError, TypeError):
        return False


def _of_folder(folder: Path) -> Found:
    """Return the run of a record. Raises RecordError when it cannot be read."""
    match = _FOLDER.fullmatch(folder.resolve().name)
    try:
        spec = RunSpec.from_json(_text(folder / "spec.json"))
    except (ValueError, TypeError) as error:
        raise RecordError(f"the record cannot be read: {error!r}", where=str(folder / "spec.json")) from error
    results = folder.resolve().parent.parent
    entry, plan = _entry(results / "lock.json", spec.run_id)
    return Found(
        spec=spec,
        scenario=entry.get("scenario") or (match["scenario"] if match else folder.name),
        repetition=entry.get("repetition") or (int(match["repetition"]) if match else 1),
        study=plan.get("study", results.name),
        stack=plan.get("stack"),
        profile=plan.get("profile"),
        experiment=entry.get("experiment"),
        factors=entry.get("factors"),
        folder=folder,
        results=results,
    )


def _entry(lock: Path, run_id: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the entry of a run in a lock, and the lock; nothing if the lock is unreadable or has no such run."""
    try:
        plan = json.loads(lock.read_text(encoding="ascii"))
        entry = next((run for run in plan["runs"] if run["run_id"] == run_id), None)
    except (OSError, ValueError, KeyError, TypeError):
        return {}, {}
    return (entry, plan) if entry else ({}, {"study": plan.get("study")})


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise RecordError(f"the record cannot be read: {error}", where=str(path)) from error


def _in_evidence(wanted: str) -> list[Found]:
    """Return the runs of the evidence whose id begins so, each from the newest baseline that has it."""
    order = [baseline.name for baseline in read_baselines(repository_root() / FOLDER)]
    found: dict[str, Found] = {}
    for folder in every_study():
        for place, row in sorted(_rows(folder, wanted), key=lambda one: order.index(one[0].baseline)):
            planned = Planned(folder.assuming(row.assuming).study, place.stack, place.profile)
            run = planned.run(row.scenario, row.repetition)
            if run is not None:
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


def _rows(folder: StudyFolder, wanted: str) -> Iterable[tuple[Place, Row]]:
    """Yield the rows of a study with such an id; only lines with the digits are parsed."""
    if len(wanted) < SHORTEST:
        return
    for path in (folder.path / EVIDENCE).rglob(f"*{SUFFIX}"):
        for line in path.read_text(encoding="ascii").splitlines()[1:]:
            if f'"run":"{wanted}' in line or f'"spec":"{wanted}' in line:
                baseline, stack, profile, _ = path.relative_to(folder.path / EVIDENCE).parts
                yield Place(baseline, stack, profile, path.stem), Row.read(read_line(line))
