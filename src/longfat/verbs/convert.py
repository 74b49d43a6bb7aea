# SPDX-License-Identifier: Apache-2.0
"""``convert``: a folder of format 1 becomes one of format 2 with the same runs, claims and figures.

All of it is proved before any of it is written.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from longfat.convert import converted_claims, converted_figures
from longfat.errors import Problem, StudyError
from longfat.files import write_whole
from longfat.manifest.convert import converted, factors_in_use, numbered_anew
from longfat.manifest.load import load_study
from longfat.manifest.profiles import PROFILES
from longfat.manifest.source import read_source
from longfat.manifest.study import Study
from longfat.plan import build_plan
from longfat.studies import CLAIMS, FIGURES, MANIFEST
from longfat.verbs.say import print_json, say

FORMAT = 1
_BESIDE: Mapping[str, Callable[[Path, Study], str]] = {CLAIMS: converted_claims, FIGURES: converted_figures}


def convert(folder: Path, to: Path | None, console: Console, *, as_json: bool = False) -> None:
    """Write what in ``folder`` is of format 1 in format 2, to the folder ``to`` or in its place.

    Raises StudyError with all that is wrong with claims and figures, or where nothing is of format 1.
    """
    manifest = folder / MANIFEST
    beside = [name for name in _BESIDE if _is_format_1(folder / name)]
    texts: dict[str, str] = {}
    if _is_format_1(manifest):
        texts[MANIFEST], study = _converted_study(folder)
    elif beside:
        study = load_study(manifest)
    else:
        raise StudyError("there is no study of format 1", where=str(manifest), hint="format 2 needs no conversion")
    problems: list[Problem] = []
    for name in beside:
        try:
            texts[name] = _BESIDE[name](folder / name, study)
        except StudyError as error:
            if not error.problems:
                raise
            problems += error.problems
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise StudyError(f"nothing is converted: {count}", problems=tuple(problems))
    before = {name: (folder / name).read_text(encoding="utf-8") for name in texts}
    for name, text in texts.items():
        _write((to or folder) / name, text)
    for name, text in texts.items():
        lines = f"{len(before[name].splitlines())} lines become {len(text.splitlines())}"
        points = sum(len(swept.points) for swept in study.experiments)
        same = f"; the runs of all {points} points are the same" if name == MANIFEST else ""
        say(console, f"{(to or folder) / name}: {lines}{same}")
    if as_json:
        print_json({"format": FORMAT, "written": [str((to or folder) / name) for name in texts]})


def _is_format_1(path: Path) -> bool:
    """Whether there is such a file and it says so. Raises StudyError when it cannot be read."""
    if path.name != MANIFEST and not path.exists():
        return False
    data = read_source(path).data
    return isinstance(data, dict) and data.get("format") == 1


def _converted_study(folder: Path) -> tuple[str, Study]:
    """The manifest in format 2, as text and loaded. Raises StudyError where that of format 1 is not sound."""
    path = folder / MANIFEST
    text = path.read_text(encoding="utf-8")
    before = _study(numbered_anew(text), path)
    after_text = converted(text, read_source(path), _kept(folder, before))
    after = _study(after_text, path)
    if differing := _differing(before, after):
        raise AssertionError(f"the converter changes runs of {', '.join(differing)}: please report this study")
    return after_text, after


def _write(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text)
    except OSError as error:
        raise StudyError(f"cannot be written: {error.strerror}", where=str(target)) from error


def _study(text: str, path: Path) -> Study:
    """The study of a text. Raises StudyError that names ``path``, where its lines are."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / MANIFEST
        copy.write_text(text, encoding="utf-8")
        try:
            return load_study(copy)
        except StudyError as error:
            message = str(error).replace(str(copy), str(path))
            raise StudyError(message) from error


def _kept(folder: Path, study: Study) -> dict[str, set[str]]:
    factors = {name for swept in study.experiments for name in swept.factors}
    documents = [read_source(folder / name).data for name in (CLAIMS, FIGURES) if (folder / name).exists()]
    return factors_in_use(documents, factors)


def _differing(before: Study, after: Study) -> list[str]:
    """The profiles of which a run is not the same: by experiment, repetition and number of the point."""
    return [profile for profile in PROFILES if identities(before, profile) != identities(after, profile)]


def identities(study: Study, profile: str) -> dict[str, list[str]]:
    """The run_id of every run of each experiment, by repetition, then in the order of the points."""
    plan = build_plan(study, profile=profile, pins={})
    result: dict[str, list[str]] = {}
    for swept in study.experiments:
        order = {json.dumps(point.factors): number for number, point in enumerate(swept.points)}
        runs = [run for run in plan.runs if run.experiment == swept.id]
        runs.sort(key=lambda run: (run.repetition, order[json.dumps(run.factors)]))
        result[swept.id] = [run.run_id for run in runs]
    return result
