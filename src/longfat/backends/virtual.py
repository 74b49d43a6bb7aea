# SPDX-License-Identifier: Apache-2.0
"""Runs in virtual time, each in a User-Mode Linux guest, which is an ordinary process of the user.

Owns the kernels, the root and the code of guests; ``guest_process`` starts and watches guests, and longfat.guest runs
inside them. Host and guest share a folder with spec.json and the raw files.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import IO

from longfat.backends import crash, own_files
from longfat.backends.collect import collect, tail
from longfat.backends.guest_process import (
    GUEST_FOLDER,
    GuestKernel,
    StoppedClock,
    confine,
    console_text,
    explain_memory,
    guest_command,
    scratch_folder,
    start_guest,
    watch,
)
from longfat.backends.landlock import landlock_version
from longfat.backends.protocol import BEYOND_KERNELS, FEATURES, Capabilities, Feature, Traits
from longfat.backends.registry import Say, refused_features
from longfat.builds.image import build_image
from longfat.builds.kernel_recipe import Recipe
from longfat.builds.own_kernel import build_own_kernel
from longfat.builds.roots import open_root
from longfat.guest.ccas import refused_ccas
from longfat.guest.start import PROGRAM
from longfat.spec.runspec import RunSpec
from longfat.study.catalog.ccas import PARAMETER_SYSCTLS
from longfat.study.catalog.kernels import DEFAULT_KERNEL, STACK_KERNELS, OwnKernel
from longfat.study.catalog.sysctls import SYSCTLS, any_interface
from longfat.system.errors import RigError
from longfat.system.identity import PACKAGE, KernelSource, code_identity, package_sources
from longfat.system.scratch import scratch_in

TRAITS = {
    "virtual": Traits(can=FEATURES - BEYOND_KERNELS - {Feature.IMAGES}, guests=True),
}
GUEST_MODULES = (
    *("__init__.py", "spec/__init__.py", "spec/plain.py", "spec/links.py", "spec/runspec.py", "spec/network.py"),
    *("system/__init__.py", "system/parent.py", "system/errors.py", "guest"),
)


@dataclass(frozen=True)
class VirtualBackend:
    """Runs in virtual time. Runs that name no kernel use the first of ``kernels``.

    ``root`` is the guest's root, composed of ``image`` (a tar file) and the guest's code. All are in the cache folder
    ``jail``.
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
        """The kernel of runs that do not name one."""
        return next(iter(self.kernels.values()))

    def pins(self) -> dict[str, str]:
        """Return the digests of kernel, image and guest code."""
        return {
            "backend": self.name,
            "kernel": self.kernel.digest,
            "image": self.image_digest,
            "code": self.code,
        }

    def capabilities(self) -> Capabilities:
        """Return the kernel's algorithms, and digests and releases of all kernels."""
        digests = {name: kernel.digest for name, kernel in self.kernels.items()}
        sources = {kernel.digest: kernel.source for kernel in self.kernels.values() if kernel.source}
        reasons = tuple(_missing_calls())
        return Capabilities(self.kernel.ccas, reasons, kernels=digests, sources=sources, repeats=True)

    def refuses(self, spec: RunSpec) -> tuple[str, ...]:
        """Return missing algorithms, queues, sysctls, features and files of a run."""
        kernel = self.kernel_of(spec)
        if kernel is None:
            return (f"the kernel {spec.pins['kernel']} is none of the kernels here: {', '.join(self.kernels)}",)
        return (
            *refused_ccas(spec, kernel.ccas),
            *refused_features(self.name, spec),
            *_refused_queues(spec, kernel.queues),
            *self._refused_sysctls(spec, kernel),
            *own_files.missing(spec, self.jail),
        )

    def _refused_sysctls(self, spec: RunSpec, kernel: GuestKernel) -> Iterator[str]:
        if all(kernel is not self.kernels.get(name) for name in STACK_KERNELS):
            return  # the catalog lists the sysctls of the stacks' kernels only
        for name in sorted({name for node in spec.nodes for name in node.sysctls} - PARAMETER_SYSCTLS):
            if any_interface(name) not in SYSCTLS:
                yield f"the kernel has no sysctl {name}"

    def kernel_of(self, spec: RunSpec) -> GuestKernel | None:
        """Return the kernel that a run pins, or None; for a run without pins, the first kernel."""
        pinned = spec.pins.get("kernel", self.kernel.digest)
        return next((kernel for kernel in self.kernels.values() if kernel.digest == pinned), None)

    def run(self, spec: RunSpec, folder: Path) -> None:
        """Boot a guest for the run and copy its raw files into ``folder``. Raises RigError on a crash or hang."""
        with scratch_in(scratch_folder(self.jail), GUEST_FOLDER) as task:
            (task / "raw").mkdir()
            (task / "spec.json").write_text(spec.to_json())
            own_files.copy(spec, self.jail, task)
            kernel = self.kernel_of(spec) or self.kernel
            if spec.programs:
                kernel = confine(kernel)
            try:
                self.boot(task, spec.memory_bytes, spec.seed, [PROGRAM], kernel=kernel)
            except RigError as error:
                text = console_text(task / "console.log")
                (folder / "console.log").write_text(text)
                hung = isinstance(error, StoppedClock)
                own = kernel.source.own if kernel.source else {}
                found = crash.explain(error, text, kernel.path, own, hung=hung)
                raise (own_files.explain_hang(error, spec) if hung and found is error else found) from error
            if not (task / "raw" / "outcome.json").is_file():
                text = console_text(task / "console.log")
                lost = RigError(f"the guest ended without an outcome\n{tail(text)}")
                raise explain_memory(lost, spec.memory_bytes, text)
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
        """Boot a guest with ``program`` (Python, by its path in the guest) as its first process, until it powers off.

        ``kernel`` is by default the kernel of runs that name none. Raises RigError if the guest crashes or hangs.
        """
        console = task / "console.log"
        how = task, memory_bytes, seed, program
        try:
            with (
                console.open("wb") as output,
                self.start(*how, writable=writable, kernel=kernel, output=output) as guest,
            ):
                watch(guest, task / "raw", console)
            if guest.returncode:
                raise RigError(f"the guest ended with status {guest.returncode}\n{tail(console_text(console))}")
        except RigError as error:
            raise explain_memory(error, memory_bytes, console_text(console)) from error

    def start(
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
    ) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """Start a guest as ``boot`` does; it ends with the block. See ``guest_process.start_guest``."""
        how = {"writable": writable, "keys": keys}
        argv = guest_command(kernel or self.kernel, memory_bytes, seed, program, **how)
        return start_guest(argv, self.root, task, scratch_folder(self.jail), output=output, **how)


