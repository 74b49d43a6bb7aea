# SPDX-License-Identifier: Apache-2.0
"""A guest as a process of the user: its command line, its confinement, its watchdog, and its console.

The guest sees only its composed root and the folder of its task, in which it leaves its files.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import select
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from longfat.backends import landlock
from longfat.backends.collect import read_text, tail
from longfat.system.errors import RigError, SettledError
from longfat.system.identity import KernelSource
from longfat.system.locks import hold
from longfat.system.parent import end_with_parent

START_NS = 1_000_000_000_000_000_000  # 2001-09-09: clock of every guest at boot
LOOK_S = 1.0  # interval of the watchdog
STILL_CPU_S = 60.0  # CPU time without progress of the virtual clock after which a guest counts as hung
STILL_WALL_S = 600.0  # the same in wall time, for a guest that uses no CPU
LAST_WORDS_S = 5.0  # time for a hung guest to report its place
GUEST_FOLDER = "guest-"
GUEST_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
NO_MEMORY = "Out of memory: "  # start of the kernel's message about a program that it kills (mm/oom_kill.c)
ADDR_NO_RANDOMIZE = 0x0040000  # linux/personality.h

_libc = ctypes.CDLL(None)


class StoppedClock(RigError):
    """Error of a guest whose virtual clock stands still."""


@dataclass(frozen=True)
class GuestKernel:
    """A kernel as an executable, with its command line, congestion controls and kinds of queue.

    ``source`` is the release it was built from, if the project built it.
    """

    path: Path
    digest: str
    command_line: tuple[str, ...]
    ccas: frozenset[str]
    source: KernelSource | None = None
    queues: frozenset[str] = frozenset({"pfifo", "bfifo"})


@contextmanager
def start_guest(
    argv: Sequence[str],
    root: Path,
    task: Path,
    scratch: Path,
    *,
    output: IO[bytes] | int,
    writable: bool = False,
    keys: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a guest in the folder ``task``; it ends with the block.

    Its console goes to ``output``; with ``keys`` it reads the standard input of the process. Raises RigError.
    """
    (task / "root").symlink_to(root)
    with (
        one_cpu(scratch) as cpu,
        landlock.rules([task, *_places_for_memory(root), *([root] if writable else [])]) as rules,
    ):
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if keys else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=task,
                env={"HOME": str(task), "PATH": GUEST_PATH},
                preexec_fn=lambda: _prepare_guest(cpu, rules),
                start_new_session=True,
            )
        except OSError as error:
            raise RigError(
                f"the guest's kernel cannot be started: {error.strerror}",
                where=argv[0],
                hint="./just build kernel",
            ) from error
        try:
            yield process
        finally:
            # Kill before the status is read and the number reused: a process that the guest started just before its own
            # end would stay (start_userspace in arch/um/os-Linux/skas/process.c).
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


@contextmanager
def one_cpu(scratch: Path) -> Iterator[int]:
    """Claim the allowed CPU with the fewest guests.

    A guest and its programs take turns, so a second CPU never helps: on one CPU each turn costs a context switch, on
    two it costs a wake-up of the other CPU, with which a short run takes four times as long.
    """
    with ExitStack() as own:
        yield _take_cpu(sorted(os.sched_getaffinity(0)), scratch, own)


def _take_cpu(cpus: Sequence[int], scratch: Path, own: ExitStack) -> int:
    """Lock a CPU with the fewest guests until the end of ``own``, and return its number."""
    for place in itertools.count(1):
        for cpu in cpus:
            with suppress(BlockingIOError):
                own.enter_context(hold(scratch / f"cpu{cpu}-{place}.lock", wait=False))
                return cpu
    raise AssertionError("there is always a further place")


def _places_for_memory(root: Path) -> list[Path]:
    """Return the folders for the unnamed file that is the memory of a guest.

    The kernel uses /dev/shm or /tmp (arch/um/os-Linux/mem.c). /tmp is left out if it contains the root, unless it is
    needed.
    """
    temporary = Path("/tmp")
    needless = root.is_relative_to(temporary) and Path("/dev/shm").is_dir()
    return [Path("/dev"), Path("/proc"), *([] if needless else [temporary])]


def confine(kernel: GuestKernel) -> GuestKernel:
    """Return the kernel without seccomp, with which hostile programs could write to its memory."""
    words = ("seccomp=off" if word.startswith("seccomp=") else word for word in kernel.command_line)
    return replace(kernel, command_line=tuple(words))


