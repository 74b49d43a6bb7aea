# SPDX-License-Identifier: Apache-2.0
"""Host side of a guest with a shell: input lines are files, output comes from the console.

Between lines the guest is stopped (SIGSTOP), so that virtual time passes only during commands.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from longfat.backends.guest_process import GUEST_FOLDER, scratch_folder
from longfat.backends.virtual import VirtualBackend
from longfat.guest.start import FOLDERS
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError
from longfat.system.scratch import scratch_in

INSIDE = (Path(__file__).with_name("inside.py"), Path(__file__).with_name("loop.bash"))
# The guest's first process, passed in base64 because a kernel's command line is split at spaces.
START = f"""
import sys
sys.path[:] = {FOLDERS!r}
from longfat.guest import init
def execute():
    names = {{"__name__": "inside"}}
    exec(compile(open("/task/inside.py").read(), "inside.py", "exec"), names)
    names["execute"]()
init.execute = execute
init.main()
"""
READY, END = b"\x1e", b"\x1f"
INTERRUPT = b"\x03"
FAREWELL = b"reboot: Power down\n"  # last message of the kernel


@dataclass(frozen=True)
class Prompt:
    """State of a shell that is ready: the last command's status, virtual time in us, node, working folder."""

    status: int
    time_us: int
    node: str
    folder: str

    def __str__(self) -> str:
        return f"{self.node} {self.time_us / 1e6:.6f} s {self.folder} $ "


class Session:
    """A running guest. ``show`` receives the output of its console as it appears."""

    def __init__(self, task: Path, process: subprocess.Popen[bytes], show: Callable[[str], None]) -> None:
        self._task, self._process, self._show = task, process, show
        self._number = 0
        self._rest = b""
        self._interrupted = False

    def prompt(self) -> Prompt | None:
        """Wait until the shell is ready for a line, and stop the guest. Return None if the guest has ended.

        Ctrl-C interrupts the program in the shell; a second Ctrl-C before its end raises KeyboardInterrupt.
        """
        while True:
            try:
                return self._prompt()
            except KeyboardInterrupt:
                if self._interrupted or self._process.stdin is None:
                    raise
                self._interrupted = True
                self._process.stdin.write(INTERRUPT)
                self._process.stdin.flush()

    def _prompt(self) -> Prompt | None:
        assert self._process.stdout is not None
        while END not in self._rest:
            output, ready, rest = self._rest.partition(READY)
            self._show_text(output)
            self._rest = ready + rest
            more = os.read(self._process.stdout.fileno(), 65536)
            if not more:
                return None
            self._rest += more
        last, _, self._rest = self._rest.partition(END)
        output, _, facts = last.partition(READY)
        self._show_text(output)
        os.kill(self._process.pid, signal.SIGSTOP)
        self._interrupted = False
        status, time_us, node, folder = facts.decode().split(" ", 3)
        return Prompt(int(status), int(time_us), node, folder)

    def _show_text(self, output: bytes) -> None:
        if text := output.replace(b"\r", b"").replace(FAREWELL, b"").decode(errors="replace"):
            self._show(text)

    def exit_status(self) -> int:
        """Return the exit status of a shell that has ended. Raises RigError if the guest ended before it."""
        try:
            return int((self._task / "raw" / "status").read_text())
        except (OSError, ValueError) as error:
            raise RigError("the guest ended before its shell") from error

    def send(self, line: str) -> None:
        """Send the shell a line, and continue the guest."""
        path = self._task / "lines" / str(self._number)
        draft = path.with_suffix(".new")
        draft.write_text(f"{line}\n")
        draft.rename(path)
        self._number += 1
        os.kill(self._process.pid, signal.SIGCONT)


@contextmanager
def session(backend: VirtualBackend, spec: RunSpec, node: str, show: Callable[[str], None]) -> Iterator[Session]:
    """Start a guest with the network of a run and a shell on one of its nodes. Raises RigError."""
    with scratch_in(scratch_folder(backend.jail), GUEST_FOLDER) as task:
        (task / "raw").mkdir()
        (task / "lines").mkdir()
        (task / "spec.json").write_text(spec.to_json())
        (task / "order.json").write_text(json.dumps({"node": node}))
        for path in INSIDE:
            shutil.copyfile(path, task / path.name)
        start = base64.b64encode(START.encode()).decode()
        program = ["-c", f"exec(__import__('base64').b64decode('{start}'))"]
        kernel = backend.kernel_of(spec)
        with backend.start(
            task, spec.memory_bytes, spec.seed, program, output=subprocess.PIPE, kernel=kernel, keys=True
        ) as process:
            yield Session(task, process, show)


def converse(session: Session, line_for: Callable[[Prompt], str | None]) -> int:
    """Send the shell all lines; return the status of the last command, or of the shell if it has ended.

    Raises RigError if the guest ends before its shell is ready.
    """
    prompt = session.prompt()
    if prompt is None:
        raise RigError("the guest ended before its shell was ready")
    while (line := line_for(prompt)) is not None:
        session.send(line)
        after = session.prompt()
        if after is None:
            return session.exit_status()
        prompt = after
    return prompt.status
