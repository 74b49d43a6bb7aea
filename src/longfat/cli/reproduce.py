# SPDX-License-Identifier: Apache-2.0
"""``reproduce``: plan, run, dataset, verdicts, figures and report of a study, on one backend or on several."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from longfat.backends.protocol import Backend
from longfat.backends.registry import DEFAULT_BACKEND, open_backend, require_backend
from longfat.cli.console import Output, listen, say, stage
from longfat.cli.options import Backends, Jobs, On, Only, Profile, Results, Stack, Study, Watch
from longfat.cli.outcome import expect, refuse
from longfat.cli.paths import repository_root
from longfat.cli.report import conclude
from longfat.cli.run import execute_study, machine_of, results_path
from longfat.cli.study import Choices, chosen, ids, kernel_settings, known_baselines, resolve
from longfat.cli.verdicts import print_evidence
from longfat.data.study_folder import StudyFolder
from longfat.evidence.judged import evidence_of
from longfat.execute.results import Results as ResultsFolder
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.plan import Plan
from longfat.plan.lockfile import write_lock
from longfat.system.errors import RigError, StudyError, all_of
from longfat.system.events import EventSink


def reproduce(
    out: Output,
    study: Study,
    only: Only = "",
    profile: Profile = "quick",
    stack: Stack = None,
    backend: Backends = None,
    jobs: Jobs = None,
    results: Results = None,
    on: On = None,
    watch: Watch = False,
) -> bool:
    """Run the missing runs of a study, judge its claims, draw its figures and write the report."""
    asked = ids(backend or "")
    (folder, choices), *_ = all_of(
        lambda: chosen(study, profile, only, stack), *(partial(require_backend, name) for name in asked)
    )
    folder.check()  # before hours of runs
    names = tuple(dict.fromkeys(asked or folder.header.backends or (DEFAULT_BACKEND,)))
    if len(names) > 1 and not folder.header.backends:
        hint = f"name one, or write `backends: [{', '.join(names)}]` into study.yaml, which makes them a factor"
        raise StudyError("the study does not compare backends", where="--backend", hint=hint)
    if len(names) > 1:
        refuse({"--watch": watch, "--on": on, "--jobs": jobs}, "several backends take turns, one run at a time")
        return _reproduce_on_several(folder, choices, names, results, out, required=backend is not None)
    if found := evidence_of(folder, known_baselines(), stack=choices.stack):
        say(out, "by the committed evidence, without a run:")
        print_evidence(found, out, claims=False)
    machine = machine_of(names[0], jobs, on)
    place = results_path(folder, results, names[0])
    execute_study(folder, choices, machine, place, out, watched=watch)
    return conclude(folder, place, out).good


def _reproduce_on_several(
    folder: StudyFolder, choices: Choices, names: Sequence[str], given: Path | None, out: Output, *, required: bool
) -> bool:
    """Run a study on several backends under one lock; return whether they agree on every claim.

    Each backend executes the experiments that it can execute. Raises RigError if a ``required`` backend cannot work
    here, and StudyError if fewer than two can.
    """
    place = given or repository_root() / "results" / folder.name
    with open_results(place) as results, listen(results, out) as events:
        plans = [plan for name in names if (plan := _execute_on(name, required, folder, choices, results, events))]
        if len(plans) < 2:
            raise StudyError(f"only {len(plans)} of {len(names)} backends can work here", where="--backend")
        write_lock(merge_plans(plans), results.lock)
    conclusion = conclude(folder, place, out)
    agree = all(verdict.verdict == "reproduced" for verdict in conclusion.verdicts)
    reason = "the backends do not agree everywhere; the report shows where and by how much they differ"
    return expect(agree, reason) and conclusion.good


def merge_plans(plans: Sequence[Plan]) -> Plan:
    """Merge the plans of several backends; each run keeps its pins, and the plan has the pins of the first."""
    first = plans[0]
    names = "+".join(plan.pins["backend"] for plan in plans)
    kernels = {digest: source for plan in plans for digest, source in plan.kernels.items()}
    runs = tuple(run for plan in plans for run in plan.runs)
    return dataclasses.replace(first, pins={**first.pins, "backend": names}, runs=runs, kernels=kernels)


def _execute_on(
    name: str, required: bool, folder: StudyFolder, choices: Choices, results: ResultsFolder, events: EventSink
) -> Plan | None:
    """Execute the experiments that a backend can execute, and return their plan; None if there are none."""
    stage(events, f"preparing backend {name}")
    stack = choices.stack or folder.header.stack
    backend = open_backend(name, kernel_settings(name, stack), say=lambda text: stage(events, text))
    if reasons := backend.capabilities().reasons:
        if required:
            raise RigError(f"backend {name!r} cannot work here: " + "; ".join(reasons))
        stage(events, f"{name} is left out: {'; '.join(reasons)}")
        return None
    possible, refused = _experiments(backend, folder, choices)
    for experiment, reason in refused.items():
        stage(events, f"{name}: experiment {experiment} is left out: {reason}")
    if not possible:
        return None
    plan = resolve(folder, dataclasses.replace(choices, only=possible), backend.pins())
    execute(plan.runs, backend, results, jobs=1, events=events)
    return plan


def _experiments(backend: Backend, folder: StudyFolder, choices: Choices) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the experiments that the backend can execute, and the reason against each of the others."""
    plan = resolve(folder, choices, backend.pins())
    refused = {one.experiment: one.reason for one in plan.excluded}
    for run in plan.runs:
        if reasons := backend.refuses(run.spec):
            refused.setdefault(run.experiment, reasons[0])
    known = sorted({run.experiment for run in plan.runs})
    return tuple(experiment for experiment in known if experiment not in refused), refused
