# SPDX-License-Identifier: Apache-2.0
"""The laboratory in virtual time: one User-Mode-Linux guest for each run, an ordinary process of the user.

Owns how a guest is booted, watched and ended. longfat.guest runs inside it; the two meet in a folder that holds
spec.json and receives the raw files. Of the host, the guest sees only its composed root and that folder.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import IO

from longfat.backends import crash, landlock, own_files
from longfat.backends.collect import collect, read_text
from longfat.backends.cpus import one_cpu
from longfat.backends.protocol import BEYOND_KERNELS, FEATURES, Capabilities, Feature, Traits
from longfat.backends.registry import Say, refused_features
from longfat.builds.image import build_image
from longfat.builds.kernel_recipe import Recipe
from longfat.builds.own_kernel import build_own_kernel
from longfat.builds.roots import open_root
from longfat.catalog.ccas import PARAMETER_SYSCTLS
from longfat.catalog.kernels import DEFAULT_KERNEL, STACK_KERNELS, OwnKernel
from longfat.catalog.sysctls import SYSCTLS, any_interface
from longfat.errors import RigError, SettledError
from longfat.guest.ccas import refused_ccas
from longfat.guest.start import PROGRAM
from longfat.identity import KernelSource, code_identity
from longfat.parent import end_with_parent
from longfat.runspec import RunSpec
from longfat.scratch import scratch_in

TRAITS = {
    "virtual": Traits(can=FEATURES - BEYOND_KERNELS - {Feature.IMAGES}, guests=True),
}
PACKAGE = Path(__file__).resolve().parents[1]
GUEST_MODULES = ("__init__.py", "plain.py", "links.py", "runspec.py", "network.py", "parent.py", "errors.py", "guest")
START_NS = 1_000_000_000_000_000_000  # 2001-09-09: the guest's clock at boot, the same for every run
LOOK_S = 1.0  # how often it is looked whether a guest is alive
STILL_CPU_S = 60.0  # a guest that computes for this long while its virtual clock stands still has hung
STILL_WALL_S = 600.0  # the same for one that does not compute either
LAST_WORDS_S = 5.0  # how long a guest that has hung may take to show where
GUEST_FOLDER = "guest-"
GUEST_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
TAIL_LINES = 20
NO_MEMORY = "Out of memory: "  # prefix of the kernel's message about each program that it ends for it (mm/oom_kill.c)
ADDR_NO_RANDOMIZE = 0x0040000  # linux/personality.h

_libc = ctypes.CDLL(None)


class StoppedClock(RigError):
    """The virtual clock of a guest stands still."""


@dataclass(frozen=True)
class GuestKernel:
    """A kernel as an executable, with the words that it wants on its command line and its congestion controls.

    ``queues`` are the kinds of queue that it has. ``source`` is the release that it was built of, where the project
    built it.
    """

    path: Path
    digest: str
    command_line: tuple[str, ...]
    ccas: frozenset[str]
    source: KernelSource | None = None
    queues: frozenset[str] = frozenset({"pfifo", "bfifo"})


@dataclass(frozen=True)
class VirtualBackend:
    """Runs in virtual time. ``root`` is the guest's root, composed of ``image`` (a tar file) and the laboratory's code;
    ``jail`` is the cache folder that all are in. The first of ``kernels`` is for runs that name none.
    """

    kernels: Mapping[str, GuestKernel]
    image: Path
    image_digest: str
    code: str
    jail: Path
    root: Path

    name = "virtual"

    @property
    def kernel(self) -> GuestKernel:
        """The kernel of runs that name none."""
        return next(iter(self.kernels.values()))

    def pins(self) -> dict[str, str]:
        """Digests of kernel, image and laboratory code."""
        return {
            "backend": self.name,
            "kernel": self.kernel.digest,
            "image": self.image_digest,
            "code": self.code,
        }

    def capabilities(self) -> Capabilities:
        """The algorithms that the kernel was configured with; of all kernels, digests and releases."""
        digests = {name: kernel.digest for name, kernel in self.kernels.items()}
        sources = {kernel.digest: kernel.source for kernel in self.kernels.values() if kernel.source}
        return Capabilities(self.kernel.ccas, kernels=digests, sources=sources, repeats=True)

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Algorithms that the kernel lacks, hosts that must be containers, and settings that no kernel can provide."""
        kernel = self.kernel_of(spec)
        if kernel is None:
            return (f"the kernel {spec.pins['kernel']} is none of {', '.join(self.kernels)} as they are here",)
        return (
            *refused_ccas(spec, kernel.ccas),
            *refused_features(self.name, spec),
            *_refused_queues(spec, kernel.queues),
            *self._refused_sysctls(spec, kernel),
            *own_files.absent(spec, self.jail),
        )

    def _refused_sysctls(self, spec: RunSpec, kernel: GuestKernel) -> Iterator[str]:
        if all(kernel is not self.kernels.get(name) for name in STACK_KERNELS):
            return  # features of other kernels are not listed
        for name in sorted({name for node in spec.nodes for name in node.sysctls} - PARAMETER_SYSCTLS):
            if any_interface(name) not in SYSCTLS:
                yield f"the kernel has no sysctl {name}"

    def kernel_of(self, spec: RunSpec) -> GuestKernel | None:
        """The kernel that a run pins, or None; the first for a run without pins."""
        pinned = spec.pins.get("kernel", self.kernel.digest)
        return next((kernel for kernel in self.kernels.values() if kernel.digest == pinned), None)

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Boot a guest for the run, and move its raw files into ``folder``. Raises RigError on a crash or hang."""
        with scratch_in(scratch_folder(self.jail), GUEST_FOLDER) as task:
            (task / "raw").mkdir()
            (task / "spec.json").write_text(spec.to_json())
            own_files.lay_out(spec, self.jail, task)
            kernel = self.kernel_of(spec) or self.kernel
            if spec.programs:
                kernel = confining(kernel)
            try:
                self.boot(task, spec.memory_bytes, spec.seed, [PROGRAM], kernel=kernel)
            except RigError as error:
                text = console_text(task / "console.log")
                (folder / "console.log").write_text(text)
                hung = isinstance(error, StoppedClock)
                own = kernel.source.own if kernel.source else {}
                found = crash.explained(error, text, kernel.path, own, hung=hung)
                raise (own_files.explained(error, spec) if hung and found is error else found) from error
            if not (task / "raw" / "outcome.json").is_file():
                lost = RigError(f"the guest ended without an outcome\n{tail(task / 'console.log')}")
                raise _with_memory(lost, spec.memory_bytes, task / "console.log")
            collect(task / "raw", folder)
            (folder / "console.log").write_text(console_text(task / "console.log"))

    def boot(
        self,
        task: Path,
        memory_bytes: int,
        seed: int,
        program: list[str],
        *,
        writable: bool = False,
        kernel: GuestKernel | None = None,
    ) -> None:
        """Boot a guest with ``program`` (Python, as the guest sees it) as its first process, until it powers off.

        Without ``kernel`` it is the kernel of runs that name none. Raises RigError when the guest crashes or its
        virtual clock stands still.
        """
        console = task / "console.log"
        with (
            console.open("wb") as output,
            self.started(task, memory_bytes, seed, program, writable=writable, kernel=kernel, output=output) as process,
        ):
            try:
                watch(process, task / "raw", console)
            except RigError as error:
                raise _with_memory(error, memory_bytes, console) from error
        if process.returncode:
            ending = RigError(f"the guest ended with status {process.returncode}\n{tail(console)}")
            raise _with_memory(ending, memory_bytes, console)

    @contextmanager
    def started(
        self,
        task: Path,
        memory_bytes: int,
        seed: int,
        program: list[str],
        *,
        output: IO[bytes] | int,
        writable: bool = False,
        kernel: GuestKernel | None = None,
        keys: bool = False,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """The process of a guest that is being booted as ``boot`` does; it ends with the block, whatever happens.

        What its console shows goes to ``output``; with ``keys`` that reads what is written to the process. Raises
        RigError when it cannot be started.
        """
        kernel = kernel or self.kernel
        (task / "root").symlink_to(self.root)
        argv = guest_command(kernel, memory_bytes, seed, program, writable=writable, keys=keys)
        with (
            one_cpu(scratch_folder(self.jail)) as cpu,
            landlock.rules([task, *_places_for_memory(self.root), *([self.root] if writable else [])]) as rules,
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
                    where=str(kernel.path),
                    hint="./just kernel",
                ) from error
            try:
                yield process
            finally:
                # Before anybody looks at its status, and its number may be another's: a process of a guest that it
                # had begun a moment before its own end stays (start_userspace in arch/um/os-Linux/skas/process.c).
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None:
                        pipe.close()


def _places_for_memory(root: Path) -> list[Path]:
    """Where a guest's kernel may make files outside the folder of its run: its memory is a file without a name.

    It is in /dev/shm or in /tmp (arch/um/os-Linux/mem.c); in the latter only if need be, where the root is there too.
    """
    temporary = Path("/tmp")
    needless = root.is_relative_to(temporary) and Path("/dev/shm").is_dir()
    return [Path("/dev"), Path("/proc"), *([] if needless else [temporary])]


def confining(kernel: GuestKernel) -> GuestKernel:
    """The kernel as it confines programs that may be hostile: with seccomp filters they could write to its memory."""
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
    """The command line of a guest that is started in its task folder, which has a link to the composed root.

    Everything on it that can reach the results is in the RunSpec, in the kernel's digest or constant. No path of the
    host is: the kernel stirs its command line into its random numbers (random_init_early in drivers/char/random.c).
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
    """Wait for the guest to end. Raises RigError when its virtual clock stands still for too long.

    The guest touches its clock, a file in ``raw``, at each sample; while its clock stands and it reads a long capture,
    other files there grow. The time until the next change is limited in CPU time, so a busy machine ends no healthy
    guest. It is limited in wall time for a guest that waits for something that cannot come.
    """
    last_mark, last_cpu, last_wall = signs_of_life(raw), 0.0, time.monotonic()
    while not ended(process, LOOK_S):
        mark = signs_of_life(raw)
        cpu, wall = cpu_seconds(process.pid), time.monotonic()
        if mark != last_mark:
            last_mark, last_cpu, last_wall = mark, cpu, wall
        elif cpu - last_cpu > STILL_CPU_S or wall - last_wall > STILL_WALL_S:
            last_lines = tail(console)
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGFPE)  # a kernel that loops shows where (0029 of the patches)
            ended(process, LAST_WORDS_S)
            raise StoppedClock(
                f"the guest's virtual clock stood still for {wall - last_wall:.0f} s ({cpu - last_cpu:.0f} s of CPU)"
                f"\n{last_lines}"
            )


