# SPDX-License-Identifier: Apache-2.0
"""``run``: the lock of a study, and the runs that have no valid record."""

from __future__ import annotations

from pathlib import Path

from longfat.backends.registry import DEFAULT_BACKEND, traits_of
from longfat.cli.console import Output, listen
from longfat.cli.options import Backend, Jobs, On, Only, Profile, Results, Seed, Stack, Study
from longfat.cli.outcome import complain
from longfat.cli.study import Choices, chosen
from longfat.cluster.places import read_place
from longfat.execute.results import open_results
from longfat.execute.study import Summary
from longfat.studies import StudyFolder
from longfat.verbs import run as engine
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
) -> int:
    """Write the lock of a study and execute the runs that have no valid record."""
    folder, choices = chosen(study, profile, only, stack, seed)
    summary = engine.run(folder, choices, machine_of(backend, jobs, results, on), out)
    out.result(**vars(summary))
    return status_of(summary)


def machine_of(backend: str, jobs: int | None, results: Path | None, on: str | None) -> Machine:
    """Return the machines that the command line describes: ``on`` is a lab for a backend of real hosts.

    Raises StudyError for an unknown place.
    """
    if traits_of(backend).lab:
        return Machine(backend, jobs, results, lab=on)
    return Machine(backend, jobs, results, on=None if on is None else read_place(on))


def execute_study(folder: StudyFolder, choices: Choices, machine: Machine, place: Path, out: Output) -> Summary:
    """Execute the missing runs of a study."""
    with open_results(place) as results, listen(results, out) as events:
        return run_study(folder, choices, machine, results, events)


def status_of(summary: Summary) -> int:
    """Return the exit status of an execution, and write its reason."""
    if summary.failed:
        complain("some runs failed; `longfat show RUN` prints the reasons")
        return 4
    return 0
