# SPDX-License-Identifier: Apache-2.0
"""Programs that must not be interrupted abruptly: an interrupt is passed on, and their end is awaited."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def attend(argv: Sequence[str | Path], environment: Mapping[str, str]) -> int:
    """Run a program that talks with the user; its exit status.

    Raises KeyboardInterrupt once it has ended after an interrupt; it is told to end, whether or not the terminal does
    so too.
    """
    process = subprocess.Popen(argv, env=environment)
    return _await(process, process.wait, signal.SIGTERM)


def attend_alone(argv: Sequence[str | Path], environment: Mapping[str, str], heard: Callable[[str], None]) -> int:
    """Run a program away from the terminal, give ``heard`` each line of its output; its exit status.

    The terminal would send it another interrupt in addition to ours, and Terraform drops everything at a second one.
    Raises KeyboardInterrupt once it has ended after one.
    """
    process = subprocess.Popen(
        argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, process_group=0
    )
    assert process.stdout is not None
    output = process.stdout

    def listen() -> int:
        while line := output.readline():
            heard(line)
        return process.wait()

    with output:
        return _await(process, listen, signal.SIGINT)


def _await(
    process: subprocess.Popen[str] | subprocess.Popen[bytes], end: Callable[[], int], passed_on: signal.Signals
) -> int:
    """The result of ``end``; each interrupt on the way goes to the process as the signal ``passed_on``."""
    interrupted = False
    while True:
        try:
            status = end()
            break
        except KeyboardInterrupt:
            interrupted = True
            process.send_signal(passed_on)
    if interrupted:
        raise KeyboardInterrupt
    return status
