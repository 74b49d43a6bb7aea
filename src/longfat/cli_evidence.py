# SPDX-License-Identifier: Apache-2.0
"""The commands about evidence: to read it, to add to it, and to verify it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.cli_options import (
    EVIDENCE,
    BackendName,
    Budget,
    EpochName,
    Grouped,
    Jobs,
    Json,
    On,
    Profile,
    Results,
    Sample,
    Stack,
    Study,
    Tasks,
    checked,
    finish,
    ids,
    known_studies,
    outcome,
    verified,
)
from longfat.verbs.places import study_path

evidence = typer.Typer()
store = typer.Typer(
    cls=Grouped,
    help="Keep the results of runs in the repository, and verify them by running them again (docs/evidence.md).",
    no_args_is_help=True,
)
evidence.add_typer(store, name="evidence", rich_help_panel=EVIDENCE)


@evidence.command(rich_help_panel=EVIDENCE)
def verdicts(
    studies: Annotated[
        list[str] | None, typer.Argument(help="studies (default: all)", callback=checked(known_studies))
    ] = None,
    epoch: EpochName = None,
    stack: Stack = None,
    as_json: Json = False,
) -> None:
    """Print every claim's verdict by the committed evidence alone."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.verdicts import verdicts

        finish(verdicts(studies or (), epoch, console, as_json=as_json, stack=stack))


@evidence.command(rich_help_panel=EVIDENCE)
def decide(
    study: Study,
    budget: Budget = None,
    claims: Annotated[str, typer.Option(help="ids of claims, separated by commas (default: all)")] = "",
    profile: Profile = "quick",
    stack: Stack = None,
    backend: BackendName = DEFAULT_BACKEND,
    jobs: Jobs = None,
    on: On = None,
    tasks: Tasks = None,
    as_json: Json = False,
) -> None:
    """Execute the runs that decide a study's open claims most cheaply, and add them to the evidence."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.decide import Wanted, decide, seconds_of

        wanted = Wanted(seconds_of(budget), ids(claims), profile, stack, backend, jobs, None, on, tasks)
        finish(decide(study, wanted, console, as_json=as_json))


@evidence.command(rich_help_panel=EVIDENCE)
def identify(
    study: Study,
    unknown: Annotated[
        str | None, typer.Argument(help="name of an unknown of the study (default: all, by the evidence alone)")
    ] = None,
    on: Annotated[str, typer.Option(help="ids of the claims that identify its value, separated by commas")] = "",
    budget: Budget = None,
    profile: Profile = "quick",
    stack: Stack = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Find the values of an unstated setting for which the paper's claims hold, and add the runs to the evidence."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.decide import Wanted, seconds_of
        from longfat.verbs.identify import identify, known

        wanted = Wanted(seconds_of(budget), ids(on), profile, stack, DEFAULT_BACKEND, jobs)
        if unknown:
            finish(identify(study, unknown, wanted, console, as_json=as_json))
        else:
            finish(known(study, console, as_json=as_json))


@store.command("add")
def evidence_add(
    study: Study,
    results: Results = None,
    jobs: Jobs = None,
    new_epoch: Annotated[
        bool, typer.Option(help="begin a new epoch with the kernel, image and code of the results")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add the runs of a results folder to the study's evidence."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.evidence import add

        finish(add(study, results, jobs, console, new_epoch=new_epoch, as_json=as_json))


@store.command("fill")
def evidence_fill(
    studies: Annotated[list[str], typer.Argument(help="studies", callback=checked(known_studies))],
    repetitions: Annotated[int, typer.Option(min=1, help="least number of repetitions of each scenario")] = 8,
    profile: Profile = "quick",
    stack: Stack = None,
    budget: Annotated[str | None, typer.Option(help="wall time, such as 5min: no batch begins after it")] = None,
    jobs: Jobs = None,
    new_epoch: Annotated[
        bool, typer.Option(help="begin a new epoch with this machine's kernel, image and code")
    ] = False,
) -> None:
    """Execute the runs of a profile that the evidence lacks, up to a stated number of repetitions, and add them."""
    with outcome(as_json=False) as console:
        from longfat.verbs.decide import Wanted, seconds_of
        from longfat.verbs.fill import fill

        wanted = Wanted(seconds_of(budget), (), profile, stack, DEFAULT_BACKEND, jobs)
        finish(fill(studies, repetitions, wanted, console, new_epoch=new_epoch))


@store.command("verify")
def evidence_verify(
    study: Annotated[
        str | None, typer.Argument(help="study (default: all that have evidence)", callback=checked(study_path))
    ] = None,
    sample: Sample = "1%",
    seed: Annotated[int, typer.Option(min=0, help="seed of the sample")] = 1,
    budget: Annotated[
        str | None, typer.Option(help="wall time, such as 5min: what was drawn and does not fit in is left out")
    ] = None,
    jobs: Jobs = None,
    epoch: EpochName = None,
    as_json: Json = False,
) -> None:
    """Run a random sample of the evidence again and compare it to the byte."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.decide import seconds_of
        from longfat.verbs.verify import verify

        seconds = seconds_of(budget)
        verified(verify(study, sample, seed, jobs, console, epoch, budget=seconds, as_json=as_json))


@store.command("merge")
def evidence_merge(
    folders: Annotated[list[Path] | None, typer.Argument(help="checkouts, or studies' folders with evidence")] = None,
    as_json: Json = False,
) -> None:
    """Merge the evidence of other folders, and write all of it in canonical order."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.evidence import merge

        finish(merge(folders or (), console, as_json=as_json))