def _with_memory(error: RigError, memory_bytes: int, console: Path) -> RigError:
    """The error, with its cause where the guest's kernel reported that it had no memory left."""
    if NO_MEMORY not in console_text(console):
        return error
    return SettledError(
        f"the guest is out of memory, it has {memory_bytes >> 20} MiB: {error.message}",
        hint="give it more with `memory` of the experiment",
    )


def ended(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for the end of a process, at most for so long; ``Popen.wait`` would look for it only each 50 ms.

    Its status is not looked at, so that its number stays its own.
    """
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(1000 * timeout_s))
    finally:
        os.close(descriptor)


def signs_of_life(folder: Path) -> list[tuple[int, int]]:
    """Time of change and size of every file in the folder; a guest's links are followed nowhere.

    What the guest removes meanwhile is left out: a glob would raise there.
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
    """User and system time in seconds of all processes of a session: a guest's programs are processes of their own."""
    ticks = 0
    for name in filter(str.isdigit, os.listdir("/proc")):  # a glob would look for each stat, and raise where it is gone
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if int(fields[3]) == session:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def tail(console: Path) -> str:
    """The last lines of the guest's console."""
    return "\n".join(console_text(console).splitlines()[-TAIL_LINES:])


def console_text(console: Path) -> str:
    """The console without carriage returns and without the folder of this one boot."""
    text = read_text(console).replace("\r", "")
    return text.replace(str(console.parent), "TASK")


def scratch_folder(jail: Path) -> Path:
    """Where guests exchange files with the host: in the cache folder, or where that is read-only, in a temporary one.

    Raises RigError when the temporary one is not this user's.
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
            hint="name another place with TMPDIR, or your own cache folder with LONGFAT_CACHE",
        )
    return folder


def open_virtual(
    say: Callable[[str], None] = lambda line: None,
    kernels: Sequence[str] = (DEFAULT_KERNEL,),
    own: Mapping[str, OwnKernel] = MappingProxyType({}),
) -> VirtualBackend:
    """The backend with these kernels and its image, built now if they are not there yet.

    ``own`` has what a study adds to kernels, by their names. Raises RigError, and StudyError when that cannot be built.
    """
    opened = {name: _guest_kernel(own.get(name) or OwnKernel(name), say) for name in kernels}
    image = build_image(say=say)
    unrooted = VirtualBackend(
        kernels=opened,
        image=image.path.with_name("image.tar"),
        image_digest=image.digest,
        code=code_digest(),
        jail=image.path.parents[2],
        root=image.path,
    )
    # By its text: a word that changes no identity still belongs into the code that runs, and its tracebacks.
    root = open_root(image, text_digest(), lambda root: _add_code(replace(unrooted, root=root)), say)
    return replace(unrooted, root=root)


def open_backend(
    name: str,
    say: Say,
    kernels: Sequence[str] = (DEFAULT_KERNEL,),
    own: Mapping[str, OwnKernel] = MappingProxyType({}),
) -> VirtualBackend:
    """As ``open_virtual``, by the name that the registry knows."""
    return open_virtual(say, kernels, own)


def _refused_queues(spec: RunSpec, offered: frozenset[str]) -> tuple[str, ...]:
    shaped = (end.egress for link in spec.links for end in (link.a, link.b) if end.egress.rate_bps is not None)
    missing = sorted({egress.queue.kind for egress in shaped} - offered)
    return tuple(f"the guest's kernel has no queue {kind!r}, it has {', '.join(sorted(offered))}" for kind in missing)


def _guest_kernel(own: OwnKernel, say: Callable[[str], None]) -> GuestKernel:
    built, recipe = build_own_kernel(own, say=say), Recipe(own.base)
    pieces = {piece.name: piece.sha256 for piece in own.pieces}
    patches = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in recipe.patches()}
    source = KernelSource(built.version, built.pinned, pieces, patches, own.base)
    ccas = recipe.ccas() | {source.path.stem.removeprefix("tcp_") for source in own.sources}
    return GuestKernel(built.path, built.digest, recipe.command_line(), ccas, source, recipe.queues())


def code_digest() -> str:
    """The identity of the modules that run in the guest: SHA-256 over their behaviour."""
    return code_identity(PACKAGE, guest_sources())


def text_digest() -> str:
    """SHA-256 over the text of the modules that run in the guest."""
    digest = hashlib.sha256()
    for path in guest_sources():
        digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def guest_sources() -> list[Path]:
    """The Python files that travel into the guest."""
    found = []
    for name in GUEST_MODULES:
        path = PACKAGE / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def _add_code(backend: VirtualBackend) -> None:
    """Put this package into /code of the backend's root, compiled by the guest's own Python."""
    for path in guest_sources():
        target = backend.root / "code" / "longfat" / path.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    with scratch_in(scratch_folder(backend.jail), GUEST_FOLDER) as task:
        backend.boot(task, 256 << 20, 0, ["/code/longfat/guest/start.py", "prepare"], writable=True)
        if not (backend.root / PROGRAM[1:]).is_file():
            raise RigError(f"the guest could not compile the laboratory's code\n{tail(task / 'console.log')}")


def _prepare_guest(cpu: int, rules: int | None) -> None:
    """In the child: stay on one CPU, end with the worker process, fix the memory layout, do not write to the root.

    The root stays unwritten even if the guest remounts it. The guest adds the gap that address randomization leaves
    before its heap to its physical memory.
    """
    landlock.keep(rules)
    os.sched_setaffinity(0, {cpu})
    _libc.personality(ADDR_NO_RANDOMIZE)
    end_with_parent()
