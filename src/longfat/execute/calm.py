# SPDX-License-Identifier: Apache-2.0
"""Waits until other programs leave the machine's CPUs alone: a run in real time that was starved is repeated then."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from longfat.guest.counters import PRESSURE, pressure_us

CALM_SHARE = 0.05  # of a look's time, in which some task waited for a CPU
LOOK_S = 2.0
PATIENCE_S = 300.0  # then the run is repeated anyway, and reports the result


def wait_for_calm(
    file: Path = PRESSURE, sleep: Callable[[float], None] = time.sleep, patience_s: float = PATIENCE_S
) -> bool:
    """Wait until hardly any task waits for a CPU; whether this happened. At once where the kernel does not count."""
    before = pressure_us(file)
    for _ in range(int(patience_s / LOOK_S)):
        sleep(LOOK_S)
        now = pressure_us(file)
        if before is None or now is None:
            return False
        if now - before < CALM_SHARE * LOOK_S * 1e6:
            return True
        before = now
    return False
