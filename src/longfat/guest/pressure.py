# SPDX-License-Identifier: Apache-2.0
"""How long the machine's tasks waited for a CPU: what real time must not hide, and virtual time cannot have."""

from __future__ import annotations

import os
from pathlib import Path

PRESSURE = Path("/proc/pressure/cpu")  # Documentation/accounting/psi.rst


def pressure_us(file: Path = PRESSURE) -> int | None:
    """Microseconds since boot in which some runnable task waited for a CPU; None where the kernel does not count."""
    try:
        text = file.read_text(encoding="ascii")
    except OSError:
        return None
    (some,) = (line for line in text.splitlines() if line.startswith("some "))
    return int(some.rpartition("total=")[2])


def others_us(machine: Path = Path("/proc")) -> int | None:
    """Microseconds since boot that programs other than the laboratory's had a CPU, all CPUs together (proc(5)).

    None where the laboratory is not the first process of a PID namespace of its own, and sees others beside its own.
    What it sees then is its own programs; those that have ended are counted with their parents.
    """
    if os.getpid() != 1:
        return None
    busy = sum(map(int, (machine / "stat").read_text().splitlines()[0].split()[1:4]))  # user, nice, system
    own = 0
    for path in machine.glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended, and its parent has its time
        own += sum(map(int, fields[11:15]))
    return max(0, busy - own) * 1_000_000 // os.sysconf("SC_CLK_TCK")
