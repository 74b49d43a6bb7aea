# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel in the cache folder: built once for each source, patch series and configuration.

Owns the layout of ``<cache>/kernels/<key>/``: ``linux`` (the ARCH=um kernel) and ``kernel.json``, written last.
Must not decide what is in the kernel: ``kernels/`` does.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from longfat.cache import cache_folder
from longfat.errors import RigError

KERNELS_FOLDER = Path(__file__).resolve().parents[3] / "kernels"
FORMAT = 1
LOG_TAIL_LINES = 25


@dataclass(frozen=True)
class KernelBuild:
    """A usable kernel: ``path`` is its executable, ``digest`` the SHA-256 (hex) of what it was built from.

    ``version`` is the source's release; ``pinned`` tells whether it is the one the references were made with.
    """

    path: Path
    digest: str
    version: str
    pinned: bool


@dataclass(frozen=True)
class Source:
    """A kernel source tarball: where it is, its release and its SHA-256 (hex)."""

    path: Path
    version: str
    sha256: str


def build_kernel(
    *, kernels_folder: Path = KERNELS_FOLDER, say: Callable[[str], None] = lambda line: None
) -> KernelBuild:
    """The kernel of ``kernels_folder``: from the cache folder, or built now (about two minutes on two cores).

    Raises RigError when no source is reachable, a patch does not apply, the build fails or the cache is damaged.
    """
    settings = tomllib.loads((kernels_folder / "source.toml").read_text(encoding="utf-8"))
    folder = cache_folder() / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise RigError(
            f"kernels cannot be kept in the cache folder: {error.strerror}",
            where=str(folder),
            hint="set LONGFAT_CACHE to a folder of your own",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        source = find_source(settings, folder, say)
        if source.version != settings["pinned"]:
            say(f"warning: kernel source is {source.version}, the references were made with {settings['pinned']}")
        digest = build_digest(source, kernels_folder)
        target = folder / digest[:32]
        if not target.exists():
            say(f"building the {source.version} guest kernel (about two minutes on two cores)")
            _build(source, kernels_folder, target, digest)
    return _load(target, digest, pinned=source.version == settings["pinned"])


def build_digest(source: Source, kernels_folder: Path) -> str:
    """SHA-256 over source, patches and configuration: the kernel's identity."""
    digest = hashlib.sha256(source.sha256.encode())
    for path in [*patches(kernels_folder), *fragments(kernels_folder)]:
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


def fragments(kernels_folder: Path) -> list[Path]:
    """The configuration fragments, by name."""
    return sorted((kernels_folder / "config").glob("*.config"))


def find_source(settings: dict[str, str], folder: Path, say: Callable[[str], None]) -> Source:
    """The distribution's tarball, else the pinned release of kernel.org kept in ``folder``. Raises RigError."""
    path = Path(settings["distribution_tarball"])
    if not path.is_file():
        path = folder / f"linux-{settings['pinned']}.tar.xz"
        if not path.is_file():
            _download(settings, path, say)
    return _described(path, folder)


def _described(path: Path, folder: Path) -> Source:
    """Version and digest of a tarball; remembered in ``folder`` by size and time, as reading it takes a second."""
    facts = path.stat()
    memory = folder / "sources.json"
    key = f"{path}:{facts.st_size}:{facts.st_mtime_ns}"
    try:
        known = json.loads(memory.read_text())
    except (OSError, ValueError):
        known = {}
    if key not in known:
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        known[key] = [_release(path), sha256]
        partial = memory.with_suffix(".partial")
        partial.write_text(json.dumps(known))
        partial.replace(memory)
    version, sha256 = known[key]
    return Source(path, version, sha256)


def _release(path: Path) -> str:
    """VERSION.PATCHLEVEL.SUBLEVEL of the Makefile in the tarball's top folder."""
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                if re.fullmatch(r"[^/]+/Makefile", member.name):
                    makefile = tar.extractfile(member)
                    assert makefile is not None
                    text = makefile.read(2000).decode()
                    return ".".join(re.findall(r"^(?:VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", text, re.M))
    except (tarfile.TarError, EOFError, lzma.LZMAError) as error:
        raise RigError(f"the kernel source cannot be unpacked: {error}", where=str(path)) from error
    raise RigError("the tarball holds no kernel source", where=str(path))


def _download(settings: dict[str, str], path: Path, say: Callable[[str], None]) -> None:
    """Fetch the pinned release and compare it with kernel.org's list of SHA-256 sums."""
    url = settings["url"].format(version=settings["pinned"])
    say(f"fetching {url}")
    partial = path.with_suffix(".partial")
    try:
        with urllib.request.urlopen(settings["sums_url"], timeout=60) as answer:
            sums = answer.read().decode()
        with urllib.request.urlopen(url, timeout=60) as answer, partial.open("wb") as stream:
            shutil.copyfileobj(answer, stream)
    except (urllib.error.URLError, OSError) as error:
        raise RigError(
            f"no kernel source: {settings['distribution_tarball']} does not exist and {url} cannot be fetched: {error}",
            hint=f"apt-get install linux-source-{settings['series']}",
        ) from error
    with partial.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if f"{found}  {url.rsplit('/', 1)[1]}" not in sums:
        partial.unlink()
        raise RigError(f"the SHA-256 of {url} is {found}, which kernel.org does not list")
    partial.rename(path)


def _build(source: Source, kernels_folder: Path, target: Path, digest: str) -> None:
    """Unpack, patch, configure and compile in a temporary folder, then rename the result into place."""
    with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as scratch:
        work = Path(scratch)
        log = target.parent / f"{target.name}.log"
        with log.open("wb") as output:
            run = _Runner(work, log, output)
            run(["tar", "-xf", str(source.path), "--strip-components=1"])
            for patch in patches(kernels_folder):
                run(["patch", "-p1", "--forward", "--fuzz=0", "-s", "-i", str(patch)])
            wanted = work / "wanted.config"
            wanted.write_text("".join(path.read_text() for path in fragments(kernels_folder)))
            make = ["make", "-s", "ARCH=um", f"-j{os.cpu_count() or 1}"]
            run([*make, "allnoconfig"], KCONFIG_ALLCONFIG=str(wanted))
            check_configuration(wanted.read_text(), (work / ".config").read_text())
            run(
                [*make, "linux"],
                KBUILD_BUILD_TIMESTAMP="@0",
                KBUILD_BUILD_USER="longfat",
                KBUILD_BUILD_HOST="longfat",
            )
            run(["strip", "linux"])
        result = work / "result"
        result.mkdir()
        shutil.move(work / "linux", result / "linux")
        facts = {
            "format": FORMAT,
            "digest": digest,
            "version": source.version,
            "source_sha256": source.sha256,
            "executable_sha256": _sha256(result / "linux"),
        }
        (result / "kernel.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
        result.rename(target)
        log.unlink()


class _Runner:
    """Runs the steps of a build in its folder; a failed one is a RigError with the end of the log."""

    def __init__(self, folder: Path, log: Path, output: object) -> None:
        self.folder, self.log, self.output = folder, log, output

    def __call__(self, argv: list[str], **environment: str) -> None:
        try:
            subprocess.run(
                argv,
                cwd=self.folder,
                env={**os.environ, "LC_ALL": "C", **environment},
                stdin=subprocess.DEVNULL,
                stdout=self.output,  # type: ignore[call-overload]
                stderr=subprocess.STDOUT,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
            raise RigError(f"kernel build failed: {error}\n{tail}", where=str(self.log)) from error


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


def _load(target: Path, digest: str, *, pinned: bool) -> KernelBuild:
    """The kernel in ``target`` after comparing it with what was built. Raises RigError when it is damaged."""
    try:
        facts = json.loads((target / "kernel.json").read_text())
        built = facts["format"], facts["digest"], facts["executable_sha256"]
        intact = built == (FORMAT, digest, _sha256(target / "linux"))
        version = str(facts["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(target, f"kernel.json or linux cannot be read ({error})") from error
    if not intact:
        raise _damaged(target, "the executable is not the one that was built")
    return KernelBuild(target / "linux", digest, version, pinned)


def _damaged(target: Path, what: str) -> RigError:
    return RigError(f"the kernel is damaged: {what}", where=str(target), hint=f"rm -r {target} && ./just kernel")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
