# SPDX-License-Identifier: Apache-2.0
"""The part of a plan that one of several tasks executes.

Owns the division, which follows from the plan alone: no task needs to know of the others. Must not know records.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from longfat.errors import StudyError
from longfat.plan.model import PlannedRun
from longfat.runspec import RunSpec

ALLOWED = "allowed: K/N with K from 1 to N, such as 3/20, or auto"

# Slurm's sbatch(1), "OUTPUT ENVIRONMENT VARIABLES"; Kubernetes, "Jobs", completion mode Indexed. Kubernetes does not
# tell a pod the number of completions: the manifest has to.
SLURM = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT")
KUBERNETES = ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS")


@dataclass(frozen=True)
class Shard:
    """Number ``number``, from 1, of ``count`` tasks."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}-of-{self.count}"

    def part_of(self, runs: Sequence[PlannedRun], cost: Callable[[RunSpec], float]) -> tuple[PlannedRun, ...]:
        """The distinct runs that fall to this task, longest first; all tasks together have each run once.

        ``cost`` is in seconds. Each run, the longest first, falls to the task that has the least to do so far: the
        tasks end within 4/3 of the best possible time (Graham, SIAM J. Appl. Math. 17, 1969, theorem 2).
        """
        return divide(runs, self.count, cost)[self.number - 1]


def divide(
    runs: Sequence[PlannedRun], count: int, cost: Callable[[RunSpec], float]
) -> tuple[tuple[PlannedRun, ...], ...]:
    """The parts of all tasks, as ``part_of`` has them."""
    distinct = {run.run_id: run for run in reversed(runs)}  # of entries that share a run, the first one counts
    loads = [(0.0, number) for number in range(count)]
    parts: list[list[PlannedRun]] = [[] for _ in range(count)]
    costs = {run_id: cost(run.spec) for run_id, run in distinct.items()}
    for run_id in sorted(distinct, key=lambda run_id: (-costs[run_id], run_id)):
        load, number = loads[0]
        heapq.heapreplace(loads, (load + costs[run_id], number))
        parts[number].append(distinct[run_id])
    return tuple(map(tuple, parts))


def read_shard(text: str, environment: Mapping[str, str]) -> Shard:
    """Read ``K/N``, or ``auto``: what the environment of a cluster's task says. Raises StudyError on anything else."""
    if text == "auto":
        return _of_task(environment)
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise StudyError(f"{text!r} is no shard; {ALLOWED}", where="--shard")
    return Shard(int(match[1]), int(match[2]))


def _of_task(environment: Mapping[str, str]) -> Shard:
    found = [names for names in (SLURM, KUBERNETES) if names[0] in environment]
    if len(found) != 1:
        both = f"{SLURM[0]} (Slurm) and {KUBERNETES[0]} (Kubernetes)"
        problem = f"{both} are both set" if found else f"neither of {both} is set"
        raise StudyError(f"{problem}; {ALLOWED}", where="--shard auto")
    values = [_number(name, environment) for name in found[0]]
    if found[0] is KUBERNETES:
        index, count = values
        if index >= count:
            hint = "set it to .spec.completions in the manifest of the Job"
            raise StudyError(
                f"JOB_COMPLETIONS is {count}, but there is an index {index}", where="--shard auto", hint=hint
            )
        return Shard(index + 1, count)
    index, first, last, count = values
    if last - first + 1 != count or not first <= index <= last:
        raise StudyError(
            f"the array has {count} tasks numbered {first} to {last}, and this is number {index}",
            where="--shard auto",
            hint="number them without gaps, such as --array=1-20, or give K/N to each",
        )
    return Shard(index - first + 1, count)


def _number(name: str, environment: Mapping[str, str]) -> int:
    value = environment.get(name, "")
    if not re.fullmatch(r"\d{1,9}", value, re.ASCII):
        given = f"is {value!r}" if name in environment else "is not set"
        raise StudyError(f"{name} {given}; allowed: a whole number", where="--shard auto")
    return int(value)
