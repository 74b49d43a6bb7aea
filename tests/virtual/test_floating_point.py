# SPDX-License-Identifier: Apache-2.0
"""The kernel's floating point patch: vector registers survive whatever takes a guest's thread off the processor."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from guests import ask

pytestmark = pytest.mark.virtual

SOURCE = Path(__file__).with_name("vector_state.c")
NO_AVX = 77
PROGRAM = """
import os, subprocess
os.chmod("/task/vector_state", 0o755)
done = subprocess.run(["/task/vector_state"], capture_output=True, text=True)
answer = [done.returncode, done.stdout, done.stderr]
"""


def test_a_guest_keeps_the_registers_through_switches_faults_signals_and_forks(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: the program that checks the registers cannot be built")
    program = tmp_path / "vector_state"
    argv = ["gcc", "-O1", "-Wall", "-Werror", "-static", "-pthread", "-o", str(program), str(SOURCE)]
    subprocess.run(argv, check=True)
    status, output, errors = ask(PROGRAM, program)
    if status == NO_AVX:
        pytest.skip("this CPU has no AVX")
    assert (status, errors) == (0, ""), f"status {status}: {output}{errors}"
    checks, lost, signals = map(int, output.split())
    assert lost == 0
    assert checks > 8000
    assert signals == 4000
