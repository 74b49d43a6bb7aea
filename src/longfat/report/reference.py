# SPDX-License-Identifier: Apache-2.0
"""Whether results are those that were committed before, byte for byte.

Owns ``experiments/STUDY/reference/*.json``: one file for each combination of kernel, image, laboratory code
and lock, because only equal inputs must give equal results. Finds among them the verdicts under another stack.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from longfat.dataset.build import dataset_digests
from longfat.dataset.load import load_dataset
from longfat.errors import RigError, StudyError
from longfat.evidence.collect import makes_evidence
from longfat.figures.drawing import check_figures, drawn
from longfat.files import write_whole
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan
from longfat.record.bundle import run_folder_name
from longfat.relations.judge import read_verdicts
from longfat.seals import check_seal
from longfat.studies import REFERENCE, StudyFolder

KEYS = ("backend", "kernel", "image", "code", "lock")


@dataclass(frozen=True)
class ReferenceMatch:
    """The outcome of a comparison and the lines that explain it to the user."""

    status: Literal["identical", "differs", "no_reference"]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class OtherStack:
    """What the claims of the study came to under another stack, or with a simulator where a kernel is here."""

    stack: str
    profile: str
    backend: str
    verdicts: Mapping[str, str]


@dataclass(frozen=True)
class Committed:
    """What a committed reference says of itself; ``artifacts`` counts the paper's that were drawn with data."""

    profile: str
    stack: str
    backend: str
    artifacts: int | None
    verdicts: Mapping[str, str]


def committed(folder: StudyFolder) -> list[Committed]:
    """The references of a study, by profile, stack and backend; those of old, which do not say these, are not.

    Raises StudyError when a reference file is damaged.
    """
    found = [
        Committed(item["profile"], item["stack"], item["key"]["backend"], item["artifacts"], item["verdicts"])
        for item in _references(folder)
        if item["stack"] is not None
    ]
    return sorted(found, key=lambda one: (one.profile, one.stack, one.backend))


def compare(results: Path, folder: StudyFolder) -> ReferenceMatch:
    """Compare dataset and verdicts with the reference of the same kernel, image, laboratory code and lock.

    Raises RigError or RecordError when results cannot be used, StudyError when a reference file is damaged.
    """
    found = _facts(results, folder)
    references = _references(folder)
    if not references:
        return ReferenceMatch("no_reference", ("the study has no reference yet",))
    for reference in references:
        if reference["key"] == found["key"]:
            lines = _differences(reference, found)
            if lines:
                return ReferenceMatch("differs", tuple(lines))
            digest = found["dataset"][:12]
            return ReferenceMatch("identical", (f"dataset {digest} and all verdicts match the reference",))
    nearest = max(references, key=lambda item: _nearness(item, found["key"], found["profile"], found["stack"]))
    lines = ["no reference for these inputs; against the nearest one"]
    lines += [
        f"{key} is {found['key'][key][:12]}, the reference has {nearest['key'][key][:12]}"
        for key in KEYS
        if nearest["key"][key] != found["key"][key]
    ]
    if (nearest["profile"], nearest["stack"]) == (found["profile"], found["stack"]):
        # Run ids hold what a run was made with, so that no table can be the same.
        lines += _changed_verdicts(nearest, found) or ["and yet every verdict is the same"]
    return ReferenceMatch("no_reference", tuple(lines))


def write_reference(results: Path, folder: StudyFolder, pace: Mapping[str, float] | None = None) -> Path:
    """Make the results the reference of their inputs; give the file.

    ``pace`` has what runs took over the plan's model of them, by experiment: no result, but what later plans go by.
    Of a backend whose runs make no evidence, the digest of each run is kept too, so that a few can be held against it.

    Raises StudyError unless every run of the lock is valid, for only those are worth to be repeated, and RigError
    when results cannot be read or the file cannot be written.
    """
    facts = _facts(results, folder)
    if facts["not_ok"]:
        raise StudyError(
            f"runs that are not ok: {facts['not_ok']}; a reference needs every run",
            hint="see dataset/exclusions.csv",
        )
    check_figures(results, folder.path)
    facts["artifacts"] = folder.catalogue.shown(drawn(results))
    facts["pace"] = dict(pace or {})
    if not makes_evidence(facts["key"]["backend"]):
        runs = load_dataset(results).runs
        facts["runs"] = {run_folder_name(run.scenario, run.repetition, run.run_id): run.measured for run in runs}
    place = folder.path / REFERENCE
    name = hashlib.sha256(json.dumps(facts["key"], sort_keys=True).encode()).hexdigest()[:16]
    path = place / f"{name}.json"
    try:
        place.mkdir(exist_ok=True)
        write_whole(path, json.dumps(facts, sort_keys=True, indent=1) + "\n")
    except OSError as error:
        raise RigError(f"cannot write the reference: {error}", where=str(path)) from error
    return path


