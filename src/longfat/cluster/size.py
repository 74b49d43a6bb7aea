# SPDX-License-Identifier: Apache-2.0
"""How many tasks runs are divided among, and what each of them needs.

Owns the margins. Must not know a kind of cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from longfat.execute.memory import needed_bytes
from longfat.execute.shards import divide
from longfat.plan.model import PlannedRun
from longfat.runspec import RunSpec

CPUS = 4  # of a task, unless the user says otherwise: fewer find a gap sooner, more share a start
TASK_S = 600.0  # a task's wall time by the estimate: a requeued one loses little, and its start costs little
MOST_TASKS = 1000  # Slurm's MaxArraySize is 1001 unless a site says otherwise (slurm.conf(5))
SLOWER = 1.5  # nodes than the machine that the estimate was made on
START_S = 300.0  # allowed for the start of a task, and for its end
MARGIN_S = 90.0  # a task begins to end so long before its limit
BASE_BYTES = 512 << 20  # of a task itself, which reads the plan


@dataclass(frozen=True)
class Size:
    """``tasks`` of ``cpus`` CPUs with ``memory_bytes`` each, for ``limit_s`` seconds of wall time."""

    tasks: int
    cpus: int
    memory_bytes: int
    limit_s: float

    @property
    def until_s(self) -> float:
        """The time after which a task ends by itself, in seconds from its start."""
        return self.limit_s - MARGIN_S


def size_of(
    runs: Sequence[PlannedRun],
    left: Sequence[PlannedRun],
    cost: Callable[[RunSpec], float],
    *,
    tasks: int | None = None,
    cpus: int | None = None,
) -> Size:
    """The size for the runs of a plan of which some are ``left``; ``cost`` is in seconds on one CPU.

    ``tasks`` and ``cpus`` are chosen where they are not given. There are never more tasks than runs left.
    """
    cpus = cpus or CPUS
    specs = {run.run_id: run.spec for run in left}
    wanted = tasks or math.ceil(sum(map(cost, specs.values())) / (cpus * TASK_S))
    count = max(1, min(wanted, len(specs), MOST_TASKS))
    memory = max(map(needed_bytes, specs.values()), default=0) + BASE_BYTES // cpus
    seconds = longest_part(runs, left, cost, count, cpus)
    return Size(count, cpus, memory, math.ceil((seconds * SLOWER + START_S) / 60) * 60.0)


def longest_part(
    runs: Sequence[PlannedRun], left: Sequence[PlannedRun], cost: Callable[[RunSpec], float], tasks: int, cpus: int
) -> float:
    """Seconds of wall time, by the estimate, of the task that has most to do of what is left."""
    missing = {run.run_id for run in left}
    longest = 0.0
    for part in divide(runs, tasks, cost):
        own = [cost(run.spec) for run in part if run.run_id in missing]
        longest = max(longest, sum(own) / cpus, *own) if own else longest
    return longest
