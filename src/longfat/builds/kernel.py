# SPDX-License-Identifier: Apache-2.0
"""The kernels in the cache folder: built once for each target, source, patch series and configuration.

Owns the layout of ``<cache>/kernels/<key>/``: what was built (the executable ``linux`` for the guest, a Debian
package for x86-64) and ``kernel.json``, written last. Must not decide what is in a kernel: ``kernels/`` does.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from longfat.builds.kernel_source import Source, find_source, has_source, known_source
from longfat.builds.kernel_targets import GUEST, Target
from longfat.builds.packages import require_packages
from longfat.cache import cache_folder
from longfat.errors import RigError

KERNELS_FOLDER = Path(__file__).resolve().parents[3] / "kernels"
FORMAT = 1
LOG_TAIL_LINES = 25
# Runs "$@" as the leader of a process group that ends with the process that started it, whatever ended that.
LEASH = ["/usr/bin/setpriv", "--pdeathsig", "TERM", "/bin/sh", "-c", 'trap "kill -KILL 0" TERM; "$@" & wait $!', "sh"]


@dataclass(frozen=True)
class KernelBuild:
    """A usable kernel: ``path`` is the target's product, ``digest`` the SHA-256 (hex) of what it was built from.

    ``version`` is the source's release; ``pinned`` tells whether it is the one the references were made with.
    """

    path: Path
    digest: str
    version: str
    pinned: bool


def build_kernel(
    target: Target = GUEST,
    *,
    kernels_folder: Path = KERNELS_FOLDER,
    say: Callable[[str], None] = lambda line: None,
) -> KernelBuild:
    """The kernel of ``kernels_folder`` for ``target``: from the cache folder, or built now.

    A kernel that is there is used without writing to the cache folder, which may be another user's.
    Raises RigError when packages for the build are missing, no source is reachable, a patch does not apply, the
    build fails or the cache is damaged.
    """
    settings = tomllib.loads((kernels_folder / "source.toml").read_text(encoding="utf-8"))
    folder = cache_folder() / "kernels"
    source = _source_at_hand(settings, folder, kernels_folder, target)
    if source is None:
        with _one_process(folder / "lock"):
            source = find_source(settings, folder, say)
    if source.version != settings["pinned"]:
        say(f"warning: kernel source is {source.version}, the references were made with {settings['pinned']}")
    digest = build_digest(source, kernels_folder, target)
    result = folder / digest[:32]
    if not result.exists():
        with _one_process(folder / f"{target.name}.lock"):  # its own: a package takes minutes, a guest is needed now
            if not result.exists():
                if target.packages:
                    require_packages(kernels_folder / target.packages)
                say(f"building the {source.version} {target.what}")
                _build(target, source, kernels_folder, result, digest)
    return _load(target, result, digest, pinned=source.version == settings["pinned"])


def _source_at_hand(settings: dict[str, str], folder: Path, kernels_folder: Path, target: Target) -> Source | None:
    """The source, when neither a download nor a look into its tarball is needed.

    Where there is no tarball, a kernel that was built of one, with the same patches and configuration, says which
    it was; one of the pinned release comes first.
    """
    if has_source(settings, folder):
        return known_source(settings, folder)
    sources = []
    for path in sorted(folder.glob("*/kernel.json")):
        try:
            facts = json.loads(path.read_text())
            source = Source(path, str(facts["version"]), str(facts["source_sha256"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # damaged: as if it were not there
        if path.parent.name == build_digest(source, kernels_folder, target)[:32]:
            sources.append(source)
    return min(sources, key=lambda source: source.version != settings["pinned"], default=None)


@contextmanager
def _one_process(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``; another process waits for its end."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as error:
        raise RigError(
            f"kernels cannot be kept in the cache folder: {error.strerror}",
            where=str(path.parent),
            hint="set LONGFAT_CACHE to a folder of your own",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_digest(source: Source, kernels_folder: Path, target: Target = GUEST) -> str:
    """SHA-256 over source, patches and the target's configuration: the kernel's identity."""
    digest = hashlib.sha256(source.sha256.encode())
    for path in [*patches(kernels_folder), *fragments(kernels_folder, target)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def patches(kernels_folder: Path) -> list[Path]:
    """The patches in the order of the series file. Raises RigError when one is missing."""
    names = (kernels_folder / "series").read_text(encoding="utf-8").split()
    paths = [kernels_folder / "patches" / name for name in names]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise RigError(f"patches named in the series are missing: {', '.join(missing)}", where=str(kernels_folder))
    return paths


def fragments(kernels_folder: Path, target: Target = GUEST) -> list[Path]:
    """The configuration fragments by name: those of every kernel, and those of the target's own folder."""
    config = kernels_folder / "config"
    return sorted([*config.glob("*.config"), *(config / target.name).glob("*.config")], key=lambda path: path.name)


