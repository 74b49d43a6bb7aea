# SPDX-License-Identifier: Apache-2.0
"""Reports about a stopped guest kernel: cause and place, including places in a study's own C file.

Owns the interpretation of the kernel's messages. Starts and ends no guest.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from longfat.system.errors import RigError, SettledError

_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
_ADDRESS = re.compile(r"RIP: [0-9a-f]+:(?:0x)?([0-9a-f]+)|\[<([0-9a-f]+)>\]")
_CAUSES = (
    ("Kernel mode signal 8", "a division by zero"),
    ("Segfault with no mm", "an access to memory that is not there"),
    ("Kernel tried to access user memory", "an access to memory that is not the kernel's"),
    ("Kernel mode fault", "an access to memory that is not there"),
)
_BY_CHANCE = "Kernel mode signal 7"  # SIGBUS: the host lacks memory for the guest
_CALLS = 5  # functions in a report


@dataclass(frozen=True)
class Frame:
    """A function of a kernel, with C file and line if known. An inlined function has its own frame."""

    function: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.function}() at {self.file}:{self.line}" if self.file else f"{self.function}()"


def explain(error: RigError, console: str, kernel: Path, own: Collection[str], *, hung: bool = False) -> RigError:
    """Return the error of a guest, with cause and place if its kernel panicked or ``hung``.

    ``console`` is the text of its console, ``own`` has the names of the study's C files. The run would fail again in
    virtual time, so the error is a SettledError, unless the host may be the cause.
    """
    panic = _PANIC.search(console)
    if panic is None:
        return error
    calls = list(frames(kernel, addresses(console)))
    inside = next((call for call in calls if call.file in own), None)
    if hung and inside is None:
        return error
    cause = next((words for prefix, words in _CAUSES if panic[1].startswith(prefix)), panic[1])
    cause = "the guest's kernel loops endlessly" if hung else f"the guest's kernel stopped: {cause}"
    place = f"{inside.file}:{inside.line}, in {inside.function}(): " if inside else ""
    path = " < ".join(map(str, calls[:_CALLS])) or "unknown functions"
    message = f"{place}{cause}\ncalled by: {path}\n{error.message}"
    hint = "correct the file" if inside else error.hint
    kind = RigError if panic[1].startswith(_BY_CHANCE) else SettledError
    return kind(message, where=error.where, hint=hint)


def addresses(console: str) -> list[int]:
    """Return the addresses in a kernel's report: the failed instruction, then the calls on the stack."""
    found = [int(at or call, 16) for at, call in _ADDRESS.findall(console)]
    return list(dict.fromkeys(found))


def frames(kernel: Path, found: Sequence[int]) -> Iterator[Frame]:
    """Yield the functions at addresses of a kernel, the innermost first; none without addr2line (binutils)."""
    program = shutil.which("addr2line")
    if program is None or not found:
        return
    # A return address belongs to the instruction after the call.
    wanted = [hex(at if number == 0 else at - 1) for number, at in enumerate(found)]
    done = subprocess.run(
        [program, "-f", "-i", "-e", str(kernel), *wanted], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    for function, place in zip(lines[::2], lines[1::2], strict=False):
        if function == "??":
            continue
        path, _, line = place.split(" ")[0].rpartition(":")
        known = line.isdigit() and line != "0"
        yield Frame(function, Path(path).name if known else None, int(line) if known else None)
