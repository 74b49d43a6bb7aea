# SPDX-License-Identifier: Apache-2.0
"""The commit and the machine of the newest runs of a results folder, for people.

Owns ``made-on.json``. Nothing depends on it: digests identify a run, and in virtual time the machine has no effect.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

from longfat.system.files import write_whole

NAME = "made-on.json"


@dataclass(frozen=True)
class MadeOn:
    """A commit in the form of ``git describe``, and a machine: processor, number of CPUs, kernel."""

    commit: str
    machine: str


def this_machine() -> str:
    """Return the processor's name, the number of CPUs that this process may use, and the kernel."""
    cpus = len(os.sched_getaffinity(0))
    count = "1 CPU" if cpus == 1 else f"{cpus} CPUs"
    return f"{_processor()}, {count}, {platform.system()} {platform.release()}"


def keep_made_on(results: Path, made: MadeOn) -> None:
    """Write the commit and the machine of the newest runs. Raises OSError."""
    write_whole(results / NAME, json.dumps(asdict(made), indent=1) + "\n")


def read_made_on(results: Path) -> MadeOn | None:
    """Return the commit and the machine of the newest runs, or None if they are unknown."""
    try:
        made = MadeOn(**json.loads((results / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return made if isinstance(made.commit, str) and isinstance(made.machine, str) else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
