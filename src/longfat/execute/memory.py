# SPDX-License-Identifier: Apache-2.0
"""The memory that this machine has for guests, and the number of runs that fit into it.

Must not start anything: ``study`` and the verbs decide what follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from longfat.errors import RigError
from longfat.runspec import RunSpec

# Memory of a run in addition to its guest's: its worker process (20 MB) and the kernel's tables.
OVERHEAD_BYTES = 32 << 20
# Where control groups of version 2 and 1 are mounted, with the files that hold limit and use in bytes.
_CGROUPS = (
    ("0::", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    (":memory:", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def needed_bytes(spec: RunSpec) -> int:
    """The most memory that a run in a guest takes: the manifest's ``memory``, and the needs of its worker."""
    return spec.memory_bytes + OVERHEAD_BYTES


def runs_that_fit(specs: Iterable[RunSpec], memory_bytes: int) -> int:
    """The number of runs that may be executed at once, whichever these are: as many as fit of the largest."""
    fitting = 0
    for needed in sorted(map(needed_bytes, specs), reverse=True):
        memory_bytes -= needed
        if memory_bytes < 0:
            break
        fitting += 1
    return fitting


def jobs_in_memory(specs: list[RunSpec], jobs: int, memory_bytes: int) -> tuple[int, str | None]:
    """How many of ``jobs`` runs at a time the memory allows, and a message when these are fewer.

    Raises RigError when it does not even allow one.
    """
    jobs = min(jobs, len(specs))
    fitting = runs_that_fit(specs, memory_bytes)
    if fitting >= jobs:
        return jobs, None
    largest = f"{max(map(needed_bytes, specs)) / 1e9:.1f} GB"
    available = f"{memory_bytes / 1e9:.1f} GB"
    if not fitting:
        raise RigError(
            f"a run needs up to {largest} of memory, but {available} are available",
            hint="end other programs, or use a larger machine",
        )
    return fitting, f"{fitting} runs at a time instead of {jobs}: one needs up to {largest} of {available} of memory"


def available_bytes(machine: Path = Path("/")) -> int:
    """Memory for new programs without swapping: MemAvailable (proc(5)), or less where a control group limits it.

    A group's page cache that nobody has used for long counts as free.
    """
    rows = (line.split() for line in (machine / "proc/meminfo").read_text().splitlines())
    memory = next(int(row[1]) << 10 for row in rows if row[0] == "MemAvailable:")
    return max(0, min([memory, *_left_in_groups(machine)]))


def _left_in_groups(machine: Path) -> Iterator[int]:
    """Bytes left in each control group that this process is in and that has a limit."""
    try:
        groups = (machine / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return  # a kernel without control groups
    for mark, mount, limit, use, cache in _CGROUPS:
        for line in groups:
            if mark not in line:
                continue
            # In a container the path may be the machine's while the mount is the container's own: then only the mount
            # itself is there.
            path = Path(line.partition(mark)[2].lstrip("/"))
            for folder in (machine / mount / parent for parent in (path, *path.parents)):
                try:
                    allowed = int((folder / limit).read_text())
                    used = int((folder / use).read_text())
                    stat = dict(row.split() for row in (folder / "memory.stat").read_text().splitlines())
                except (OSError, ValueError):
                    continue  # no limit, or no such group here
                yield allowed - used + int(stat.get(cache, 0))
