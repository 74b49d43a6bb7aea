# SPDX-License-Identifier: Apache-2.0
"""A guest takes the memory that its run spec states and no more, so that what fits can be counted beforehand."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from guests import MEMORY_BYTES, boot, processes_in, task_folder

from longfat.execute.memory import OVERHEAD_BYTES

pytestmark = pytest.mark.virtual

# Fills the guest's memory until the kernel of the guest ends the program, while other programs sleep.
PROGRAM = """
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

    with task_folder(PROGRAM) as task:
        watcher = threading.Thread(target=watch, args=(task,))
        watcher.start()
        try:
            boot(task)
        finally:
            ended.set()
            watcher.join()
        assert (task / "raw/answer.json").read_text() == "-9", "the guest's kernel ended the greedy program"
    assert MEMORY_BYTES // 2 < max(seen) < MEMORY_BYTES + OVERHEAD_BYTES
