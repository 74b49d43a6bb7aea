# SPDX-License-Identifier: Apache-2.0
"""Kernels of a study: built with its patches, and linked with its C files.

A kernel linked from its kit alone equals the kernel from which the kit was taken.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from longfat.builds.kernel import KernelBuild, build_environment, build_kernel, load_kernel, write_facts
from longfat.builds.kernel_recipe import KERNELS_FOLDER
from longfat.builds.kernel_targets import GUEST, KIT
from longfat.study.catalog.kernels import OwnKernel, Piece
from longfat.system.errors import Problem, RigError, StudyError
from longfat.system.files import file_sha256
from longfat.system.store import keep

Say = Callable[[str], None]

_FOLDER = "net/ipv4"
_LINE_NUMBERS = "-g1"  # for reports of crashes; the code is the same
_MESSAGE = re.compile(rf"{_FOLDER}/(tcp_\w+\.c):(\d+):\d+: (?:fatal )?error: (.*)")
_WARNING = re.compile(rf"{_FOLDER}/(tcp_\w+\.c:\d+:\d+: warning: .*)")
_UNDEFINED = re.compile(rf"{_FOLDER}/(tcp_\w+)\.o:.*?((?:undefined reference to|multiple definition of) .*?)(?:; |$)")


def build_own_kernel(
    own: OwnKernel, *, kernels_folder: Path = KERNELS_FOLDER, say: Say = lambda line: None
) -> KernelBuild:
    """Return the guest's kernel with the files of a study, from the cache folder or built now.

    Its digest covers the kernel without the C files, and the C files. Raises StudyError if a file does not compile, and
    RigError like ``build_kernel``.
    """
    patches = [piece.path for piece in own.patches]
    base = build_kernel(name=own.base, patches=patches, tree=own.tree, kernels_folder=kernels_folder, say=say)
    if not own.sources:
        return base
    digest = hashlib.sha256(base.digest.encode())
    for source in own.sources:
        digest.update(f"\0{source.path.name}\0{source.sha256}".encode())
    kernels = base.path.parents[1]
    result = kernels / digest.hexdigest()[:32]
    names = ", ".join(source.name for source in own.sources)

    def make(new: Path) -> None:
        say(f"compiling {names} into the guest's kernel")
        work = new.parent / "kit"
        work.mkdir()
        linux = link_kernel(base.path.with_name(KIT), own.sources, work, say)
        new.mkdir()
        linux.rename(new / linux.name)
        facts = json.loads(base.path.with_name("kernel.json").read_text())
        pieces = {source.path.name: source.sha256 for source in own.sources}
        write_facts(new, GUEST, {**facts, "digest": digest.hexdigest(), "sources": pieces})

    keep(result, make, f"the kernel with {names}", "200 MB", lock=kernels / "own.lock")
    return load_kernel(own.base, GUEST, result, digest.hexdigest(), pinned=base.pinned)


def link_kernel(kit: Path, sources: Sequence[Piece], work: Path, say: Say) -> Path:
    """Link the kernel of the kit with the congestion controls of ``sources`` in the empty folder ``work``.

    Raises StudyError with all errors of the compiler and the linker, each with file and line, and RigError if there is
    no compiler or no kit.
    """
    if shutil.which("gcc") is None:
        raise RigError("the program gcc is not installed", hint="apt-get install gcc binutils libc6-dev")
    if not kit.is_file():
        hint = f"rm -r {kit.parent} && ./just build kernel"
        raise RigError("the kernel's link kit is missing", where=str(kit), hint=hint)
    subprocess.run(["tar", "-xzf", str(kit), "-C", str(work)], check=True)
    problems = [problem for source in sources for problem in _compile(work, source, say)] or _link(work, sources)
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise StudyError(f"the study's own congestion control has {count}", problems=tuple(problems))
    return work / "linux"


def _compile(work: Path, source: Piece, say: Say) -> list[Problem]:
    """Compile one file and return its errors."""
    copy = work / _FOLDER / source.path.name
    try:
        shutil.copyfile(source.path, copy)
    except FileNotFoundError as error:
        message = f"the kernel with {source.name} is not in this machine's cache, and the file is not here"
        hint = "share LONGFAT_CACHE, or copy its folder kernels there"
        raise RigError(message, where=str(source.path), hint=hint) from error
    if file_sha256(copy) != source.sha256:
        raise RigError("the file has changed since the study was read", where=str(source.path), hint="start again")
    command = shlex.split((work / "command").read_text().replace("tcp_cong", source.path.stem))
    status, text = _run(work, [*command, _LINE_NUMBERS, f"-fdebug-prefix-map={work}=."])
    for warning in _WARNING.findall(text):
        say(f"{source.path.parent / warning}")
    messages = [(int(line), message) for file, line, message in _MESSAGE.findall(text) if file == source.path.name]
    if status and not messages:
        return [Problem(str(source.path), None, "", text.strip())]
    return [Problem(str(source.path), line, "", message) for line, message in messages]


def _link(work: Path, sources: Sequence[Piece]) -> list[Problem]:
    """Link the kernel and return the linker's errors."""
    objects = [f"{_FOLDER}/{source.path.stem}.o" for source in sources]
    flags = shlex.split((work / "flags").read_text())
    script = ["-Wl,--script=arch/um/kernel/vmlinux.lds", "-o", "linux"]
    kernel = ["-Wl,--whole-archive", "vmlinux.o", *objects, "init/version-timestamp.o", "-Wl,--no-whole-archive"]
    status, text = _run(work, ["gcc", *flags, *script, *kernel, "-lutil", "-lrt", "-lpthread"])
    if not status:
        return []
    paths = {source.path.stem: str(source.path) for source in sources}
    found = [Problem(paths[name], None, "", message) for name, message in dict.fromkeys(_UNDEFINED.findall(text))]
    return found or [Problem(str(sources[0].path), None, "", text.strip())]


def _run(work: Path, argv: list[str]) -> tuple[int, str]:
    """Return the exit status of a program and its output."""
    done = subprocess.run(
        argv,
        cwd=work,
        env=build_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return done.returncode, done.stdout
