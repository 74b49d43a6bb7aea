# SPDX-License-Identifier: Apache-2.0
"""Kernels in the cache folder, built once per target, source, patch series and configuration.

Owns the layout of ``<cache>/kernels/<key>/``: the product (the executable ``linux`` of a guest, a Debian package for
x86-64), the guest's kit, and ``kernel.json``, written last. The recipe defines a kernel's content.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from longfat.builds.archive import archived
from longfat.builds.kernel_recipe import KERNELS_FOLDER, Recipe
from longfat.builds.kernel_source import Source, find_source, pack, tree_source
from longfat.builds.kernel_targets import GUEST, Target
from longfat.builds.programs import require_packages
from longfat.study.catalog.kernels import DEFAULT_KERNEL, Tree
from longfat.system.cache import cache_folder
from longfat.system.errors import RigError
from longfat.system.files import file_sha256
from longfat.system.store import hold_patiently, in_cache, keep

FORMAT = 1
SIZE = "2 GB"  # during the build
LEAST_FREE = 64 << 20  # bytes; with fewer, the full disk is probably the cause of a failure
LOG_TAIL_LINES = 25
PROGRESS_S = 20.0
_PATCHED = re.compile(r"(?:checking|patching) file (\S+)")
_REJECTED = re.compile(
    r"Hunk #\d+ (?:FAILED|ignored)|can't find file|Reversed .* detected|\d+ out of \d+ hunks? ignored"
)
# Run "$@" in a process group that ends with the process that started it, even if that is killed.
LEASH = ["/usr/bin/setpriv", "--pdeathsig", "TERM", "/bin/sh", "-c", 'trap "kill -KILL 0" TERM; "$@" & wait $!', "sh"]


@dataclass(frozen=True)
class KernelBuild:
    """A usable kernel: ``path`` is the target's product, ``digest`` the SHA-256 (hex) of its inputs.

    ``version`` is the source's release; ``pinned`` states whether it is the source behind the evidence.
    """

    path: Path
    digest: str
    version: str
    pinned: bool


def build_kernel(
    target: Target = GUEST,
    name: str = DEFAULT_KERNEL,
    *,
    patches: Sequence[Path] = (),
    tree: Tree | None = None,
    kernels_folder: Path = KERNELS_FOLDER,
    say: Callable[[str], None] = lambda line: None,
) -> KernelBuild:
    """Return the kernel ``name`` of ``kernels_folder`` for ``target``, from the cache folder or built now.

    ``patches`` follow its series, and a ``tree`` replaces its source. Using a kernel of the cache folder writes nothing
    there, because the folder may belong to another user. Raises RigError if the kernel has no configuration for the
    target, packages are missing, no source is available, a patch does not apply, the build fails or the cache is
    damaged.
    """
    recipe = Recipe(name, kernels_folder, tuple(patches))
    settings, folder = recipe.settings(), cache_folder() / "kernels"
    source = tree_source(tree) if tree else _source_of_built(recipe, folder, target)
    if source is None:
        with in_cache(folder, "the kernel's source", SIZE), hold_patiently(folder / "lock"):
            source = find_source(settings, folder, say)
    if tree is None and not recipe.is_pinned(source):
        other = f"a tarball of {source.version} with SHA-256 {source.sha256[:16]}..."
        say(f"warning: the kernel source is {other}; the evidence was made with another one of {settings['pinned']}")
    digest = recipe.digest(source, target)
    result = folder / digest[:32]

    def make(new: Path) -> None:
        if stored := archived("cache/kernels", result.name):
            shutil.copytree(stored, new)
            return
        if target.packages:
            require_packages(kernels_folder / target.packages)
        packed = pack(tree, new.parent / "source.tar") if tree else source
        say(f"building the {packed.version} {target.what}")
        _build(recipe, target, packed, new, result.with_suffix(".log"), digest, say, tree.commit if tree else None)
        if recipe.digest(source, target) != digest:
            raise RigError("a patch or the configuration changed during the build", hint="start again")

    lock = folder / f"{target.name}.lock"  # one per target: nobody who needs a guest waits minutes for a package
    keep(result, make, f"the {target.what}", SIZE, lock=lock)
    return load_kernel(name, target, result, digest, pinned=recipe.is_pinned(source))


def _source_of_built(recipe: Recipe, folder: Path, target: Target) -> Source | None:
    """Return the source of a kernel in the cache folder, or in the archive, with the same patches and configuration.

    The pinned one comes first, and users' trees do not count. No tarball is needed: the path is the kernel's.
    """
    built: dict[tuple[str, str], Path] = {}
    folders = [folder, *([stored] if (stored := archived("cache/kernels")) else [])]
    for path in sorted(path for one in folders for path in one.glob("*/kernel.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):  # a damaged kernel is ignored here
            facts = json.loads(path.read_text())
            if "tree" not in facts:
                built[str(facts["version"]), str(facts["source_sha256"])] = path
    sources = [Source(path, *facts) for facts, path in built.items()]
    digests = {source: recipe.digest(source, target)[:32] for source in sources}
    same = [source for source, digest in digests.items() if any((one / digest).is_dir() for one in folders)]
    return min(same, key=lambda source: not recipe.is_pinned(source), default=None)


def _build(
    recipe: Recipe,
    target: Target,
    source: Source,
    new: Path,
    log: Path,
    digest: str,
    say: Callable[[str], None],
    commit: str | None,
) -> None:
    """Unpack, patch, configure and compile into ``new``; the log remains after a failure.

    The ``commit`` of a user's tree is one of the facts, so that its kernel never stands for one of ``kernels/``.
    """
    tree = new.parent / "linux"
    tree.mkdir()
    with log.open("wb") as output:
        run = _Runner(tree, log, output, say)
        run(["tar", "-xf", str(source.path), "--strip-components=1"])
        _apply(recipe.patches(), run, log)
        wanted = tree / "wanted.config"
        wanted.write_text("".join(path.read_text() for path in recipe.fragments(target)))
        make = ["make", "-s", f"ARCH={target.arch}", f"-j{os.cpu_count() or 1}"]
        run([*make, target.defaults], KCONFIG_ALLCONFIG=str(wanted))
        check_configuration(wanted.read_text(), (tree / ".config").read_text())
        products = target.compile(run, make, tree, source.version, digest)
    new.mkdir()
    for product in products:
        shutil.move(product, new / product.name)
    facts = {
        "format": FORMAT,
        "target": target.name,
        "digest": digest,
        "version": source.version,
        "release": (tree / "include/config/kernel.release").read_text().strip(),
        "source_sha256": source.sha256,
        "config_sha256": file_sha256(tree / ".config"),
        "compiler": _compiler(tree),
    }
    if commit:
        facts["tree"] = commit
    write_facts(new, target, facts)
    log.unlink()


def _apply(patches: Sequence[Path], run: _Runner, log: Path) -> None:
    """Apply all patches. Raises RigError with all hunks that the source rejects."""
    rejected = []
    for patch in patches:
        start = log.stat().st_size
        try:
            run(["patch", "-p1", "--forward", "--fuzz=0", "--reject-file=-", "-i", str(patch)])
        except RigError:
            told = log.read_bytes()[start:].decode(errors="replace")
            rejected += [f"{patch}: {line}" for line in _rejections(told) or [told.strip()]]
    if rejected:
        count = f"{len(rejected)} part{'s' if len(rejected) > 1 else ''} of patches"
        raise RigError(f"the source rejects {count}:\n" + "\n".join(rejected), where=str(log))


def _rejections(told: str) -> list[str]:
    """Return what patch(1) says that it rejected: hunks, each with its file."""
    file, found = "", []
    for line in told.splitlines():
        if match := _PATCHED.match(line):
            file = match[1]
        elif _REJECTED.match(line):
            found.append(f"{file}: {line}" if file else line)
    return found


def write_facts(new: Path, target: Target, facts: Mapping[str, object]) -> None:
    """Write the facts of a kernel next to it, with the digest of its product."""
    [product] = new.glob(target.product)
    facts = {**facts, f"{target.kind}_sha256": file_sha256(product)}
    (new / "kernel.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


def build_environment() -> dict[str, str]:
    """Return the environment of a build, without variables of the user that change a kernel, such as KCFLAGS."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C"}