def _build(target: Target, source: Source, kernels_folder: Path, result: Path, digest: str) -> None:
    """Unpack, patch, configure and compile in a temporary folder, then rename the result into place."""
    with tempfile.TemporaryDirectory(prefix=".build-", dir=result.parent) as scratch:
        tree = Path(scratch) / "linux"
        tree.mkdir()
        log = result.parent / f"{result.name}.log"
        with log.open("wb") as output:
            run = _Runner(tree, log, output)
            run(["tar", "-xf", str(source.path), "--strip-components=1"])
            for patch in patches(kernels_folder):
                run(["patch", "-p1", "--forward", "--fuzz=0", "-s", "-i", str(patch)])
            wanted = tree / "wanted.config"
            wanted.write_text("".join(path.read_text() for path in fragments(kernels_folder, target)))
            make = ["make", "-s", f"ARCH={target.arch}", f"-j{os.cpu_count() or 1}"]
            run([*make, target.defaults], KCONFIG_ALLCONFIG=str(wanted))
            check_configuration(wanted.read_text(), (tree / ".config").read_text())
            product = target.compile(run, make, tree, source.version, digest)
        partial = Path(scratch) / "result"
        partial.mkdir()
        shutil.move(product, partial / product.name)
        facts = {
            "format": FORMAT,
            "target": target.name,
            "digest": digest,
            "version": source.version,
            "release": (tree / "include/config/kernel.release").read_text().strip(),
            "source_sha256": source.sha256,
            "config_sha256": _sha256(tree / ".config"),
            f"{target.kind}_sha256": _sha256(partial / product.name),
        }
        (partial / "kernel.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
        partial.rename(result)
        log.unlink()


class _Runner:
    """Runs the steps of a build in its folder; a failed one is a RigError with the end of the log.

    An interrupted step ends with all that it started, so that nothing writes into the folder any more; so does the
    step of a process that was killed.
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
        raise RigError(f"the kernel does not take these options: {', '.join(lost)}")


def _load(target: Target, result: Path, digest: str, *, pinned: bool) -> KernelBuild:
    """The kernel in ``result`` after comparing it with what was built. Raises RigError when it is damaged."""
    try:
        facts = json.loads((result / "kernel.json").read_text())
        [product] = result.glob(target.product)
        built = facts["format"], facts["digest"], facts[f"{target.kind}_sha256"]
        intact = built == (FORMAT, digest, _sha256(product))
        version = str(facts["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(target, result, f"kernel.json or {target.product} cannot be read ({error})") from error
    if not intact:
        raise _damaged(target, result, f"the {target.kind} is not the one that was built")
    return KernelBuild(product, digest, version, pinned)


def _damaged(target: Target, result: Path, what: str) -> RigError:
    again = "./just kernel" if target is GUEST else f"./just kernel --target {target.name}"
    return RigError(f"the kernel is damaged: {what}", where=str(result), hint=f"rm -r {result} && {again}")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
