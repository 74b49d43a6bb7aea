# SPDX-License-Identifier: Apache-2.0
"""Programs of a run while it happens: none outlives it, and each has to end well."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack

from longfat.guest.sysctls import LaboratoryError

DRAIN_S = 60.0  # a program that still runs so long after its end has failed


def started(cleanup: ExitStack, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """Make sure that the process is gone when the run ends."""

    def end() -> None:
        if process.poll() is None:
            process.kill()
            process.wait()

    cleanup.callback(end)
    return process


def finish(process: subprocess.Popen[bytes], what: str, expected: int = 0) -> None:
    """Wait for a process to leave by itself. Raises LaboratoryError when it stays or leaves with another status."""
    try:
        status = process.wait(DRAIN_S)
    except subprocess.TimeoutExpired as error:
        raise LaboratoryError(f"{what} still runs {DRAIN_S:g} s after its end") from error
    if status != expected:
        raise LaboratoryError(f"{what} ended with status {status}")
