# SPDX-License-Identifier: Apache-2.0
"""The laboratory in virtual time: one User-Mode-Linux guest for each run, an ordinary process of the user.

Owns how a guest is booted, watched and ended. What happens inside it is longfat.lab's; the two meet in a folder
that holds spec.json and takes the raw files. Of the host, the guest sees its composed root and that folder only.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from longfat.backends.protocol import Capabilities, refused_images
from longfat.builds.image import build_image
from longfat.builds.kernel import build_kernel
from longfat.errors import RigError
from longfat.lab.ccas import refused_ccas
from longfat.runspec import RunSpec

PACKAGE = Path(__file__).resolve().parents[1]
GUEST_MODULES = ("__init__.py", "runspec.py", "errors.py", "lab")
START_NS = 1_000_000_000_000_000_000  # 2001-09-09: the guest's clock at boot, the same for every run
STILL_CPU_S = 60.0  # a guest that computes for so long while its virtual clock stands still has hung
STILL_WALL_S = 600.0  # the same for one that does not compute either
GUEST_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
TAIL_LINES = 20
PR_SET_PDEATHSIG = 1  # linux/prctl.h
ADDR_NO_RANDOMIZE = 0x0040000  # linux/personality.h

_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class VirtualBackend:
    """Runs in virtual time. ``root`` is the guest's root, composed of ``image`` (a tar file) and the laboratory's code;
    ``jail`` is the cache folder that all are in.
    """

    kernel: Path
    kernel_digest: str
    image: Path
    image_digest: str
    lab_digest: str
    jail: Path
    root: Path
    ccas: frozenset[str]

    name = "virtual"

    def pins(self) -> dict[str, str]:
        """Digests of kernel, image and laboratory code."""
        return {
            "backend": self.name,
            "kernel": self.kernel_digest,
            "image": self.image_digest,
            "lab": self.lab_digest,
        }

    def capabilities(self) -> Capabilities:
        """The algorithms that the kernel was configured with."""
        return Capabilities(self.ccas)

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Algorithms that the kernel does not have, hosts that are to be containers, and what no kernel can do."""
        return (*refused_ccas(spec, self.ccas), *refused_images(spec), *spec.beyond_kernels)

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Boot a guest, let it do the run, move its raw files into ``folder``. Raises RigError on a crash or hang."""
        with tempfile.TemporaryDirectory(prefix="run-", dir=scratch_folder(self.jail)) as name:
            lab = Path(name)
            (lab / "raw").mkdir()
            (lab / "spec.json").write_text(spec.to_json())
            self.boot(lab, spec.memory_bytes, spec.seed, ["/code/longfat/lab/guest.py"])
            if not (lab / "raw" / "outcome.json").is_file():
                raise RigError(f"the guest ended without an outcome\n{tail(lab / 'console.log')}")
            for path in sorted((lab / "raw").iterdir()):
                if path.is_dir():
                    shutil.copytree(path, folder / path.name, dirs_exist_ok=True)
                else:
                    shutil.copyfile(path, folder / path.name)
            (folder / "console.log").write_text(console_text(lab / "console.log"))

    def boot(self, lab: Path, memory_bytes: int, seed: int, program: list[str], *, writable: bool = False) -> None:
        """Boot a guest with ``program`` (Python, as the guest sees it) as its first process, until it powers off.

        Raises RigError when the guest crashes or its virtual clock stands still.
        """
        console = lab / "console.log"
        (lab / "root").symlink_to(self.root)
        argv = guest_command(self.kernel, memory_bytes, seed, program, writable=writable)
        with console.open("wb") as output, one_cpu(scratch_folder(self.jail)) as cpu:
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=lab,
                    env={"HOME": str(lab), "PATH": GUEST_PATH},
                    preexec_fn=lambda: _prepare_guest(cpu),
                    start_new_session=True,
                )
            except OSError as error:
                raise RigError(
                    f"the guest's kernel cannot be started: {error.strerror}",
                    where=str(self.kernel),
                    hint="./just kernel",
                ) from error
            try:
                watch(process, lab / "raw", console)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if process.returncode:
            raise RigError(f"the guest ended with status {process.returncode}\n{tail(console)}")


def guest_command(
    kernel: Path, memory_bytes: int, seed: int, program: list[str], *, writable: bool = False
) -> list[str]:
    """The command line of a guest that is started in its lab folder, which has a link to the composed root.

    Everything on it that can reach the results is in the RunSpec or constant. No path of the host is: the kernel
    stirs its command line into its random numbers (random_init_early in drivers/char/random.c).
    """
    return [
        str(kernel),
        f"mem={memory_bytes >> 20}M",
        *("time-travel=inf-cpu", f"time-travel-start={START_NS}"),
        f"entropy_seed={int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:8], 'big')}",
        *("root=/dev/root", "rootfstype=hostfs", "hostfs=/proc/self/cwd", "rootflags=/root"),
        "rw" if writable else "ro",
        *("con=null", "con0=null,fd:1", "quiet", "panic=-1", "uml_dir=./", "umid=guest"),
        *("init=/usr/bin/python3", "PYTHONHASHSEED=0", "--", "-I", "-S", "-X", "frozen_modules=on", *program),
    ]


def watch(process: subprocess.Popen[bytes], raw: Path, console: Path) -> None:
    """Wait for the guest to end. Raises RigError when its virtual clock stands still for too long.

    The guest touches its clock, a file in ``raw``, at each sample; while its clock stands and it reads a long
    capture, other files there grow. What it may take until the next change is counted in CPU time, so that a busy
    machine ends no healthy guest, and in wall time for one that waits for something that cannot come.
    """
    last_mark, last_cpu, last_wall = signs_of_life(raw), 0.0, time.monotonic()
    while True:
        try:
            process.wait(1.0)
            return
        except subprocess.TimeoutExpired:
            pass
        mark = signs_of_life(raw)
        cpu, wall = cpu_seconds(process.pid), time.monotonic()
        if mark != last_mark:
            last_mark, last_cpu, last_wall = mark, cpu, wall
        elif cpu - last_cpu > STILL_CPU_S or wall - last_wall > STILL_WALL_S:
            raise RigError(
                f"the guest's virtual clock stood still for {wall - last_wall:.0f} s ({cpu - last_cpu:.0f} s of CPU)"
                f"\n{tail(console)}"
            )


def signs_of_life(folder: Path) -> list[tuple[int, int]]:
    """Time of change and size of every file in the folder."""
    found = []
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError):
            facts = path.stat()
            found.append((facts.st_mtime_ns, facts.st_size))
    return found


def cpu_seconds(session: int) -> float:
    """User and system time in seconds of all processes of a session: a guest's programs are processes of their own."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
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
    text = console.read_text(errors="replace").replace("\r", "")
    return text.replace(str(console.parent), "LAB")


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
            "this is not a folder of yours, and guests need one for their files",
            where=str(folder),
            hint="TMPDIR names another place, LONGFAT_CACHE a cache folder of your own",
        )
    return folder


