# SPDX-License-Identifier: Apache-2.0
"""Studies by name, and their plans. Must write nothing and build nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from longfat.backends.protocol import Feature
from longfat.backends.registry import MODULES, traits_of
from longfat.cli.paths import homes, study_path
from longfat.data.study_folder import CLAIMS, MANIFEST, StudyFolder, studies_in
from longfat.evidence.baselines import FOLDER, Baseline, read_baselines
from longfat.plan import Plan, build_plan
from longfat.plan.stated import without_effect
from longfat.study.catalog.stacks import STACKS, kernel_of_stack
from longfat.study.schema.names import Finding, require, unknown
from longfat.system.errors import StudyError, all_of


@dataclass(frozen=True)
class Choices:
    """The part of a study that the command line selects. ``only`` has ids of artifacts or experiments, or none."""

    profile: str = "quick"
    only: tuple[str, ...] = ()
    stack: str | None = None
    seed: int | None = None


def ids(text: str) -> tuple[str, ...]:
    """Split a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def chosen(
    name: str, profile: str, only: str, stack: str | None, seed: int | None = None
) -> tuple[StudyFolder, Choices]:
    """Return a study and the selected part of it. Raises StudyError."""
    choices = Choices(profile, ids(only), stack, seed)

    def study() -> StudyFolder:
        folder = find_study(name)
        folder.experiments_named(choices.only)
        return folder

    folder, _ = all_of(study, partial(require_stack, stack))
    return folder, choices


def require_stack(stack: str | None) -> None:
    """Raise StudyError, with the allowed names, on an unknown stack."""
    if stack is not None:
        require("stack", stack, STACKS, "--stack")


def known_baselines() -> list[Baseline]:
    """Return the baselines of the repository, the oldest first."""
    return [baseline for home in homes() for baseline in read_baselines(home / FOLDER)]


def every_study() -> list[StudyFolder]:
    """Return the studies under ``experiments/``, sorted by name."""
    return [study for home in homes() for study in studies_in(home / "experiments")]


def find_study(name: str | StudyFolder) -> StudyFolder:
    """Return a study, given its name under ``experiments/`` or the path of its folder or manifest.

    Raises StudyError with the nearest name for an unknown one.
    """
    return name if isinstance(name, StudyFolder) else StudyFolder(study_path(name))


def job_count(jobs: int | None) -> int:
    """Return the number of runs at a time: as given, else the number of CPUs that this process may use."""
    return jobs or len(os.sched_getaffinity(0))


def kernel_settings(backend: str, *stacks: str) -> dict[str, Any]:
    """Return the settings that open a backend with the kernels of stacks; none for a backend without named kernels."""
    named = Feature.KERNELS in traits_of(backend).can
    return {"kernels": tuple(dict.fromkeys(map(kernel_of_stack, stacks)))} if named else {}


def whole_instead(folder: StudyFolder, profile: str) -> str | None:
    """Return a sentence if a profile that should be small is the whole study, because the study does not define it."""
    if profile not in ("smoke", "steady") or profile in folder.header.profiles.model_fields_set:
        return None
    return f"the study defines no profile {profile!r}, so all of it is taken"


def resolve(
    folder: StudyFolder, choices: Choices, pins: dict[str, str], kernels: Mapping[str, str] = MappingProxyType({})
) -> Plan:
    """Return the plan of a study for a backend with these pins and kernels. Raises StudyError."""
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
    """Raise StudyError with every key of the manifest that changes no run, and every unknown backend.

    A part of a study, or other values of unknowns, may have keys without effect.
    """
    if folder.only or folder.given:
        return
    wrong = [name for name in folder.header.backends if name not in MODULES]
    findings = [Finding(("backends",), *unknown("backend", name, sorted(MODULES))) for name in wrong]
    if problems := tuple(map(folder.problem, (*findings, *without_effect(folder.study)))):
        raise StudyError("some keys of the manifest have no effect", problems=problems)
