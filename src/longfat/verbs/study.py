# SPDX-License-Identifier: Apache-2.0
"""Finds a study, and the verbs that need nothing but its files: ``check`` and ``plan``.

Must write nothing and build nothing.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from longfat.backends.registry import require_backend
from longfat.errors import Problem, StudyError
from longfat.manifest.load import load_study
from longfat.plan import Plan, build_plan
from longfat.plan.estimate import estimate

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


def resolve(folder: Path, choices: Choices, pins: dict[str, str]) -> Plan:
    """Load the study and resolve its plan for a backend with these pins. Raises StudyError."""
    return build_plan(
        load_study(folder / MANIFEST),
        profile=choices.profile,
        stack=choices.stack,
        seed=choices.seed,
        only=choices.only,
        pins=pins,
        manifest_sha256=_digest(folder / MANIFEST),
        claims_sha256=_digest(folder / CLAIMS),
    )


def load_all(folder: Path) -> str:
    """Load manifest, claims and figures, and say what there is of each.

    Raises StudyError with all problems of the manifest, or with all of claims and figures.
    """
    # Claims and figures need numpy, which a plan does not: the import waits until they are asked for.
    from longfat.analysis.claims import load_claims
    from longfat.analysis.figures import FIGURES, load_figures

    study = load_study(folder / MANIFEST)
    claims = figures = 0
    problems: list[Problem] = []
    try:
        claims = len(load_claims(folder / CLAIMS))
    except StudyError as error:
        problems += _problems(error)
    try:
        figures = len(load_figures(folder / FIGURES).figures)
    except StudyError as error:
        problems += _problems(error)
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise StudyError(f"claims and figures have {count}", problems=tuple(problems))
    return f"{study.name}: {len(study.experiments)} experiments, {claims} claims, {figures} figures"


def check(name: str, console: Console) -> bool:
    """Load manifest, claims and figures; raises StudyError with their problems."""
    console.print(f"{load_all(find_study(name))}, no problems", highlight=False)
    return True


def show_plan(name: str, choices: Choices, backend: str, jobs: int | None, console: Console) -> bool:
    """Print how many runs there are and what they will take; no kernel or image is needed for it."""
    require_backend(backend)
    folder = find_study(name)
    plan = resolve(folder, choices, {"backend": backend})
    jobs = job_count(jobs)
    expected = estimate(plan, jobs)
    table = Table("what", "value", title=f"{study_name(folder)}, profile {choices.profile}")
    for what, value in (
        ("runs", str(expected.runs)),
        ("distinct runs", str(expected.distinct_runs)),
        ("scenarios excluded", str(len(plan.excluded))),
        ("experiments", ", ".join(dict.fromkeys(run.experiment for run in plan.runs))),
        (f"estimated time with {jobs} jobs", f"{expected.wall_seconds / 60:.1f} min"),
        ("estimated disk", f"{expected.disk_bytes / 1e6:.0f} MB"),
    ):
        table.add_row(what, value)
    console.print(table)
    for excluded in plan.excluded:
        factors = ", ".join(f"{key}={value}" for key, value in excluded.factors.items())
        console.print(f"excluded: {excluded.experiment} ({factors}): {excluded.reason}", markup=False)
    return True


def _problems(error: StudyError) -> tuple[Problem, ...]:
    return error.problems or (Problem(error.where or "", None, "", error.message, error.hint),)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