def open_virtual(
    say: Callable[[str], None] = lambda line: None,
    kernels: Sequence[str] = (DEFAULT_KERNEL,),
    own: Mapping[str, OwnKernel] = MappingProxyType({}),
) -> VirtualBackend:
    """Return the backend with these kernels and the image, which are built if they are missing.

    Without kernels the code in the root is not compiled, as for runs on this machine's kernel. ``own`` has the
    additions of a study to kernels, by their names. Raises RigError, StudyError if a build fails.
    """
    if landlock_version() < 1:
        say("warning: this machine's kernel has no Landlock: only your rights keep a hostile guest from your files")
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
    # The name depends on the text of the code: comments change no identity, but tracebacks must show the code that ran.
    text = text_digest() if opened else f"source-{text_digest()}"
    root = open_root(image, text, lambda root: _add_code(replace(unrooted, root=root), text), say)
    return replace(unrooted, root=root)


def open_backend(
    name: str,
    say: Say,
    kernels: Sequence[str] = (DEFAULT_KERNEL,),
    own: Mapping[str, OwnKernel] = MappingProxyType({}),
) -> VirtualBackend:
    """Call ``open_virtual``; ``name`` is the registry's."""
    return open_virtual(say, kernels, own)


def _refused_queues(spec: RunSpec, offered: frozenset[str]) -> tuple[str, ...]:
    shaped = (end.egress for link in spec.links for end in (link.a, link.b) if end.egress.rate_bps is not None)
    missing = sorted({egress.queue.kind for egress in shaped} - offered)
    return tuple(f"the guest's kernel has no queue {kind!r}, it has {', '.join(sorted(offered))}" for kind in missing)


def _guest_kernel(own: OwnKernel, say: Callable[[str], None]) -> GuestKernel:
    built, recipe = build_own_kernel(own, say=say), Recipe(own.base)
    pieces = {piece.name: piece.sha256 for piece in own.pieces}
    if own.tree:
        pieces["tree"] = own.tree.commit
    patches = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in recipe.patches()}
    source = KernelSource(built.version, built.pinned, pieces, patches, own.base)
    ccas = recipe.ccas() | {source.path.stem.removeprefix("tcp_") for source in own.sources}
    return GuestKernel(built.path, built.digest, recipe.command_line(), ccas, source, recipe.queues())


def _missing_calls() -> Iterator[str]:
    """Yield a reason for each system call that guests need and this machine, perhaps a container, denies."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        yield f"this machine denies pidfd_open(2): {error.strerror}; a newer Docker, or another profile, allows it"
    if not _may_trace():
        yield "this machine denies ptrace(2), with which a guest runs programs; --cap-add=SYS_PTRACE may allow it"


def _may_trace() -> bool:
    """Return whether this process may trace its children."""

    def be_traced() -> None:
        os._exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)  # PTRACE_TRACEME

    return subprocess.call(["true"], preexec_fn=be_traced) == 0


def guest_sources() -> list[Path]:
    """Return the Python files that are copied into the guest."""
    return package_sources(GUEST_MODULES)


def code_digest() -> str:
    """Return the identity of the guest's code: SHA-256 over its behaviour."""
    return code_identity(PACKAGE, guest_sources())


def text_digest() -> str:
    """Return the SHA-256 of the text of the guest's code."""
    digest = hashlib.sha256()
    for path in guest_sources():
        digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _add_code(backend: VirtualBackend, text: str) -> None:
    """Copy the guest's code to /code of the backend's root, and compile it in a guest if there is a kernel.

    Raises RigError if it is not the code of the digest ``text`` any more.
    """
    for path in guest_sources():
        target = backend.root / "code" / "longfat" / path.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    if not text.endswith(text_digest()):
        raise RigError("the guest's code has changed since the start", hint="start again")
    if not backend.kernels:
        return
    with scratch_in(scratch_folder(backend.jail), GUEST_FOLDER) as task:
        backend.boot(task, 256 << 20, 0, ["/code/longfat/guest/start.py", "prepare"], writable=True)
        if not (backend.root / PROGRAM[1:]).is_file():
            raise RigError(f"the guest's code was not compiled\n{tail(console_text(task / 'console.log'))}")
