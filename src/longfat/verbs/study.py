# SPDX-License-Identifier: Apache-2.0
"""Finds, loads and checks a study, and resolves its plan. Must write nothing and build nothing."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from rich.console import Console

from longfat.errors import Problem, StudyError
from longfat.manifest.load import load_study
from longfat.manifest.study import Study
from longfat.manifest.warn import study_warnings
from longfat.plan import Plan, build_plan

MANIFEST = "study.yaml"
CLAIMS = "claims.yaml"


@dataclass(frozen=True)
class Choices:
    """What the command line selects of a study. ``only`` has ids of artifacts or experiments, or none."""

    profile: str = "quick"
    only: tuple[str, ...] = ()
    stack: str | None = None
    seed: int | None = None


def repository_root() -> Path:
    """Where ``experiments/`` and ``results/`` are: ``$LONGFAT_ROOT``, else the current folder."""
    return Path(os.environ.get("LONGFAT_ROOT") or Path.cwd())


def find_study(name: str) -> Path:
    """The folder of a study, given its name under ``experiments/`` or the path of its folder or manifest.

    Raises StudyError with the nearest name when there is none.
    """
    named = repository_root() / "experiments" / name
    given = Path(name)
    for folder in (named, given, given.parent if given.name == MANIFEST else given):
        if (folder / MANIFEST).is_file():
            return folder
    known = sorted(path.parent.name for path in named.parent.glob(f"*/{MANIFEST}"))
    near = difflib.get_close_matches(name, known, n=1)
    raise StudyError(
        f"no study {name!r}; there are {', '.join(known) if known else f'none in {named.parent}'}",
        hint=f"did you mean {near[0]!r}?" if near else f"give a name, or the folder of a {MANIFEST}",
    )


def study_name(folder: Path) -> str:
    """The name that a study's results go by: that of its folder."""
    return folder.resolve().name


def job_count(jobs: int | None) -> int:
    """The number of runs at a time: as given, else the number of CPUs that this process may use."""
    return jobs or len(os.sched_getaffinity(0))


def resolve(
    folder: Path, choices: Choices, pins: dict[str, str], kernels: Mapping[str, str] = MappingProxyType({})
) -> Plan:
    """Load the study and resolve its plan for a backend with these pins, and these kernels. Raises StudyError."""
    study = load_study(folder / MANIFEST)
    return build_plan(
        study,
        profile=choices.profile,
        stack=choices.stack,
        seed=choices.seed,
        only=_experiments(folder, study, choices.only),
        pins=pins,
        kernels=kernels,
        manifest_sha256=_digest(folder / MANIFEST),
        claims_sha256=_digest(folder / CLAIMS),
    )


def _experiments(folder: Path, study: Study, only: tuple[str, ...]) -> tuple[str, ...]:
    if not only:
        return ()
    # Figures and claims need numpy, which a plan does not: the import waits until they are asked for.
    from longfat.figures.artifacts import experiments_named

    return experiments_named(folder, study, only)


def load_all(folder: Path) -> str:
    """Load manifest, claims and figures, and say what there is of each; claims and figures may be absent.

    Raises StudyError with all problems of the manifest, or with all of claims and figures.
    """
    # Claims and figures need numpy, which a plan does not: the import waits until they are asked for.
    from longfat.figures.document import read_figures
    from longfat.relations.claims import counted_claims, read_claims
    from longfat.relations.gates import without_oracle

    study = load_study(folder / MANIFEST)
    claims = figures = silent = 0
    problems: list[Problem] = []
    try:
        known = read_claims(folder, study)
        claims = len(known)
        silent = len(without_oracle(known, study)) if study.header.paper else 0
    except StudyError as error:
        problems += _problems(error)
    try:
        figures = len(read_figures(folder, study).figures)
    except StudyError as error:
        problems += _problems(error)
    if problems:
        raise StudyError(f"claims and figures have {_count(len(problems), 'problem')}", problems=tuple(problems))
    experiments = _count(len(study.experiments), "experiment")
    counted = counted_claims(claims, study.header)
    counted += f" ({silent} of these without the paper's own numbers)" if silent else ""
    return f"{study.name}: {experiments}, {counted}, {_count(figures, 'figure')}"


def check(name: str, console: Console) -> bool:
    """Load manifest, claims and figures, and print what is doubtful; raises StudyError with their problems."""
    folder = find_study(name)
    content = load_all(folder)
    warnings = study_warnings(folder / MANIFEST, load_study(folder / MANIFEST))
    count = f", {_count(len(warnings), 'warning')}" if warnings else ""
    console.print(f"{content}, no problems{count}", highlight=False)
    for warning in warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    return True


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _problems(error: StudyError) -> tuple[Problem, ...]:
    return error.problems or (Problem(error.where or "", None, "", error.message, error.hint),)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
