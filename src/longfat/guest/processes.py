# SPDX-License-Identifier: Apache-2.0
"""Programs of a run: none outlives it, and each must end well."""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from longfat.guest.sysctls import GuestError
from longfat.spec.network import longest_rtt_us
from longfat.spec.runspec import RunSpec

DRAIN_S = 300.0  # a program that still runs this long after its traffic has failed: a path may lose one packet in four
DRAIN_ROUNDS = 10  # the same in longest round-trip times, if that is more
LOOKS = 1000  # number of checks in that time


def end_with_run(cleanup: ExitStack, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """End the process with the run, and return it."""

    def end() -> None:
        if process.poll() is None:
            process.kill()
            process.wait()

    cleanup.callback(end)
    return process


def drain_s(spec: RunSpec) -> float:
    """Return the longest time that a program of a run may run after its end, in seconds."""
    return max(DRAIN_S, DRAIN_ROUNDS * longest_rtt_us(spec) / 1e6)


def finish(process: subprocess.Popen[bytes], what: str, expected: int = 0, within_s: float = DRAIN_S) -> None:
    """Wait for the end of a process. Raises GuestError if it stays or ends with another status."""
    for _ in range(LOOKS if within_s > DRAIN_S else 0):  # wait() polls 20 times a second
        if process.poll() is None:
            time.sleep((within_s - DRAIN_S) / LOOKS)
    try:
        status = process.wait(min(within_s, DRAIN_S))
    except subprocess.TimeoutExpired as error:
        raise GuestError(f"{what} still runs {within_s:g} s after the end of its traffic") from error
    if status != expected:
        raise GuestError(f"{what} ended with status {status}{memory_words() if status < 0 else ''}")


def memory_words(file: Path = Path("/proc/vmstat")) -> str:
    """Return a remark if the kernel has killed programs for lack of memory (proc(5): oom_kill), else nothing."""
    killed = [line for line in file.read_text().splitlines() if line.startswith("oom_kill ")]
    return "" if killed in ([], ["oom_kill 0"]) else ": the guest is out of memory; raise `memory` of the experiment"
