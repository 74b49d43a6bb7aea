# SPDX-License-Identifier: Apache-2.0
"""The kernels in the cache folder: built once for each target, source, patch series and configuration.

Owns the layout of ``<cache>/kernels/<key>/``: the product (the executable ``linux`` for the guest, a Debian package for
x86-64), the guest's kit, and ``kernel.json``, written last. Must not decide a kernel's content: its recipe does.
"""

from __future__ import annotations

import hashlib
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

from longfat.builds.kernel_kit import KIT, pack_kit
from longfat.builds.kernel_recipe import KERNELS_FOLDER, Recipe
from longfat.builds.kernel_source import Source, find_source, has_source, known_source
from longfat.builds.kernel_targets import GUEST, Target
from longfat.builds.packages import require_packages
from longfat.cache import cache_folder
from longfat.catalog.kernels import DEFAULT_KERNEL
from longfat.errors import RigError
from longfat.locks import held
from longfat.store import in_cache, keep

FORMAT = 1
SIZE = "2 GB"  # while it is built
LOG_TAIL_LINES = 25
# Runs "$@" as the leader of a process group that ends with the process that started it, whatever ended that.
LEASH = ["/usr/bin/setpriv", "--pdeathsig", "TERM", "/bin/sh", "-c", 'trap "kill -KILL 0" TERM; "$@" & wait $!', "sh"]


