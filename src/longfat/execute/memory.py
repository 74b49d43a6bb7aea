# SPDX-License-Identifier: Apache-2.0
"""The memory of this machine for guests, and the number of runs that fit into it. Must not start anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError

OVERHEAD_BYTES = 32 << 20  # memory of a run beyond its guest's: buffers here and the kernel's tables


def needed_bytes(spec: RunSpec) -> int:
    """Return the most memory of a run in a guest: the manifest's ``memory`` and the overhead."""
    return spec.memory_bytes + OVERHEAD_BYTES


def runs_that_fit(specs: Iterable[RunSpec], memory_bytes: int) -> int:
    """Return the number of simultaneous runs that fit, if all are as large as the largest."""
    fitting = 0
    for needed in sorted(map(needed_bytes, specs), reverse=True):
        memory_bytes -= needed
        if memory_bytes < 0:
            break
        fitting += 1
    return fitting


def jobs_in_memory(specs: list[RunSpec], jobs: int, memory_bytes: int) -> tuple[int, str | None]:
    """Return the number of simultaneous runs that the memory allows, at most ``jobs``, and a message if it is less.

    Raises RigError if not even one fits.
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
    """Return the memory for new programs without swapping: MemAvailable (proc(5)), or less in a control group.

    Inactive page cache of a group counts as free.
    """
    rows = (line.split() for line in (machine / "proc/meminfo").read_text().splitlines())
    memory = next(int(row[1]) << 10 for row in rows if row[0] == "MemAvailable:")
    return max(0, min([memory, *_left_in_groups(machine)]))


def _left_in_groups(machine: Path) -> Iterator[int]:
    """Yield the bytes left in each control group (version 2) of this process that has a limit."""
    try:
        groups = (machine / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return  # a kernel without control groups
    paths = [Path(line.removeprefix("0::").lstrip("/")) for line in groups if line.startswith("0::")]
    for path in paths:
        # In a container the path may be the machine's while the mount is the container's: then only the mount exists.
        for folder in (machine / "sys/fs/cgroup" / parent for parent in (path, *path.parents)):
            try:
                allowed = int((folder / "memory.max").read_text())
                used = int((folder / "memory.current").read_text())
                stat = dict(row.split() for row in (folder / "memory.stat").read_text().splitlines())
            except (OSError, ValueError):
                continue  # no limit, or no such group here
            yield allowed - used + int(stat.get("inactive_file", 0))
