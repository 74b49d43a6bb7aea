# SPDX-License-Identifier: Apache-2.0
"""``kernel-check``: compare the measurements of the stacks' kernels with the newest baseline of the evidence."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import Annotated

from rich.console import Console
from typer import Option

from longfat.backends.protocol import Backend
from longfat.backends.registry import DEFAULT_BACKEND, open_backend
from longfat.cli.console import Output, say
from longfat.cli.options import Jobs
from longfat.cli.paths import repository_root
from longfat.cli.run import execute_runs
from longfat.cli.study import Choices, find_study, kernel_settings, known_baselines, resolve
from longfat.evidence.baselines import FOLDER, Combination, Digests
from longfat.execute.record.bundle import measured_digest
from longfat.execute.record.verify import find_records
from longfat.execute.results import open_results
from longfat.plan.model import PlannedRun
from longfat.study.catalog.kernels import DEFAULT_KERNEL, STACK_KERNELS
from longfat.study.catalog.stacks import STACKS
from longfat.system.errors import RigError, StudyError

STUDY = "_canary"
ERA = ("era",)
"""The experiments of the study that run under the era's stack; the others run under the study's own stack."""


def kernel_check(
    out: Output,
    study: Annotated[str | None, Option("--study", help="check the kernels that this study changes instead")] = None,
    jobs: Jobs = None,
) -> bool:
    """Check in two minutes whether the kernels of the stacks behave as in the newest baseline of the evidence."""
    settings = kernel_settings(DEFAULT_BACKEND, *STACKS)
    if study is None:
        return check_kernels(open_backend(DEFAULT_BACKEND, settings, say=out.print), jobs, out)
    changed = find_study(study).own_kernels()
    if not changed:
        raise StudyError("no experiment of this study uses a kernel that the study changes", where=study)
    if other := sorted({kernel.base for kernel in changed.values()} - {*STACK_KERNELS}):
        raise StudyError(f"the check has no runs for {', '.join(other)}", where=study, hint=f"base: {DEFAULT_KERNEL}")
    same = True
    for name, kernel in changed.items():
        say(out, f"{name}, instead of {kernel.base}:")
        backend = open_backend(DEFAULT_BACKEND, {**settings, "own": {kernel.base: kernel}}, say=out.print)
        same &= check_kernels(backend, jobs, out)
    return same


def check_kernels(backend: Backend, jobs: int | None, out: Output) -> bool:
    """Return whether all digests equal those in the newest baseline. Raises RigError without a baseline."""
    known = known_baselines()
    if not known:
        hint = "`./just evidence add STUDY` begins the first baseline"
        raise RigError("no baseline to compare with", where=str(FOLDER), hint=hint)
    verdict = known[-1].compare(measure(backend, jobs, out))
    say(out, f"kernel check, baseline {known[-1].name}: {verdict}")
    out.result(**asdict(verdict))
    return not verdict.differing


def combinations(backend: Backend) -> tuple[Combination, ...]:
    """Return this machine's combinations, one for each kernel of the stacks."""
    pins, digests = backend.pins(), backend.capabilities().kernels
    kernels = (digests[name] for name in STACK_KERNELS if name in digests)
    return tuple(dict.fromkeys(Combination.of({**pins, "kernel": digest}) for digest in kernels))


def checks(backend: Backend) -> tuple[PlannedRun, ...]:
    """Return every run of the study once, with the backend's pins and the kernel of its stack."""
    folder = find_study(STUDY)
    pins, kernels = backend.pins(), backend.capabilities().kernels
    modern = resolve(folder, Choices("paper"), pins, kernels).runs
    era = resolve(folder, Choices("paper", ERA, "linux-2.4"), pins, kernels).runs
    return (*(run for run in modern if run.experiment not in ERA), *era)


def measure(backend: Backend, jobs: int | None, console: Console) -> Digests:
    """Execute every run of the check; return the digest of its measurements by its name, "" for a failed run.

    The raw results stay in ``results/kernel-check``.
    """
    runs = checks(backend)
    with open_results(repository_root() / "results" / "kernel-check") as results:
        shutil.rmtree(results.raw)
        results.raw.mkdir()
        execute_runs(runs, backend, results, jobs, console)
        records = find_records(results.raw)
    good = {run_id: record.folder for run_id, record in records.items() if record.status == "ok"}
    return {run.scenario: measured_digest(good[run.run_id]) if run.run_id in good else "" for run in runs}