def open_virtual(say: Callable[[str], None] = lambda line: None) -> VirtualBackend:
    """The backend with its kernel and image, built now if they are not there yet. Raises RigError."""
    kernel, image = build_kernel(say=say), build_image(say=say)
    jail = image.path.parents[2]
    lab_digest = code_digest()
    root = jail / "roots" / f"{image.digest[:16]}-{lab_digest[:16]}"
    backend = VirtualBackend(
        kernel=kernel.path,
        kernel_digest=kernel.digest,
        image=image.path.with_name("image.tar"),
        image_digest=image.digest,
        lab_digest=lab_digest,
        jail=jail,
        root=root,
        ccas=configured_ccas(),
    )
    if not root.exists():
        _compose_root(backend, image.path)
    return backend


def code_digest() -> str:
    """SHA-256 over the modules that run in the guest."""
    digest = hashlib.sha256()
    for path in guest_sources():
        digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def guest_sources() -> list[Path]:
    """The Python files that travel into the guest."""
    found = []
    for name in GUEST_MODULES:
        path = PACKAGE / name
        found += sorted(path.glob("*.py")) if path.is_dir() else [path]
    return found


def configured_ccas() -> frozenset[str]:
    """Kernel names of the algorithms in the kernel's configuration fragments; reno is always there."""
    text = "".join(path.read_text() for path in (PACKAGE.parents[1] / "kernels" / "config").glob("*.config"))
    options = re.findall(r"^CONFIG_TCP_CONG_(\w+)=y", text, re.M)
    names = {"HSTCP": "highspeed"}
    return frozenset({"reno"} | {names.get(o, o.lower()) for o in options if o != "ADVANCED"})


def _compose_root(backend: VirtualBackend, image: Path) -> None:
    """Hard links to the image plus /code with this package, compiled by the guest's own Python."""
    backend.root.parent.mkdir(exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=backend.root.parent))
    shutil.rmtree(partial)
    try:
        shutil.copytree(image, partial, symlinks=True, copy_function=os.link)
        for path in guest_sources():
            target = partial / "code" / "longfat" / path.relative_to(PACKAGE)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        (partial / "code" / "compile.py").write_text(COMPILE)
        composing = VirtualBackend(**{**backend.__dict__, "root": partial})
        with tempfile.TemporaryDirectory(prefix="run-", dir=scratch_folder(backend.jail)) as name:
            lab = Path(name)
            composing.boot(lab, 256 << 20, 0, ["/code/compile.py"], writable=True)
            if not list((partial / "code" / "longfat").glob("__pycache__/*.pyc")):
                raise RigError(f"the guest could not compile the laboratory's code\n{tail(lab / 'console.log')}")
        partial.rename(backend.root)
    except FileExistsError:
        pass  # another process has composed the same root
    finally:
        shutil.rmtree(partial, ignore_errors=True)


COMPILE = """\
import ctypes, sys
sys.path[:] = ["/usr/lib/python3.11", "/usr/lib/python3.11/lib-dynload"]
import compileall, py_compile
compileall.compile_dir("/code/longfat", quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
ctypes.CDLL(None).reboot(0x4321FEDC)
"""


@contextmanager
def one_cpu(scratch: Path) -> Iterator[int]:
    """A CPU of this process that no other guest has; one of those in use when all are taken.

    A guest and its programs take turns, so a second CPU never helps; on one CPU each turn costs a context switch,
    on two it costs waking the other one, which makes a short run four times as long.
    """
    cpus = sorted(os.sched_getaffinity(0))
    for cpu in cpus:
        with (scratch / f"cpu{cpu}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield cpu
            return
    yield cpus[os.getpid() % len(cpus)]


def _prepare_guest(cpu: int) -> None:
    """In the child: stay on one CPU, end with the worker process, and have the same memory layout every time.

    The guest adds the gap that address randomization leaves before its heap to its physical memory.
    """
    os.sched_setaffinity(0, {cpu})
    _libc.personality(ADDR_NO_RANDOMIZE)
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
