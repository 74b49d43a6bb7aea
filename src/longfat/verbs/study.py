# SPDX-License-Identifier: Apache-2.0
"""Finds and checks a study, and resolves its plan. Must write nothing and build nothing."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rich.console import Console

from longfat.backends.protocol import Feature
from longfat.backends.registry import traits_of
from longfat.catalog.stacks import kernel_of_stack
from longfat.errors import Problem, StudyError
from longfat.plan import Plan, build_plan
from longfat.plan.stated import without_effect
from longfat.studies import CLAIMS, MANIFEST, StudyFolder, studies_in
from longfat.verbs.places import repository_root, study_path
from longfat.verbs.say import WARNING, print_json, say

FORMAT = 1


@dataclass(frozen=True)
class Choices:
    """What the command line selects of a study. ``only`` has ids of artifacts or experiments, or none."""

    profile: str = "quick"
    only: tuple[str, ...] = ()
    stack: str | None = None
    seed: int | None = None


def every_study() -> list[StudyFolder]:
    """The studies under ``experiments/``, by name."""
    return studies_in(repository_root() / "experiments")


def find_study(name: str | StudyFolder) -> StudyFolder:
    """A study, given its name under ``experiments/`` or the path of its folder or manifest; one that is found as it is.

    Raises StudyError with the nearest name when there is none.
    """
    return name if isinstance(name, StudyFolder) else StudyFolder(study_path(name))


def job_count(jobs: int | None) -> int:
    """The number of runs at a time: as given, else the number of CPUs that this process may use."""
    return jobs or len(os.sched_getaffinity(0))


def kernel_settings(backend: str, *stacks: str) -> dict[str, Any]:
    """Return the settings that open a backend with the kernels of stacks; none where it has no named kernels."""
    named = Feature.KERNELS in traits_of(backend).can
    return {"kernels": tuple(dict.fromkeys(map(kernel_of_stack, stacks)))} if named else {}


def resolve(
    folder: StudyFolder, choices: Choices, pins: dict[str, str], kernels: Mapping[str, str] = MappingProxyType({})
) -> Plan:
    """The plan of a study for a backend with these pins, and these kernels. Raises StudyError."""
    require_effects(folder)
    return build_plan(
        folder.study,
        profile=choices.profile,
        stack=choices.stack,
        seed=choices.seed,
        only=folder.experiments_named(choices.only),
        pins=pins,
        kernels=kernels,
        manifest_sha256=folder.digest(MANIFEST),
        claims_sha256=folder.digest(CLAIMS),
    )


def require_effects(folder: StudyFolder) -> None:
    """Raise StudyError with every key of the manifest that changes no run.

    Of a part of a study, or under other assumptions, a key may well be idle.
    """
    if folder.only or folder.given:
        return
    if problems := tuple(folder.problem(finding) for finding in without_effect(folder.study)):
        raise StudyError("the study states what has no effect", problems=problems)


def check(name: str, console: Console, *, as_json: bool = False) -> bool:
    """Print what there is of a study, and what of it is doubtful; raises StudyError with all problems.

    As JSON the problems are what is printed, and make it false.
    """
    # Claims and figures need numpy, which a plan does not: the import waits until they are asked for.
    from longfat.relations.claim_lint import without_oracle
    from longfat.relations.claims import counted_claims

    folder = find_study(name)
    if as_json:
        return _check_as_json(folder)
    folder.check()
    require_effects(folder)
    study = folder.study
    experiments = _count(len(study.experiments), "experiment")
    claims = counted_claims(len(folder.claims), study.header)
    silent = len(without_oracle(folder.claims, study)) if study.header.paper else 0
    claims += f" ({silent} of these without the paper's own numbers)" if silent else ""
    figures, count = _count(len(folder.figures.figures), "figure"), ""
    if warnings := folder.warnings:
        count = f", {_count(len(warnings), 'warning')}"
    say(console, f"{folder.name}: {experiments}, {claims}, {figures}, no problems{count}")
    for warning in warnings:
        say(console, f"warning: {warning}", WARNING)
    return True


def _check_as_json(folder: StudyFolder) -> bool:
    problems: tuple[Problem, ...] = ()
    try:
        folder.check()
        require_effects(folder)
    except StudyError as error:
        problems = error.problems or (Problem(error.where or "", None, "", error.message, error.hint),)
    warnings = () if problems else folder.warnings
    found = {"problems": problems, "warnings": warnings}
    print_json({"format": FORMAT, **{key: [dataclasses.asdict(one) for one in of] for key, of in found.items()}})
    return not problems


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
