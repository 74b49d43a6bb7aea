# SPDX-License-Identifier: Apache-2.0
"""Comparison of results with committed results, byte for byte.

Owns ``experiments/STUDY/reference/*.json``: one file for each combination of kernel, image, guest code and lock,
because only equal inputs give equal results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from longfat.data.study_folder import REFERENCE, StudyFolder
from longfat.dataset.build import dataset_digests
from longfat.dataset.columns import SCHEMAS
from longfat.dataset.load import load_dataset
from longfat.evidence.collect import makes_evidence
from longfat.execute.record.bundle import run_folder_name
from longfat.figures.drawing import check_figures, drawn
from longfat.plan.lockfile import read_lock
from longfat.relations.judge import read_verdicts
from longfat.system.checksums import verify_checksums
from longfat.system.errors import RigError, StudyError
from longfat.system.files import write_whole

KEYS = ("backend", "kernel", "image", "code", "lock")
FORMAT = 2


@dataclass(frozen=True)
class ReferenceMatch:
    """The outcome of a comparison, with lines for the user."""

    status: Literal["identical", "differs", "no_reference"]
    lines: tuple[str, ...]


def compare(results: Path, folder: StudyFolder) -> ReferenceMatch:
    """Compare dataset and verdicts with the reference of the same inputs, or else name the differing inputs.

    Raises RigError or RecordError for unusable results, StudyError for a damaged reference.
    """
    found = _facts(results, folder)
    references = _references(folder)
    if not references:
        return ReferenceMatch("no_reference", ("the study has no reference yet",))
    equal = [[key for key in KEYS if one["key"][key] == found["key"][key]] for one in references]
    alike = [all(one.get(name) == found[name] for name in ("profile", "stack")) for one in references]
    best = max(range(len(references)), key=lambda one: (len(equal[one]) == len(KEYS), alike[one], len(equal[one])))
    nearest = references[best]
    before, now = nearest["verdicts"], found["verdicts"]
    verdicts = [
        f"claim {claim} is {now.get(claim, 'absent')}, the reference has {before.get(claim, 'absent')}"
        for claim in sorted({*before, *now})
        if now.get(claim) != before.get(claim)
    ]
    if len(equal[best]) == len(KEYS):
        tables = [
            f"table {name} is {found['tables'].get(name, 'missing')[:12]}, the reference has {digest[:12]}"
            for name, digest in sorted(nearest["tables"].items())
            if name in SCHEMAS and found["tables"].get(name) != digest  # an older dataset had more tables
        ]
        if tables or verdicts:
            return ReferenceMatch("differs", (*tables, *verdicts))
        return ReferenceMatch("identical", (f"dataset {found['dataset'][:12]} and all verdicts match the reference",))
    lines = ["no reference has these inputs; compared with the nearest reference:"]
    for key in (key for key in KEYS if key not in equal[best]):
        lines.append(f"{key} is {found['key'][key][:12]}, the reference has {nearest['key'][key][:12]}")
    if alike[best]:  # the ids of runs depend on their inputs, so tables cannot be equal
        lines += verdicts or ["every verdict is the same"]
    return ReferenceMatch("no_reference", tuple(lines))


def other_verdicts(folder: StudyFolder, backend: str) -> dict[str, Mapping[str, str]]:
    """Return the verdicts by claim of the references of other backends, by program and profile."""
    others = [one for one in _references(folder) if one["key"]["backend"] != backend]
    return {f"{one['key']['kernel']}, {one['profile']}": one["verdicts"] for one in others}


def write_reference(results: Path, folder: StudyFolder, pace: Mapping[str, float] | None = None) -> Path:
    """Make the results the reference of their inputs; return the file.

    ``pace`` has the duration of runs relative to the plan's model, by experiment, for the estimates of later plans.
    For a backend whose runs make no evidence, the reference also has the digest of each run.

    Raises StudyError unless every run of the lock is valid, RigError if results cannot be read or the file written.
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
    name = hashlib.sha256(json.dumps(facts["key"], sort_keys=True).encode()).hexdigest()[:16]
    path = folder.path / REFERENCE / f"{name}.json"
    try:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, json.dumps(facts, sort_keys=True, indent=1) + "\n")
    except OSError as error:
        raise RigError(f"cannot write the reference: {error}", where=str(path)) from error
    return path


def inputs_of(results: Path) -> dict[str, str]:
    """Return the digests of the inputs of results: backend, kernel, image, guest code and lock."""
    pins = read_lock(results / "lock.json").pins
    lock = hashlib.sha256((results / "lock.json").read_bytes()).hexdigest()
    return {**{key: pins.get(key, "none") for key in KEYS}, "lock": lock}


def _facts(results: Path, folder: StudyFolder) -> dict[str, Any]:
    verify_checksums(results, "dataset")
    plan = read_lock(results / "lock.json")
    tables = dataset_digests(results)
    exclusions = (results / "dataset" / "exclusions.csv").read_text(encoding="utf-8").splitlines()
    return {
        "format": FORMAT,
        "key": inputs_of(results),
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
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="ascii"))
        texts = [*(data["key"][name] for name in KEYS), *data["tables"].values(), *data["verdicts"].values()]
        if data["format"] != FORMAT or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"not a reference of format {FORMAT}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StudyError(f"the reference cannot be read: {error!r}", where=str(path)) from error
    return data
