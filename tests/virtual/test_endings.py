# SPDX-License-Identifier: Apache-2.0
"""How guests end when they should not: hung, orphaned, or never booted. None stays, or takes more memory."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from guests import MEMORY_BYTES, boot, processes_in, task_folder, virtual
from needs import comes_true

from longfat.backends import guest_process
from longfat.execute.memory import OVERHEAD_BYTES
from longfat.system.errors import RigError

pytestmark = pytest.mark.virtual

TESTS = Path(__file__).parent
SPIN = """
import os
child = os.fork()  # a second process: it has a process on the host too
print("spinning", flush=True)
while True: pass
"""


@pytest.mark.parametrize(
    ("program", "limit", "seconds"),
    [(SPIN, "STILL_CPU_S", 1.0), ("import os\nos.read(os.pipe()[0], 1)", "STILL_WALL_S", 2.0)],
    ids=["spins", "waits for what cannot come"],
)
def test_a_guest_that_hangs_is_ended_and_leaves_no_process(
    program: str, limit: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_process, limit, seconds)
    with task_folder(program) as task:
        with pytest.raises(RigError, match=r"virtual clock stood still for \d+ s"):
            boot(task)
        assert comes_true(lambda: processes_in(task) == [], 2)


def test_a_worker_that_is_killed_takes_its_guest_with_it() -> None:
    with task_folder(SPIN) as task:
        code = f"import sys; from pathlib import Path; sys.path.append({str(TESTS)!r})\n"
        code += f"from guests import boot; boot(Path({str(task)!r}))"
        worker = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
        try:
            console = task / "console.log"
            assert comes_true(lambda: console.exists() and "spinning" in console.read_text(), 20), "no guest came up"
            assert len(processes_in(task)) >= 2
        finally:
            worker.send_signal(signal.SIGKILL)
            worker.communicate()
        assert comes_true(lambda: processes_in(task) == [], 5), f"left behind: {processes_in(task)}"


def test_a_kernel_that_is_no_program_is_named(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    kernel.write_bytes(b"\x7fELF and no more")
    kernel.chmod(0o755)
    backend = dataclasses.replace(virtual(), kernels={"other": dataclasses.replace(virtual().kernel, path=kernel)})
    with task_folder("answer = 1") as task, pytest.raises(RigError, match="cannot be started: Exec format error"):
        boot(task, backend)


# Fills the guest's memory until the kernel of the guest ends the program, while other programs sleep.
GREEDY = """
import subprocess
sleepers = [subprocess.Popen(["/bin/sleep", "1"]) for _ in range(20)]
greedy = "blocks = []\\nwhile True: blocks.append(bytes(b'1') * (1 << 20))"
answer = subprocess.run(["/usr/bin/python3", "-I", "-S", "-c", greedy]).returncode
for sleeper in sleepers:
    sleeper.wait()
"""


def taken_bytes(task: Path) -> int:
    """Memory of a guest: its memory's file, and what each of its processes has for itself, page tables included.

    A page of the file that several processes map counts once, also when one of them ends while this reads. A process
    that has been made and has not started its program yet has this program's memory, not its own.
    """
    own, files = 0, {}
    for pid in processes_in(task):
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes() == Path("/proc/self/cmdline").read_bytes():
                continue
            rows = Path(f"/proc/{pid}/status").read_text().splitlines()
            own += sum(int(row.split()[1]) << 10 for row in rows if row.startswith(("RssAnon:", "VmPTE:")))
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                if "memfd:uml-memory" in os.readlink(descriptor):
                    found = descriptor.stat()
                    files[found.st_dev, found.st_ino] = found.st_blocks * 512
        except OSError:
            continue  # it has ended meanwhile
    return own + sum(files.values())


def test_a_guest_whose_programs_want_more_takes_its_memory_and_no_more() -> None:
    seen = [0]
    ended = threading.Event()

    def watch(task: Path) -> None:
        while not ended.wait(0.02):
            seen.append(taken_bytes(task))

    with task_folder(GREEDY) as task:
        watcher = threading.Thread(target=watch, args=(task,))
        watcher.start()
        try:
            boot(task)
        finally:
            ended.set()
            watcher.join()
        assert (task / "raw/answer.json").read_text() == "-9", "the guest's kernel ended the greedy program"
    assert MEMORY_BYTES // 2 < max(seen) < MEMORY_BYTES + OVERHEAD_BYTES
