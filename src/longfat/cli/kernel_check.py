# SPDX-License-Identifier: Apache-2.0
"""``kernel-check``: compare the measurements of the stacks' kernels with the committed reference."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import DEFAULT_BACKEND, open_backend
from longfat.cli.console import Output, listen, say
from longfat.cli.options import Jobs
from longfat.cli.paths import repository_root
from longfat.cli.study import Choices, find_study, job_count, kernel_settings, resolve
from longfat.evidence.baselines import Combination
from longfat.evidence.kernel_check import REFERENCE, Digests, Reference, read_reference, write_reference
from longfat.execute.record.measured import measured_digest
from longfat.execute.record.verify import find_records
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.plan.model import PlannedRun
from longfat.study.catalog.kernels import STACK_KERNELS
from longfat.study.catalog.stacks import STACKS
from longfat.system.errors import RigError

STUDY = "_canary"
ERA = ("era",)
"""The experiments of the study that run under the stack of the era; the others run under the study's own."""


def kernel_check(
    out: Output,
    jobs: Jobs = None,
    renew: Annotated[bool, typer.Option("--renew", help="renew the reference kernels/checks.json")] = False,
) -> bool:
    """Check in a minute whether the kernels of the stacks behave as the kernels of the reference."""
    backend = open_backend(DEFAULT_BACKEND, kernel_settings(DEFAULT_BACKEND, *STACKS), say=out.print)
    if renew:
        renew_reference(backend, jobs, out)
        return True
    return check_kernels(backend, jobs, out)


def check_kernels(backend: Backend, jobs: int | None, out: Output) -> bool:
    """Return whether every run measures the same as in the reference. Raises RigError without a reference."""
    reference = read_reference(repository_root() / REFERENCE)
    verdict = reference.compare(measure(backend, jobs, out))
    say(out, f"kernel check: {verdict}")
    if verdict.differing and (others := reference.other_causes(backend.pins())):
        say(out, f"the reference has another {' and another '.join(others)}, which may also be the cause")
    out.result(**asdict(verdict))
    return not verdict.differing


def renew_reference(backend: Backend, jobs: int | None, console: Console) -> None:
    """Make the present measurements the reference.

    Raises RigError when a kernel is not of the pinned release or a run fails.
    """
    path, pins, kernels = repository_root() / REFERENCE, backend.pins(), kernels_of(backend)
    sources = backend.capabilities().sources
    for name, digest in kernels.items():
        source = sources.get(digest)
        if source is None or not source.pinned:
            release = source.version if source else "none of the project's"
            raise RigError(f"a reference needs kernels of the pinned release, and {name} is {release}")
    digests = measure(backend, jobs, console)
    if failed := [name for name, digest in digests.items() if not digest]:
        raise RigError(f"no reference was made, because checks failed: {', '.join(failed)}")
    version = sources[pins["kernel"]].version
    others = {name: value for name, value in pins.items() if name != "kernel"}
    write_reference(path, Reference(version, {**others, **kernels}, digests))
    say(console, f"reference: {path}")


def kernels_of(backend: Backend) -> dict[str, str]:
    """Return the digests of the kernels of all stacks, by name."""
    digests = backend.capabilities().kernels
    return {name: digests[name] for name in STACK_KERNELS if name in digests}


def combinations(backend: Backend) -> tuple[Combination, ...]:
    """Return the combinations with which this machine executes runs: one for each kernel of the stacks."""
    pins = backend.pins()
    return tuple(dict.fromkeys(Combination.of({**pins, "kernel": digest}) for digest in kernels_of(backend).values()))


def checks(backend: Backend) -> tuple[PlannedRun, ...]:
    """Return every run of the study once, with the backend's pins and the kernel of its stack."""
    folder = find_study(STUDY)
    pins, kernels = backend.pins(), backend.capabilities().kernels
    modern = resolve(folder, Choices("paper"), pins, kernels).runs
    era = resolve(folder, Choices("paper", ERA, "linux-2.4"), pins, kernels).runs
    return (*(run for run in modern if run.experiment not in ERA), *era)


def measure(backend: Backend, jobs: int | None, console: Console) -> Digests:
    """Execute every run of the check; return the digest of its measurements by its name, "" for a failed run.

    Their raw results stay in ``results/kernel-check``.
    """
    runs = checks(backend)
    with open_results(repository_root() / "results" / "kernel-check") as results:
        shutil.rmtree(results.raw)
        results.raw.mkdir()
        with listen(results, console) as events:
            execute(runs, backend, results, jobs=job_count(jobs), events=events)
        records = find_records(results.raw)
    good = {run_id: record.folder for run_id, record in records.items() if record.status == "ok"}
    return {run.scenario: measured_digest(good[run.run_id]) if run.run_id in good else "" for run in runs}
