# SPDX-License-Identifier: Apache-2.0
"""Waits until the machine's CPUs are idle, so that a run in real time that lacked CPU can be repeated."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from longfat.guest.counters import PRESSURE, pressure_us

IDLE_SHARE = 0.05  # share of an interval in which some task waited for a CPU
LOOK_S = 2.0
PATIENCE_S = 300.0  # after that the run is repeated anyway, and reports the result


def wait_for_idle_cpu(
    file: Path = PRESSURE, sleep: Callable[[float], None] = time.sleep, patience_s: float = PATIENCE_S
) -> bool:
    """Wait until hardly any task waits for a CPU; return whether that happened.

    Returns at once if the kernel does not measure it.
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
