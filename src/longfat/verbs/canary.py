# SPDX-License-Identifier: Apache-2.0
"""The verb ``canary``: runs the canaries and says whether the kernel behaves as that of the references did."""

from __future__ import annotations

import shutil
from dataclasses import asdict

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.canary import COMMAND, REFERENCE, Digests, Reference, keep, read_reference, write_reference
from longfat.catalog.kernels import STACK_KERNELS
from longfat.errors import RigError
from longfat.evidence.epochs import Combination
from longfat.execute.results import open_results
from longfat.execute.study import execute
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
"""The experiments of the study that run under the stack of the era; the others run under the study's own."""


def canary(backend: Backend, jobs: int | None, console: Console, *, as_json: bool = False) -> bool:
    """Whether every canary behaves as the reference. Raises RigError when there is none."""
    path, pins, kernels = repository_root() / REFERENCE, backend.pins(), kernels_of(backend)
    reference = read_reference(path)
    if reference is None:
        hint = f"`{COMMAND} --reference` makes one, with a kernel of the pinned release"
        raise RigError("there is no reference to compare with", where=str(path), hint=hint)
    digests = measured(backend, jobs, console)
    verdict = reference.compare(digests)
    if all(digests.values()):
        for kernel in kernels.values():
            keep(verdict, reference, {**pins, "kernel": kernel})
    say(console, f"canaries: {verdict}")
    if verdict.differing and (others := reference.other_causes(pins)):
        say(console, f"the reference has another {' and another '.join(others)} too: not all may be the kernel's")
    if as_json:
        print_json({"format": FORMAT, **asdict(verdict)})
    return not verdict.differing


def renew(backend: Backend, jobs: int | None, console: Console) -> None:
    """Make what the canaries measure the reference.

    Raises RigError when a kernel is not of the pinned release or a canary fails.
    """
    path, pins, kernels = repository_root() / REFERENCE, backend.pins(), kernels_of(backend)
    sources = backend.capabilities().sources
    for name, digest in kernels.items():
        source = sources.get(digest)
        if source is None or not source.pinned:
            release = source.version if source else "none of the project's"
            raise RigError(f"a reference is made with kernels of the pinned release, and {name} is {release}")
    digests = measured(backend, jobs, console)
    if failed := [name for name, digest in digests.items() if not digest]:
        raise RigError(f"canaries that failed make no reference: {', '.join(failed)}")
    version = sources[pins["kernel"]].version
    others = {name: value for name, value in pins.items() if name != "kernel"}
    write_reference(path, Reference(version, {**others, **kernels}, digests))
    say(console, f"reference: {path}")


def kernels_of(backend: Backend) -> dict[str, str]:
    """Return the digests of the kernels of all stacks, by name."""
    digests = backend.capabilities().kernels
    return {name: digests[name] for name in STACK_KERNELS if name in digests}


def combinations(backend: Backend) -> tuple[Combination, ...]:
    """Return what runs of the stacks are made with here: one combination for each of their kernels."""
    pins = backend.pins()
    return tuple(dict.fromkeys(Combination.of({**pins, "kernel": digest}) for digest in kernels_of(backend).values()))


def canaries(backend: Backend) -> tuple[PlannedRun, ...]:
    """Every run of the study, each once, with the backend's pins and the kernel of its stack."""
    folder = find_study(STUDY)
    pins, kernels = backend.pins(), backend.capabilities().kernels
    modern = resolve(folder, Choices("paper"), pins, kernels).runs
    era = resolve(folder, Choices("paper", ERA, "linux-2.4"), pins, kernels).runs
    return (*(run for run in modern if run.experiment not in ERA), *era)


def measured(backend: Backend, jobs: int | None, console: Console) -> Digests:
    """What each canary measured, by its name; empty for one that failed.

    All are run anew; their raw results are left in ``results/canary``.
    """
    runs = canaries(backend)
    with open_results(repository_root() / "results" / "canary") as results:
        shutil.rmtree(results.raw)
        results.raw.mkdir()
        with listen(results, console) as events:
            execute(runs, backend, results, jobs=job_count(jobs), events=events)
        records = find_records(results.raw)
    good = {run_id: record.folder for run_id, record in records.items() if record.status == "ok"}
    return {run.scenario: measured_digest(good[run.run_id]) if run.run_id in good else "" for run in runs}
