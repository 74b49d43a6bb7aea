# SPDX-License-Identifier: Apache-2.0
"""Of several signals at once the first stops a process, and the others are neither heard nor reported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import longfat

# Both signals come while they are held back, so that both are there before Python handles the first one.
STOPPED = """
import os, signal, time
from {module} import _interrupt
numbers = {numbers}
for number in numbers:
    signal.signal(number, _interrupt)
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
for number in numbers:
    os.kill(os.getpid(), number)
try:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    time.sleep(60)
except KeyboardInterrupt:
    for number in numbers:
        os.kill(os.getpid(), number)
    print("stopped once")
"""


@pytest.mark.parametrize(
    ("module", "numbers"),
    [
        ("longfat.execute.worker", "(signal.SIGINT, signal.SIGTERM)"),
        ("longfat.cli", "(signal.SIGHUP, signal.SIGTERM)"),
    ],
)
def test_two_signals_at_once_stop_a_process_once_and_nothing_is_reported(module: str, numbers: str) -> None:
    code = STOPPED.format(module=module, numbers=numbers)
    environment = os.environ | {"PYTHONPATH": str(Path(longfat.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr, done.returncode) == ("stopped once\n", "", 0)
