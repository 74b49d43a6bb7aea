# SPDX-License-Identifier: Apache-2.0
"""Which experiments an artifact rests on: those of the figures that show it and of the claims about it.

Owns the derivation, so that a manifest need not list what figures.yaml and claims.yaml say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from longfat.errors import Problem, StudyError
from longfat.figures.document import read_figures
from longfat.manifest.names import unknown
from longfat.manifest.study import Study
from longfat.relations.bind import experiments_of
from longfat.relations.claims import read_claims


def experiments_by_artifact(study_dir: Path, study: Study) -> dict[str, tuple[str, ...]]:
    """The experiments of every artifact, in the order of figures.yaml, then claims.yaml. Raises StudyError."""
    found: dict[str, dict[str, None]] = {}
    for artifact, experiments in _pairs(study_dir, study):
        found.setdefault(artifact, {}).update(dict.fromkeys(experiments))
    return {artifact: tuple(experiments) for artifact, experiments in found.items()}


def experiments_named(study_dir: Path, study: Study, only: Sequence[str]) -> tuple[str, ...]:
    """The experiments that ``only`` names, by their own ids or by those of artifacts.

    Raises StudyError with every name that is neither.
    """
    own = [experiment.id for experiment in study.experiments]
    if all(name in own for name in only):
        return tuple(only)
    artifacts = experiments_by_artifact(study_dir, study)
    known = [*artifacts, *own]
    problems = [
        Problem("--only", None, "", *unknown("artifact or experiment", name, known))
        for name in only
        if name not in known
    ]
    problems += [
        Problem("--only", None, "", f"{name!r} rests on no experiment", "it is drawn without a run")
        for name in only
        if name not in own and not artifacts.get(name, own)
    ]
    if problems:
        raise StudyError("the plan cannot be made", problems=tuple(problems))
    chosen = {experiment for name in only for experiment in ([name] if name in own else artifacts[name])}
    return tuple(name for name in own if name in chosen)


def _pairs(study_dir: Path, study: Study) -> Iterator[tuple[str, Iterable[str]]]:
    for figure in read_figures(study_dir, study).figures:
        experiments = figure.experiments(study)
        yield figure.artifact, experiments
        if figure.part_of:
            yield figure.part_of, experiments
    for claim in read_claims(study_dir, study):
        for artifact in (claim.artifact, *claim.also):
            if artifact:
                yield artifact, [name for relation in claim.relations for name in experiments_of(relation, study)]
