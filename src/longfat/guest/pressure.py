# SPDX-License-Identifier: Apache-2.0
"""How long the machine's tasks waited for a CPU: what real time must not hide, and virtual time cannot have."""

from __future__ import annotations

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
