# SPDX-License-Identifier: Apache-2.0
"""The commands about evidence: to read it, to add to it, and to verify it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longfat.cli_options import (
    EVIDENCE,
    Budget,
    EpochName,
    Grouped,
    Jobs,
    Json,
    Profile,
    Repetitions,
    Results,
    Sample,
    Stack,
    Study,
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
def identify(
    study: Study,
    unknown: Annotated[
        str | None, typer.Argument(help="name of an unknown of the study (default: all, by the evidence alone)")
    ] = None,
    claims: Annotated[str, typer.Option(help="ids of the claims that identify its value, separated by commas")] = "",
    at: Annotated[str, typer.Option(help="values, separated by commas (default: over the whole range)")] = "",
    repetitions: Repetitions = 8,
    budget: Budget = None,
    profile: Profile = "quick",
    stack: Stack = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Test claims at values of a setting that the paper does not state, and add the runs to the evidence."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.fill import Wanted, seconds_of
        from longfat.verbs.identify import identify, known

        wanted = Wanted(repetitions, seconds_of(budget), profile, stack, jobs=jobs)
        if unknown:
            finish(identify(study, unknown, ids(claims), ids(at), wanted, console, as_json=as_json))
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
    repetitions: Repetitions = 8,
    profile: Profile = "quick",
    stack: Stack = None,
    budget: Budget = None,
    jobs: Jobs = None,
    new_epoch: Annotated[
        bool, typer.Option(help="begin a new epoch with this machine's kernel, image and code")
    ] = False,
) -> None:
    """Execute the runs of a profile that the evidence lacks, up to a stated number of repetitions, and add them."""
    with outcome(as_json=False) as console:
        from longfat.verbs.fill import Wanted, fill, seconds_of

        wanted = Wanted(repetitions, seconds_of(budget), profile, stack, jobs=jobs)
        finish(fill(studies, wanted, console, new_epoch=new_epoch))


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
        from longfat.verbs.fill import seconds_of
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