@dataclass(frozen=True)
class KernelBuild:
    """A usable kernel: ``path`` is the target's product, ``digest`` the SHA-256 (hex) of its inputs.

    ``version`` is the source's release; ``pinned`` states whether the references were made with this release.
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
    kernels_folder: Path = KERNELS_FOLDER,
    copy: str = "",
    say: Callable[[str], None] = lambda line: None,
) -> KernelBuild:
    """The kernel ``name`` of ``kernels_folder`` for ``target``: from the cache folder, or built now.

    ``patches`` follow those of its series. A kernel that is there is used without writing to the cache folder, which
    may be another user's. ``copy`` is an ending of the folder of one that is built once more.
    Raises RigError when the kernel has no configuration for the target, packages for the build are missing, no
    source is reachable, a patch does not apply, the build fails or the cache is damaged.
    """
    recipe = Recipe(name, kernels_folder, tuple(patches))
    settings = recipe.settings()
    folder = cache_folder() / "kernels"
    source = _source_at_hand(recipe, folder, target)
    if source is None:
        with in_cache(folder, "the kernel's source", SIZE), held(folder / "lock"):
            source = find_source(settings, folder, say)
    if source.version != settings["pinned"]:
        say(f"warning: kernel source is {source.version}, the references were made with {settings['pinned']}")
    digest = recipe.digest(source, target)
    result = folder / f"{digest[:32]}{copy}"

    def make(new: Path) -> None:
        if target.packages:
            require_packages(kernels_folder / target.packages)
        say(f"building the {source.version} {target.what}")
        _build(recipe, target, source, new, result.with_suffix(".log"), digest)

    lock = folder / f"{target.name}.lock"  # its own: a package takes minutes, a guest is needed now
    keep(result, make, f"the {target.what}", SIZE, lock=lock)
    return load_kernel(recipe, target, result, digest, pinned=source.version == settings["pinned"])


def _source_at_hand(recipe: Recipe, folder: Path, target: Target) -> Source | None:
    """The source, when neither a download nor a look into its tarball is needed.

    Where there is no tarball, a kernel that was built from one, with the same patches and configuration, names its
    release; a kernel of the pinned release comes first.
    """
    settings = recipe.settings()
    if has_source(settings, folder):
        return known_source(settings, folder)
    sources = []
    for path in sorted(folder.glob("*/kernel.json")):
        try:
            facts = json.loads(path.read_text())
            source = Source(path, str(facts["version"]), str(facts["source_sha256"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # damaged: as if it were not there
        if path.parent.name == recipe.digest(source, target)[:32]:
            sources.append(source)
    return min(sources, key=lambda source: source.version != settings["pinned"], default=None)


def _build(recipe: Recipe, target: Target, source: Source, new: Path, log: Path, digest: str) -> None:
    """Unpack, patch, configure and compile next to ``new``, which gets the result; the log stays when that fails."""
    tree = new.parent / "linux"
    tree.mkdir()
    with log.open("wb") as output:
        run = _Runner(tree, log, output)
        run(["tar", "-xf", str(source.path), "--strip-components=1"])
        for patch in recipe.patches():
            run(["patch", "-p1", "--forward", "--fuzz=0", "-s", "-i", str(patch)])
        wanted = tree / "wanted.config"
        wanted.write_text("".join(path.read_text() for path in recipe.fragments(target)))
        make = ["make", "-s", f"ARCH={target.arch}", f"-j{os.cpu_count() or 1}"]
        run([*make, target.defaults], KCONFIG_ALLCONFIG=str(wanted))
        check_configuration(wanted.read_text(), (tree / ".config").read_text())
        product = target.compile(run, make, tree, source.version, digest)
        new.mkdir()
        if target is GUEST:
            pack_kit(run, make, tree, new / KIT)
    shutil.move(product, new / product.name)
    facts = {
        "format": FORMAT,
        "target": target.name,
        "digest": digest,
        "version": source.version,
        "release": (tree / "include/config/kernel.release").read_text().strip(),
        "source_sha256": source.sha256,
        "config_sha256": _sha256(tree / ".config"),
    }
    write_facts(new, target, facts)
    log.unlink()


def write_facts(new: Path, target: Target, facts: Mapping[str, object]) -> None:
    """Write what is known of a kernel next to it, with the digest of its product."""
    [product] = new.glob(target.product)
    facts = {**facts, f"{target.kind}_sha256": _sha256(product)}
    (new / "kernel.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


class _Runner:
    """Runs the steps of a build in its folder; a failed one is a RigError with the end of the log.

    An interrupted step ends with everything that it started, so nothing writes into the folder any more. The step of a
    killed process ends in the same way.
    """

    def __init__(self, folder: Path, log: Path, output: IO[bytes]) -> None:
        self.folder, self.log, self.output = folder, log, output

    def __call__(self, argv: list[str], **environment: str) -> None:
        if shutil.which(argv[0]) is None:
            raise self._failed(f"the program {argv[0]} is not installed")
        status = self._run(argv, {**os.environ, "LC_ALL": "C", **environment})
        if status:
            raise self._failed(f"{shlex.join(argv)} ended with exit status {status}")

    def _run(self, argv: list[str], environment: dict[str, str]) -> int:
        step = subprocess.Popen(
            [*LEASH, *argv],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        try:
            return step.wait()
        except BaseException:
            with suppress(ProcessLookupError):  # it may have just ended
                os.killpg(step.pid, signal.SIGKILL)
            step.wait()
            raise

    def _failed(self, what: str) -> RigError:
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
        return RigError(f"kernel build failed: {what}\n{tail}", where=str(self.log))


def check_configuration(wanted: str, got: str) -> None:
    """Every line of the fragments must have survived Kconfig. Raises RigError naming those that did not."""
    lost = []
    lines = set(got.splitlines())
    for line in wanted.splitlines():
        unset = re.fullmatch(r"# (CONFIG_\w+) is not set", line)
        kept = not any(other.startswith(f"{unset[1]}=") for other in lines) if unset else line in lines
        if (unset or line.startswith("CONFIG_")) and not kept:
            lost.append(line)
    if lost:
        raise RigError(f"the kernel does not accept these options: {', '.join(lost)}")


def load_kernel(recipe: Recipe, target: Target, result: Path, digest: str, *, pinned: bool) -> KernelBuild:
    """The kernel in ``result``, after a comparison with its build. Raises RigError when it is damaged."""
    try:
        facts = json.loads((result / "kernel.json").read_text())
        [product] = result.glob(target.product)
        built = facts["format"], facts["digest"], facts[f"{target.kind}_sha256"]
        intact = built == (FORMAT, digest, _sha256(product))
        version = str(facts["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(recipe, target, result, f"kernel.json or {target.product} cannot be read ({error})") from error
    if not intact:
        raise _damaged(recipe, target, result, f"the {target.kind} is not the one that was built")
    return KernelBuild(product, digest, version, pinned)


def _damaged(recipe: Recipe, target: Target, result: Path, what: str) -> RigError:
    again = "./just kernel" + ("" if target is GUEST else f" --target {target.name}")
    again += "" if recipe.name == DEFAULT_KERNEL else f" --kernel {recipe.name}"
    return RigError(f"the kernel is damaged: {what}", where=str(result), hint=f"rm -r {result} && {again}")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
