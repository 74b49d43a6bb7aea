# SPDX-License-Identifier: Apache-2.0
"""The verb ``kernel-check``: compare what the kernels of the stacks measure with the committed reference."""

from __future__ import annotations

import shutil
from dataclasses import asdict

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.catalog.kernels import STACK_KERNELS
from longfat.errors import RigError
from longfat.evidence.epochs import Combination
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.kernel_check import REFERENCE, Digests, Reference, read_reference, write_reference
from longfat.plan.model import PlannedRun
from longfat.record.measured import measured_digest
from longfat.record.verify import find_records
from longfat.verbs.listening import listen
from longfat.verbs.places import repository_root
from longfat.verbs.say import print_json, say
from longfat.verbs.study import Choices, find_study, job_count, resolve

STUDY = "_canary"
FORMAT = 1
ERA = ("era",)
"""Experiments of the study that run under the stack of the era; the others run under the study's own."""


def check(backend: Backend, jobs: int | None, console: Console, *, as_json: bool = False) -> bool:
    """Print and return whether every check equals the reference. Raises RigError without a reference."""
    reference = read_reference(repository_root() / REFERENCE)
    verdict = reference.compare(measure(backend, jobs, console))
    say(console, f"kernel check: {verdict}")
    if verdict.differing and (others := reference.other_causes(backend.pins())):
        say(console, f"the reference has another {' and another '.join(others)}, which may also be the cause")
    if as_json:
        print_json({"format": FORMAT, **asdict(verdict)})
    return not verdict.differing


def renew(backend: Backend, jobs: int | None, console: Console) -> None:
    """Make the measurements of the checks the reference.

    Raises RigError if a kernel is not of the pinned release or a check fails.
    """
    path, pins, kernels = repository_root() / REFERENCE, backend.pins(), kernels_of(backend)
    sources = backend.capabilities().sources
    for name, digest in kernels.items():
        source = sources.get(digest)
        if source is None or not source.pinned:
            release = source.version if source else "not one of the project's"
            raise RigError(f"a reference needs kernels of the pinned release, and {name} is {release}")
    digests = measure(backend, jobs, console)
    if failed := [name for name, digest in digests.items() if not digest]:
        raise RigError(f"no reference was made, because checks failed: {', '.join(failed)}")
    others = {name: value for name, value in pins.items() if name != "kernel"}
    write_reference(path, Reference(sources[pins["kernel"]].version, {**others, **kernels}, digests))
    say(console, f"reference: {path}")


def kernels_of(backend: Backend) -> dict[str, str]:
    """Return the digests of the kernels of all stacks, by name."""
    digests = backend.capabilities().kernels
    return {name: digests[name] for name in STACK_KERNELS if name in digests}


def combinations(backend: Backend) -> tuple[Combination, ...]:
    """Return the combinations of kernel, image and code of this machine, one for each kernel of a stack."""
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
    """Execute all checks and return the digests of their measurements by name, empty for a check that failed.

    The raw results remain in ``results/kernel-check``.
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
