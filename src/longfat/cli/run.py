# SPDX-License-Identifier: Apache-2.0
"""``run``: the lock of a study, and the runs that have no valid record."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from longfat.backends.registry import DEFAULT_BACKEND, traits_of
from longfat.cli.console import Output, listen
from longfat.cli.options import Backend, Jobs, On, Only, Profile, Results, Seed, Stack, Study
from longfat.cli.outcome import UNFINISHED, complain
from longfat.cli.study import Choices, chosen
from longfat.execute.deadline import seconds_until
from longfat.execute.results import open_results
from longfat.execute.shards import read_shard
from longfat.execute.study import Summary
from longfat.studies import StudyFolder
from longfat.verbs import run as engine
from longfat.verbs.on import run_on
from longfat.verbs.run import Machine, run_study


def run(
    out: Output,
    study: Study,
    only: Only = "",
    profile: Profile = "quick",
    stack: Stack = None,
    seed: Seed = None,
    backend: Backend = DEFAULT_BACKEND,
    jobs: Jobs = None,
    results: Results = None,
    on: On = None,
    shard: Annotated[str | None, typer.Option(help="part of the runs: K/N, or auto in a cluster's array")] = None,
    until: Annotated[str | None, typer.Option(help="length of time such as 45min, or time such as 06:30")] = None,
    store: Annotated[str | None, typer.Option(help="address for a shard's records, s3://bucket/study")] = None,
) -> int:
    """Write the lock of a study and execute the runs that have no valid record."""
    folder, choices = chosen(study, profile, only, stack, seed)
    part = read_shard(shard, os.environ) if shard is not None else None
    until_s = seconds_until(until, datetime.now().astimezone()) if until is not None else None
    machine = machine_of(backend, jobs, results, on, shard=part, until_s=until_s, store=store)
    summary = engine.run(folder, choices, machine, out)
    out.result(**vars(summary))
    return status_of(summary)


def machine_of(backend: str, jobs: int | None, results: Path | None, on: str | None, **more: object) -> Machine:
    """Return the machine that the command line describes: ``on`` is a lab for a backend of real hosts."""
    lab = on if traits_of(backend).lab else None
    return Machine(backend, jobs, results, lab=lab, on=None if lab else on, **more)  # type: ignore[arg-type]


def execute_study(folder: StudyFolder, choices: Choices, machine: Machine, place: Path, out: Output) -> Summary:
    """Execute the missing runs of a study, here or on a cluster."""
    if machine.on:
        return run_on(folder, choices, machine, place, out)
    with open_results(place) as results, listen(results, out) as events:
        return run_study(folder, choices, machine, results, events)


def status_of(summary: Summary) -> int:
    """Return the exit status of an execution, and write its reason."""
    if summary.left:
        complain(f"the time is up; {summary.left} runs are left, and the same command continues")
        return UNFINISHED
    if summary.failed:
        complain("some runs failed; `longfat show RUN` prints the reasons")
        return 4
    return 0