def other_stack(results: Path, folder: StudyFolder, plan: Plan) -> OtherStack | None:
    """The verdicts of the reference of another stack: of the same profile and nearest inputs, or None.

    A simulator's count as another's than a kernel's, whatever stack it was told.

    Raises StudyError when a reference file is damaged.
    """
    key = provenance(results)

    def another(reference: dict[str, Any]) -> bool:
        return reference["stack"] != plan.stack or _simulated(reference["key"]) != _simulated(key)

    others = [item for item in _references(folder) if item["stack"] is not None and another(item)]
    if not others:
        return None
    nearest = max(others, key=lambda item: _nearness(item, key, plan.profile, item["stack"]))
    return OtherStack(nearest["stack"], nearest["profile"], nearest["key"]["backend"], nearest["verdicts"])


def _nearness(reference: dict[str, Any], key: Mapping[str, str], profile: str, stack: str | None) -> tuple[bool, int]:
    """How well a reference can stand for results of these inputs: the same settings count first."""
    settings = (reference["profile"], reference["stack"]) == (profile, stack)
    return settings, sum(reference["key"][name] == key[name] for name in KEYS)


def _simulated(key: Mapping[str, str]) -> bool:
    """Whether a simulator stands in the kernel's place."""
    return key["kernel"].startswith("ns-")


def provenance(results: Path) -> dict[str, str]:
    """The digests that results depend on: backend, kernel, image, laboratory code and lock."""
    pins = read_lock(results / "lock.json").pins
    lock = hashlib.sha256((results / "lock.json").read_bytes()).hexdigest()
    return {**{key: pins.get(key, "none") for key in KEYS}, "lock": lock}


def _facts(results: Path, folder: StudyFolder) -> dict[str, Any]:
    check_seal(results, "dataset")
    key = provenance(results)
    plan = read_lock(results / "lock.json")
    tables = dataset_digests(results)
    exclusions = (results / "dataset" / "exclusions.csv").read_text(encoding="utf-8").splitlines()
    return {
        "format": 1,
        "key": key,
        "profile": plan.profile,
        "stack": plan.stack,
        "tables": tables,
        "dataset": hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest(),
        "not_ok": max(0, len(exclusions) - 1),
        "verdicts": {verdict.claim: verdict.verdict for verdict in read_verdicts(results, folder.path)},
    }


def _references(folder: StudyFolder) -> list[dict[str, Any]]:
    return [_read(path) for path in sorted((folder.path / REFERENCE).glob("*.json"))]


def _read(path: Path) -> dict[str, Any]:
    """A reference; those of old do not say profile, stack and number of artifacts, which are None then."""
    try:
        data = json.loads(path.read_text(encoding="ascii"))
        if data["format"] != 1 or not set(KEYS) <= data["key"].keys():
            raise ValueError("not a reference of format 1")
        if ("profile" in data) != ("stack" in data):
            raise ValueError("profile and stack go together")
        settings = {name: data.get(name) for name in ("profile", "stack")}
        if not all(value is None or isinstance(value, str) for value in settings.values()):
            raise ValueError("profile and stack are no texts")
        artifacts = data.get("artifacts")
        if not (artifacts is None or isinstance(artifacts, int)):
            raise ValueError("artifacts is no number")
        kept = {name: data[name] for name in ("key", "tables", "verdicts")}
        return {**settings, **kept, "artifacts": artifacts}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StudyError(f"the reference cannot be read: {error!r}", where=str(path)) from error


def _differences(reference: dict[str, Any], found: dict[str, Any]) -> list[str]:
    tables = [
        f"table {name} is {found['tables'].get(name, 'missing')[:12]}, the reference has {digest[:12]}"
        for name, digest in sorted(reference["tables"].items())
        if found["tables"].get(name) != digest
    ]
    return tables + _changed_verdicts(reference, found)


def _changed_verdicts(reference: dict[str, Any], found: dict[str, Any]) -> list[str]:
    before, now = reference["verdicts"], found["verdicts"]
    pairs = [(claim, now.get(claim, "absent"), before.get(claim, "absent")) for claim in sorted({*before, *now})]
    return [f"claim {claim} is {new}, the reference has {old}" for claim, new, old in pairs if new != old]
