# SPDX-License-Identifier: Apache-2.0
"""The kit of a guest's kernel: what it takes to link that kernel once more, with further C files.

Owns the content of the kit: the kernel as one object file, its linker script and flags, its headers, and the command
that compiles a file of its TCP. A kernel that is linked from the kit alone is the one that the kit came with.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

from longfat.builds.kernel_targets import BUILDER, Run
from longfat.catalog.kernels import Piece
from longfat.errors import Problem, RigError, StudyError

KIT = "kit.tar.gz"
HEADERS = ("include", "arch/um/include", "arch/x86/include", "arch/x86/um", "net/ipv4")
WHOLE = ("vmlinux.o", "init/version-timestamp.o", "arch/um/kernel/vmlinux.lds", "flags", "command")
LEFT_OUT = ("dt-bindings", "drm", "media", "sound")
"""Headers of drivers that no guest has, a third of all."""

LINES = ("-g1",)  # line numbers for reports of crashes; the code stays the same
MODEL = "tcp_cong"  # a file of TCP that every kernel has; others are compiled as it was
# The first make starts another one, with the architecture's variables.
_FLAGS = """
ifeq ($(need-sub-make),)
longfat-flags:
	@echo '$(CFLAGS_vmlinux)' >flags
endif
"""
_FOLDER = "net/ipv4"
_MESSAGE = re.compile(rf"{_FOLDER}/(tcp_\w+\.c):(\d+):\d+: (?:fatal )?error: (.*)")
_WARNING = re.compile(rf"{_FOLDER}/(tcp_\w+\.c:\d+:\d+: warning: .*)")
_UNDEFINED = re.compile(rf"{_FOLDER}/(tcp_\w+)\.o:.*?((?:undefined reference to|multiple definition of) .*?)(?:; |$)")


def pack_kit(run: Run, make: list[str], tree: Path, target: Path) -> None:
    """Make the kit of a kernel that was built in ``tree``; ``run`` runs a command there."""
    command = (tree / _FOLDER / f".{MODEL}.o.cmd").read_text().splitlines()[0].split(":=", 1)[1]
    (tree / "command").write_text(command.replace(r"\#", "#").replace("$$", "$"))
    with (tree / "Makefile").open("a") as makefile:
        makefile.write(_FLAGS)
    run([*make, "longfat-flags"], KBUILD_BUILD_TIMESTAMP="@0", **BUILDER)
    run(["strip", "--strip-debug", "vmlinux.o"])
    with tarfile.open(target, "w:gz", compresslevel=1) as tar:
        for name in WHOLE:
            tar.add(tree / name, name)
        for name in HEADERS:
            tar.add(tree / name, name, filter=_header)


def _header(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    folder = any(part in LEFT_OUT for part in Path(member.name).parts)
    wanted = member.isdir() or member.issym() or member.name.endswith((".h", ".inc"))
    return None if folder or not wanted else member


def link_kernel(kit: Path, sources: Sequence[Piece], work: Path, say: Callable[[str], None]) -> Path:
    """The kernel of the kit with the congestion controls of ``sources``, made in the empty folder ``work``.

    Raises StudyError with all that the compiler and the linker find wrong, each with file and line, and RigError when
    there is no compiler.
    """
    if shutil.which("gcc") is None:
        raise RigError("the program gcc is not installed", hint="apt-get install gcc binutils libc6-dev")
    subprocess.run(["tar", "-xzf", str(kit), "-C", str(work)], check=True)
    problems: list[Problem] = []
    for source in sources:
        problems += _compile(work, source, say)
    if not problems:
        problems = _link(work, sources)
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise StudyError(f"the study's own congestion control has {count}", problems=tuple(problems))
    return work / "linux"


def _compile(work: Path, source: Piece, say: Callable[[str], None]) -> list[Problem]:
    """Compile one file; what is wrong with it."""
    name = source.path.stem
    shutil.copyfile(source.path, work / _FOLDER / source.path.name)
    command = shlex.split((work / "command").read_text().replace(MODEL, name))
    status, text = _run(work, [*command, *LINES, f"-fdebug-prefix-map={work}=."])
    problems = [
        Problem(str(source.path), int(line), "", message)
        for file, line, message in _MESSAGE.findall(text)
        if file == source.path.name
    ]
    for warning in _WARNING.findall(text):
        say(f"{source.path.parent / warning}")
    if status and not problems:
        problems.append(Problem(str(source.path), None, "", text.strip()))
    return problems


def _link(work: Path, sources: Sequence[Piece]) -> list[Problem]:
    objects = [f"{_FOLDER}/{source.path.stem}.o" for source in sources]
    flags = shlex.split((work / "flags").read_text())
    script = ["-Wl,--script=arch/um/kernel/vmlinux.lds", "-o", "linux"]
    kernel = ["-Wl,--whole-archive", "vmlinux.o", *objects, "init/version-timestamp.o", "-Wl,--no-whole-archive"]
    status, text = _run(work, ["gcc", *flags, *script, *kernel, "-lutil", "-lrt", "-lpthread"])
    if not status:
        return []
    paths = {source.path.stem: str(source.path) for source in sources}
    found = [Problem(paths[name], None, "", message) for name, message in dict.fromkeys(_UNDEFINED.findall(text))]
    return found or [Problem(path, None, "", text.strip()) for path in list(paths.values())[:1]]


def _run(work: Path, argv: list[str]) -> tuple[int, str]:
    """Exit status of a program, and all that it wrote."""
    done = subprocess.run(
        argv,
        cwd=work,
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return done.returncode, done.stdout