def _compiler(folder: Path) -> str:
    """Return name and version of the compiler; "" without one."""
    with suppress(OSError, subprocess.CalledProcessError):
        text = subprocess.check_output(["gcc", "--version"], cwd=folder, env=build_environment(), text=True)
        return next(iter(text.splitlines()), "")
    return ""


class _Runner:
    """Runner of a build's steps in its folder. A failed step raises RigError with the end of the log.

    A step ends with all its processes when it is interrupted or this process is killed, so that nothing writes into the
    folder afterwards.
    """

    def __init__(self, folder: Path, log: Path, output: IO[bytes], say: Callable[[str], None]) -> None:
        self.folder, self.log, self.output, self.say = folder, log, output, say

    def __call__(self, argv: list[str], **environment: str) -> None:
        if shutil.which(argv[0]) is None:
            raise self._failed(f"the program {argv[0]} is not installed")
        step = subprocess.Popen(
            [*LEASH, *argv],
            cwd=self.folder,
            env={**build_environment(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        try:
            status = self._waited(step)
        except BaseException:
            with suppress(ProcessLookupError):  # it may have just ended
                os.killpg(step.pid, signal.SIGKILL)
            step.wait()
            raise
        if status:
            raise self._failed(f"{shlex.join(argv)} ended with exit status {status}")

    def _waited(self, step: subprocess.Popen[bytes]) -> int:
        """Wait for a step to end, with a word on its progress from time to time."""
        while True:
            with suppress(subprocess.TimeoutExpired):
                return step.wait(PROGRESS_S)
            self.say(f"  {count_objects(self.folder)} files compiled")

    def _failed(self, what: str) -> RigError:
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
        free = shutil.disk_usage(self.folder).free
        full = f"; only {free >> 20} MB of disk are free, and it needs {SIZE}" if free < LEAST_FREE else ""
        return RigError(f"kernel build failed: {what}{full}\n{tail}", where=str(self.log))


def count_objects(tree: Path) -> int:
    """Return the number of object files below ``tree``, in which make still creates and removes folders."""
    return sum(name.endswith(".o") for _, _, names in os.walk(tree) for name in names)  # ignores removed folders


def check_configuration(wanted: str, got: str) -> None:
    """Raise RigError with all options of the fragments that Kconfig dropped."""
    lines = set(got.splitlines())
    enabled = {line.split("=", 1)[0] for line in lines if line.startswith("CONFIG_")}
    lost = [
        line
        for line in wanted.splitlines()
        if (line.startswith("CONFIG_") and line not in lines)
        or ((unset := re.fullmatch(r"# (CONFIG_\w+) is not set", line)) and unset[1] in enabled)
    ]
    if lost:
        raise RigError(f"the kernel does not accept these options: {', '.join(lost)}")


def load_kernel(name: str, target: Target, result: Path, digest: str, *, pinned: bool) -> KernelBuild:
    """Return the kernel in ``result`` after comparing it with its build. Raises RigError if it is damaged."""
    try:
        facts = json.loads((result / "kernel.json").read_text())
        [product] = result.glob(target.product)
        built = facts["format"], facts["digest"], facts[f"{target.kind}_sha256"]
        intact = built == (FORMAT, digest, file_sha256(product))
        fault = None if intact else f"the {target.kind} is not the one that was built"
        version = str(facts["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        fault = f"kernel.json or {target.product} cannot be read ({error})"
    if fault:
        again = "./just build kernel" + ("" if target is GUEST else f" --target {target.name}")
        again += "" if name == DEFAULT_KERNEL else f" --kernel {name}"
        raise RigError(f"the kernel is damaged: {fault}", where=str(result), hint=f"rm -r {result} && {again}")
    return KernelBuild(product, digest, version, pinned)
