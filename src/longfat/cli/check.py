# SPDX-License-Identifier: Apache-2.0
"""``check``: name every problem of a study."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from longfat.cli.console import WARNING, Output, say
from longfat.cli.options import Study
from longfat.cli.study import find_study, require_effects
from longfat.data.study_folder import StudyFolder
from longfat.relations.claim_lint import without_oracle
from longfat.relations.claims import counted_claims
from longfat.system.errors import Problem, StudyError
from longfat.system.trust import agree


def check(
    out: Output,
    study: Study,
    trust: Annotated[bool, typer.Option("--trust", help="let the study's programs run with your rights")] = False,
) -> bool | int:
    """Check manifest, claims, headlines and figures of a study, and name every problem."""
    folder = find_study(study)
    if trust:
        for program in folder.programs:
            agree(program)
    problems = _problems(folder, raised=not out.as_json)
    warnings = () if problems else folder.warnings
    out.result(
        problems=[dataclasses.asdict(one) for one in problems], warnings=[dataclasses.asdict(one) for one in warnings]
    )
    if problems:
        return StudyError.exit_status
    summary = _summary(folder)
    say(out, f"{summary}, no problems" + (f", {_count(len(warnings), 'warning')}" if warnings else ""))
    for warning in warnings:
        say(out, f"warning: {warning}", WARNING)
    return True


def _problems(folder: StudyFolder, raised: bool) -> tuple[Problem, ...]:
    """Return the problems of a study; if ``raised``, raise StudyError with them instead."""
    try:
        folder.check()
        require_effects(folder)
    except StudyError as error:
        if raised:
            raise
        return error.problems or (Problem(error.where or "", None, "", error.message, error.hint),)
    return ()


def _summary(folder: StudyFolder) -> str:
    study = folder.study
    claims = counted_claims(len(folder.claims), study.header)
    silent = len(without_oracle(folder.claims, study)) if study.header.paper else 0
    claims += f" ({silent} of these without the paper's own numbers)" if silent else ""
    experiments = _count(len(study.experiments), "experiment")
    return f"{folder.name}: {experiments}, {claims}, {_count(len(folder.figures.figures), 'figure')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