def guest_command(
    kernel: GuestKernel,
    memory_bytes: int,
    seed: int,
    program: list[str],
    *,
    writable: bool = False,
    keys: bool = False,
) -> list[str]:
    """Return the command line of a guest, whose task folder has a link to the composed root.

    Every word that can affect the results comes from the RunSpec or the kernel's digest, or is constant. No path of the
    host is among them: the kernel mixes its command line into its random numbers (random_init_early in
    drivers/char/random.c).
    """
    return [
        str(kernel.path),
        *kernel.command_line,
        f"mem={memory_bytes >> 20}M",
        *("time-travel=inf-cpu", f"time-travel-start={START_NS}"),
        f"entropy_seed={int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:8], 'big')}",
        *("root=/dev/root", "rootfstype=hostfs", "hostfs=/proc/self/cwd", "rootflags=/root"),
        "rw" if writable else "ro",
        *("con=null", "con0=fd:0,fd:1" if keys else "con0=null,fd:1", "quiet", "panic=-1", "uml_dir=./", "umid=guest"),
        *("init=/usr/bin/python3", "PYTHONHASHSEED=0", "--", "-I", "-S", "-X", "frozen_modules=on", *program),
    ]


def watch(process: subprocess.Popen[bytes], raw: Path, console: Path) -> None:
    """Wait for the end of the guest. Raises StoppedClock if its virtual clock stands still for too long.

    The guest writes its clock to a file in ``raw`` at each sample; while it processes a long capture, other files there
    grow. The limit between changes is in CPU time, so that a busy machine ends no healthy guest, and in wall time for a
    guest that waits in vain.
    """
    last_mark, last_cpu, last_wall = signs_of_life(raw), 0.0, time.monotonic()
    while not wait_for_end(process, LOOK_S):
        mark = signs_of_life(raw)
        cpu, wall = cpu_seconds(process.pid), time.monotonic()
        if mark != last_mark:
            last_mark, last_cpu, last_wall = mark, cpu, wall
        elif cpu - last_cpu > STILL_CPU_S or wall - last_wall > STILL_WALL_S:
            last_lines = tail(console_text(console))
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGFPE)  # a looping kernel reports its place (patch 0029)
            wait_for_end(process, LAST_WORDS_S)
            raise StoppedClock(
                f"the guest's virtual clock stood still for {wall - last_wall:.0f} s ({cpu - last_cpu:.0f} s of CPU)"
                f"\n{last_lines}"
            )


def explain_memory(error: RigError, memory_bytes: int, console: str) -> RigError:
    """Return the error; if the guest's kernel ran out of memory, with this cause."""
    if NO_MEMORY not in console:
        return error
    return SettledError(
        f"the guest is out of memory, it has {memory_bytes >> 20} MiB: {error.message}",
        hint="give it more with `memory` of the experiment",
    )


def wait_for_end(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for the end of a process; return False after ``timeout_s``. ``Popen.wait`` would poll every 50 ms.

    The status is not read, so that the number of the process is not reused.
    """
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(1000 * timeout_s))
    finally:
        os.close(descriptor)


def signs_of_life(folder: Path) -> list[tuple[int, int]]:
    """Return modification time and size of every file in the folder, without following a guest's links.

    Files that the guest removes meanwhile are skipped, where a glob would raise.
    """
    found: list[tuple[int, int]] = []
    for place, folders, files in os.walk(folder) if not folder.is_symlink() else ():
        folders.sort()
        for name in sorted((*folders, *files)):
            with suppress(FileNotFoundError):
                facts = Path(place, name).lstat()
                found.append((facts.st_mtime_ns, facts.st_size))
    return found


def cpu_seconds(session: int) -> float:
    """Return user and system time in seconds of all processes of a session, such as the programs of a guest."""
    ticks = 0
    for name in filter(str.isdigit, os.listdir("/proc")):  # a glob would raise for an ended process
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        if int(fields[3]) == session:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def console_text(console: Path) -> str:
    """Return the text of the console without carriage returns and without the path of the task's folder."""
    text = read_text(console).replace("\r", "")
    return text.replace(str(console.parent), "TASK")


def scratch_folder(jail: Path) -> Path:
    """Return the folder for files of guests: in the cache folder, or, if that is read-only, a temporary folder.

    Raises RigError if another user owns the temporary folder.
    """
    folder = jail / "scratch"
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
    if os.access(folder, os.W_OK | os.X_OK):
        return folder
    folder = Path(tempfile.gettempdir()) / f"longfat-{os.geteuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise RigError(
            "you do not own this folder, and guests need one for their files",
            where=str(folder),
            hint="choose another place with TMPDIR, or another cache folder with LONGFAT_CACHE",
        )
    return folder


def _prepare_guest(cpu: int, rules: int | None) -> None:
    """Confine the child: one CPU, death with its parent thread, fixed memory layout, read-only root.

    The root is read-only even if the guest remounts it. Without a fixed layout, the random gap before the heap would
    add to the guest's memory.
    """
    landlock.restrict(rules)
    os.sched_setaffinity(0, {cpu})
    _libc.personality(ADDR_NO_RANDOMIZE)
    end_with_parent()
