# SPDX-License-Identifier: Apache-2.0
"""How guests end when they should not: hung, orphaned, or never booted. Nothing of them stays."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from guests import boot, processes_in, task_folder, virtual

from longfat.backends import guest_process
from longfat.backends.virtual import VirtualBackend
from longfat.system.errors import RigError

pytestmark = pytest.mark.virtual

TESTS = Path(__file__).parent
SPIN = """
import os
child = os.fork()  # a second process: it has a process on the host too
print("spinning", flush=True)
while True: pass
"""


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    """Whether the function ``true`` says so within ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.05)
    return False


def test_a_guest_that_spins_is_ended_and_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_process, "STILL_CPU_S", 1.0)
    with task_folder(SPIN) as task:
        with pytest.raises(RigError, match=r"virtual clock stood still for \d+ s \(\d+ s of CPU\)\nspinning"):
            boot(task)
        assert wait_until(lambda: processes_in(task) == [], 2)


def test_a_guest_that_waits_for_what_cannot_come_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_process, "STILL_WALL_S", 2.0)
    with task_folder("import os\nprint('waiting', flush=True)\nos.read(os.pipe()[0], 1)") as task:
        with pytest.raises(RigError, match=r"virtual clock stood still for \d+ s"):
            boot(task)
        assert wait_until(lambda: processes_in(task) == [], 2)


def test_a_worker_that_is_killed_takes_its_guest_with_it() -> None:
    with task_folder(SPIN) as task:
        code = f"import sys; from pathlib import Path; sys.path.append({str(TESTS)!r})\n"
        code += f"from guests import boot; boot(Path({str(task)!r}))"
        worker = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
        try:
            console = task / "console.log"
            assert wait_until(lambda: console.exists() and "spinning" in console.read_text(), 20), "no guest came up"
            assert len(processes_in(task)) >= 2
        finally:
            worker.send_signal(signal.SIGKILL)
            worker.communicate()
        assert wait_until(lambda: processes_in(task) == [], 5), f"left behind: {processes_in(task)}"


def with_kernel(path: Path) -> VirtualBackend:
    """The backend, with another executable for a kernel."""
    return dataclasses.replace(virtual(), kernels={"other": dataclasses.replace(virtual().kernel, path=path)})


def test_a_kernel_that_is_no_program_is_named(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    kernel.write_bytes(b"\x7fELF and no more")
    kernel.chmod(0o755)
    backend = with_kernel(kernel)
    with task_folder("answer = 1") as task, pytest.raises(RigError, match="cannot be started: Exec format error"):
        boot(task, backend)
