# SPDX-License-Identifier: Apache-2.0
"""Waiting for idle CPUs before a run in real time that lacked CPU is repeated."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from longfat.guest.counters import PRESSURE, pressure_us

IDLE_SHARE = 0.05  # share of an interval in which some task waited for a CPU
LOOK_S = 2.0
PATIENCE_S = 300.0  # after this time the run is repeated anyway


def wait_for_idle_cpu(
    file: Path = PRESSURE, sleep: Callable[[float], None] = time.sleep, patience_s: float = PATIENCE_S
) -> bool:
    """Wait until hardly any task waits for a CPU; return False after the time limit.

    Returns at once if the kernel does not measure CPU pressure.
    """
    before = pressure_us(file)
    for _ in range(int(patience_s / LOOK_S)):
        sleep(LOOK_S)
        now = pressure_us(file)
        if before is None or now is None:
            return False
        if now - before < IDLE_SHARE * LOOK_S * 1e6:
            return True
        before = now
    return False
