# SPDX-License-Identifier: Apache-2.0
"""Programs of a run while it happens: none outlives it, and each has to end well."""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from longfat.guest.sysctls import LaboratoryError
from longfat.network import longest_rtt_us
from longfat.runspec import RunSpec

DRAIN_S = 60.0  # a program that still runs so long after its end has failed
DRAIN_ROUNDS = 10  # or so many of the longest round-trip time, if that is more
LOOKS = 1000  # at a program in that time


def started(cleanup: ExitStack, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """Make sure that the process is gone when the run ends."""

    def end() -> None:
        if process.poll() is None:
            process.kill()
            process.wait()

    cleanup.callback(end)
    return process


def drain_s(spec: RunSpec) -> float:
    """How long after its end a program of a run may still be running."""
    return max(DRAIN_S, DRAIN_ROUNDS * longest_rtt_us(spec) / 1e6)


def finish(process: subprocess.Popen[bytes], what: str, expected: int = 0, within_s: float = DRAIN_S) -> None:
    """Wait for a process to leave by itself. Raises LaboratoryError when it stays or leaves with another status."""
    for _ in range(LOOKS if within_s > DRAIN_S else 0):  # wait() looks 20 times in each second
        if process.poll() is None:
            time.sleep((within_s - DRAIN_S) / LOOKS)
    try:
        status = process.wait(min(within_s, DRAIN_S))
    except subprocess.TimeoutExpired as error:
        raise LaboratoryError(f"{what} still runs {within_s:g} s after its end") from error
    if status != expected:
        raise LaboratoryError(f"{what} ended with status {status}{memory_words() if status < 0 else ''}")


def memory_words(file: Path = Path("/proc/vmstat")) -> str:
    """That the kernel has ended programs because there was no memory left, where it has (proc(5): oom_kill)."""
    killed = [line for line in file.read_text().splitlines() if line.startswith("oom_kill ")]
    return (
        "" if killed in ([], ["oom_kill 0"]) else ": the guest is out of memory, `memory` of the experiment gives more"
    )
