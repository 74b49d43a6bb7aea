# SPDX-License-Identifier: Apache-2.0
"""The verb ``crosscheck``: the study `_crosscheck` on several backends, in one results folder under one lock."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import open_backend, require_backend
from longfat.errors import RigError, StudyError
from longfat.events import EventSink
from longfat.execute.results import Results, open_results
from longfat.execute.study import execute
from longfat.plan import Plan
from longfat.plan.lockfile import write_lock
from longfat.studies import StudyFolder
from longfat.verbs.conclude import EVERYTHING, Show, conclude
from longfat.verbs.listening import listen, stage
from longfat.verbs.places import repository_root
from longfat.verbs.study import Choices, find_study, kernel_settings, resolve

STUDY = "_crosscheck"


def crosscheck(backends: Sequence[str], given: Path | None, console: Console, show: Show = EVERYTHING) -> bool:
    """Whether all runs are valid and the backends agree on every claim.

    Each does the experiments that it can. Without ``backends`` those that the study names are taken, as far as they
    work here. Raises StudyError on fewer than two backends, RigError when one that was asked for cannot work.
    """
    folder = find_study(STUDY)
    folder.check()
    chosen = tuple(dict.fromkeys(backends)) or folder.header.backends
    for name in chosen:
        require_backend(name)
    target = given or repository_root() / "results" / STUDY
    with open_results(target) as results, listen(results, console) as events:
        plans = [plan for name in chosen if (plan := _executed(name, bool(backends), folder, results, events))]
        if len(plans) < 2:
            raise StudyError(f"a cross-check needs two backends or more, {len(plans)} can work", where="--backends")
        write_lock(together(plans), results.lock)
    valid, verdicts = conclude(folder, target, console, show)
    return valid and all(verdict.verdict == "reproduced" for verdict in verdicts)


def together(plans: Sequence[Plan]) -> Plan:
    """One plan with the runs of several, each with its backend's pins; its own are the first's, but for the name."""
    first = plans[0]
    names = "+".join(plan.pins["backend"] for plan in plans)
    kernels = {digest: source for plan in plans for digest, source in plan.kernels.items()}
    runs = tuple(run for plan in plans for run in plan.runs)
    return dataclasses.replace(first, pins={**first.pins, "backend": names}, runs=runs, kernels=kernels)


def _executed(name: str, asked: bool, folder: StudyFolder, results: Results, events: EventSink) -> Plan | None:
    """The plan of what a backend can do, executed; None where it can do nothing."""
    stage(events, f"preparing backend {name}")
    backend = open_backend(name, kernel_settings(name, folder.header.stack), say=lambda text: stage(events, text))
    if reasons := backend.capabilities().reasons:
        if asked:
            raise RigError(f"backend {name!r} cannot work here: " + "; ".join(reasons))
        stage(events, f"{name} is left out: {'; '.join(reasons)}")
        return None
    possible, refused = experiments(backend, folder)
    for experiment, reason in refused.items():
        stage(events, f"{name}: experiment {experiment} is left out: {reason}")
    if not possible:
        return None
    plan = resolve(folder, Choices("paper", possible), backend.pins())
    execute(plan.runs, backend, results, jobs=1, events=events)
    return plan


def experiments(backend: Backend, folder: StudyFolder) -> tuple[tuple[str, ...], dict[str, str]]:
    """Ids of the experiments that the backend can do, and of the others with the first reason why not."""
    plan = resolve(folder, Choices("paper"), backend.pins())
    refused: dict[str, str] = {}
    for run in plan.runs:
        if reasons := backend.refuses(run.spec):
            refused.setdefault(run.experiment, reasons[0])
    known = sorted({run.experiment for run in plan.runs})
    return tuple(experiment for experiment in known if experiment not in refused), refused
