# SPDX-License-Identifier: Apache-2.0
"""``evidence``: values of runs in the repository, added from results or executed for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longfat.cli.console import Output
from longfat.cli.fill import Wanted, fill_studies, seconds_of
from longfat.cli.identify import identify_unknown, print_conditions
from longfat.cli.options import Budget, Jobs, NewBaseline, Profile, Repetitions, Results, Stack, Studies, Study
from longfat.cli.outcome import expect
from longfat.cli.report import require_results
from longfat.cli.rows import add_results, baseline_for, merge_folders, write_findings, write_page
from longfat.cli.study import find_study, ids
from longfat.evidence.collect import combination_of
from longfat.evidence.required_values import build_valid
from longfat.execute.results import open_results
from longfat.plan.lockfile import read_lock
from longfat.system.errors import StudyError

HELP = "Keep the values of runs in the repository, from which everyone can check the verdicts (docs/evidence.md)."
FAILED = "some runs failed; `longfat show RUN` prints the reasons"


def fill(
    out: Output,
    studies: Studies = None,
    repetitions: Repetitions = None,
    profile: Profile = "quick",
    stack: Stack = None,
    budget: Budget = None,
    jobs: Jobs = None,
    new_baseline: NewBaseline = False,
) -> bool:
    """Execute the runs of a profile that the evidence lacks, up to a stated number of repetitions, and add them."""
    if not studies:
        raise StudyError("no study is named", where="STUDY")
    wanted = Wanted(repetitions, seconds_of(budget), profile, stack, jobs=jobs)
    return expect(fill_studies(studies, wanted, out, new_baseline=new_baseline), FAILED)


def add(
    out: Output, study: Study, results: Results = None, jobs: Jobs = None, new_baseline: NewBaseline = False
) -> None:
    """Add the runs of a results folder to the study's evidence."""
    folder = find_study(study)
    with open_results(require_results(folder, results)) as opened:
        build_valid(opened.path, folder)
        baseline = baseline_for(combination_of(read_lock(opened.lock)), jobs, out, new_baseline=new_baseline)
        gained = add_results(opened.path, folder, baseline.name, out)
    write_page(folder)
    write_findings(out)
    out.result(study=folder.name, baseline=baseline.name, gained=gained)


def merge(
    out: Output,
    folders: Annotated[list[Path] | None, typer.Argument(help="checkouts, or studies' folders with evidence")] = None,
) -> None:
    """Merge the evidence of other folders, and write all of it in canonical order, with its pages."""
    out.result(gained=merge_folders(folders or (), out))


def identify(
    out: Output,
    study: Study,
    unknown: Annotated[
        str | None, typer.Argument(help="name of an unknown of the study (default: all, from the evidence alone)")
    ] = None,
    claims: Annotated[str, typer.Option(help="comma-separated ids of the claims whose runs are executed")] = "",
    values: Annotated[str, typer.Option(help="comma-separated values to execute")] = "",
    repetitions: Repetitions = None,
    budget: Budget = None,
    profile: Profile = "quick",
    stack: Stack = None,
    jobs: Jobs = None,
) -> bool:
    """Test claims at values of a setting that the paper does not state, and add the runs to the evidence."""
    if unknown is None:
        print_conditions(study, out)
        return True
    wanted = Wanted(repetitions, seconds_of(budget), profile, stack, jobs=jobs)
    return expect(identify_unknown(study, unknown, ids(claims), ids(values), wanted, out), FAILED)


COMMANDS = (fill, add, merge, identify)
