# SPDX-License-Identifier: Apache-2.0
"""Finds one run by the beginning of its id: in the results folders, else in the evidence that is committed.

Owns what a user may call a run by. Reads of the others no more than their names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.errors import RecordError, StudyError
from longfat.evidence.epochs import FOLDER, read_epochs
from longfat.evidence.planned import Planned
from longfat.evidence.rows import Row, read_line
from longfat.evidence.store import EVIDENCE, SUFFIX, Place
from longfat.plan import PlannedRun
from longfat.runspec import RunSpec
from longfat.studies import StudyFolder
from longfat.verbs.places import repository_root
from longfat.verbs.study import every_study

SHORTEST = 4  # digits of an id that may name a run
AGAIN, PCAP = "again", "pcap"  # below results/, what was made of runs to be compared with them: never meant itself
SHOWN = 10  # candidates that a message names
_FOLDER = re.compile(r"(?P<scenario>.+)\.r(?P<repetition>\d{2,})\.(?P<id8>[0-9a-f]{8})")


@dataclass(frozen=True)
class Found:
    """A run that was found. ``folder`` is its record and ``row`` its evidence, each None where it has none.

    ``results`` is the folder that the record is in, ``study`` the name that the results or the evidence are of.
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
        """For people: scenario, repetition and the beginning of the id."""
        return f"{self.scenario}.r{self.repetition:02d}.{self.spec.run_id[:8]}"

    @property
    def backend(self) -> str:
        """Where it was run."""
        return self.spec.pins.get("backend", DEFAULT_BACKEND)

    def planned(self, spec: RunSpec) -> PlannedRun:
        """The same run as an entry of a plan, with what it is to be executed with now."""
        experiment = self.experiment or self.scenario
        return PlannedRun(spec.run_id, self.scenario, experiment, dict(self.factors or {}), self.repetition, spec)


def find_run(text: str, given: Path | None = None) -> Found:
    """The only run whose id begins with ``text``, or whose folder that is, or is called so.

    It is looked for in the results folder ``given``, else in all below ``results/`` and then in the evidence. Raises
    StudyError when there is none, or more than one.
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
        raise StudyError(f"no run is called {text!r}", hint=hint)
    names = sorted(folders) or sorted(one.name for one in found)
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise StudyError(
            f"{len(names)} runs are called {text!r}: {', '.join(names[:SHOWN])}{more}", hint="give more of it"
        )
    where = given or f"{repository_root() / 'results'} and the evidence"
    raise StudyError(
        f"no run has an id that begins with {text!r}",
        where=str(where),
        hint="`longfat plan STUDY` has none; `longfat run STUDY` makes them",
    )


def run_names(incomplete: str) -> list[str]:
    """The short ids of recorded runs that begin so, for a shell's completion."""
    return sorted({_id(path) for path in _run_folders(None) if _id(path).startswith(incomplete)})


def _run_folders(given: Path | None) -> Iterator[Path]:
    """The committed folders of runs."""
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
    """Raises RecordError when it cannot be read."""
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
    """What the lock says of a run, and of all; nothing where it has been replaced by another, or cannot be read."""
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
    """The runs of the evidence that have such an id, by the newest epoch of each study."""
    order = [epoch.name for epoch in read_epochs(repository_root() / FOLDER)]
    found: dict[str, Found] = {}
    for folder in every_study():
        for place, row in sorted(_rows(folder, wanted), key=lambda one: order.index(one[0].epoch)):
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
    """The rows of a study that an id begins so in; only lines that have the digits are read."""
    if len(wanted) < SHORTEST:
        return
    for path in (folder.path / EVIDENCE).rglob(f"*{SUFFIX}"):
        for line in path.read_text(encoding="ascii").splitlines()[1:]:
            if f'"run":"{wanted}' in line or f'"spec":"{wanted}' in line:
                epoch, stack, profile, _ = path.relative_to(folder.path / EVIDENCE).parts
                yield Place(epoch, stack, profile, path.stem), Row.read(read_line(line))
