# SPDX-License-Identifier: Apache-2.0
"""The verb ``crosscheck``: runs one study on several backends and writes where they agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import open_backend, require_backend
from longfat.crosscheck.measure import Compared, compare
from longfat.crosscheck.report import write_report
from longfat.dataset.build import build_dataset
from longfat.dataset.load import Dataset, load_dataset
from longfat.errors import RigError, StudyError
from longfat.execute.results import open_results
from longfat.verbs.run import Machine, listen, run_study
from longfat.verbs.study import Choices, find_study, repository_root, resolve

STUDY = "_crosscheck"
USUAL = ("virtual", "mininet", "ns3")


def crosscheck(backends: Sequence[str], console: Console) -> bool:
    """Whether all backends agree with the first on every number.

    Each does the experiments that it can; what it cannot is told, in the report too. Without ``backends`` the usual
    ones are taken as far as they work here. Raises StudyError on fewer than two backends, RigError when one that was
    asked for cannot work.
    """
    chosen = tuple(dict.fromkeys(backends)) or USUAL
    for name in chosen:
        require_backend(name)
    folder = find_study(STUDY)
    target = repository_root() / "results" / "crosscheck"
    datasets: dict[str, Dataset] = {}
    notes: list[str] = []
    for name in chosen:
        backend = open_backend(name, {}, say=console.print)
        reasons = backend.capabilities().reasons
        if reasons and backends:
            raise RigError(f"backend {name!r} cannot work here: " + "; ".join(reasons))
        if reasons:
            notes.append(f"{name}: left out: {'; '.join(reasons)}")
            continue
        possible, refused = experiments(backend, folder)
        notes += [f"{name}: experiment {experiment} left out: {reason}" for experiment, reason in refused.items()]
        if not possible:
            continue
        console.print(f"backend {name}: {', '.join(possible)}", highlight=False)
        with open_results(target / name) as results, listen(results, console) as events:
            run_study(folder, Choices("paper", possible), Machine(name), results, events)
            counts = build_dataset(results.path)
        datasets[name] = load_dataset(target / name)
        kernel = backend.pins()["kernel"][:40]
        notes.append(
            f"{name}: kernel {kernel}; {counts.ok} runs valid, {counts.invalid} invalid, {counts.failed} failed"
        )
    if len(datasets) < 2:
        raise StudyError("a cross-check needs two backends or more; " + "; ".join(notes), where="--backends")
    compared = compare(datasets)
    write_report(compared, datasets, notes, target)
    _tell(compared, notes, console)
    console.print(f"report: {target / 'README.md'}", soft_wrap=True, markup=False, highlight=False)
    return not any(item.differing for item in compared)


def experiments(backend: Backend, folder: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Ids of the experiments that the backend can do, and of the others with the first reason why not."""
    plan = resolve(folder, Choices("paper"), backend.pins())
    refused: dict[str, str] = {}
    for run in plan.runs:
        if reasons := backend.refuses(run.spec):
            refused.setdefault(run.experiment, reasons[0])
    known = sorted({run.experiment for run in plan.runs})
    return tuple(experiment for experiment in known if experiment not in refused), refused


def _tell(compared: Sequence[Compared], notes: Sequence[str], console: Console) -> None:
    for item in compared:
        means = ", ".join(f"{backend} {mean:.1f}" for backend, mean in item.means.items())
        verdict = f"differing: {', '.join(item.differing)}" if item.differing else "agree"
        text = f"{item.scenario}, {item.quantity.name} ({item.quantity.unit}): {means}: {verdict}"
        console.print(text, soft_wrap=True, markup=False, highlight=False)
    for note in notes:
        console.print(note, soft_wrap=True, markup=False, highlight=False)
