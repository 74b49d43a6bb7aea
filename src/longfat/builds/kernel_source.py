# SPDX-License-Identifier: Apache-2.0
"""The source of a kernel: tarball, release and digest.

Owns the search and the download; ``longfat.builds.kernel`` unpacks the tarball.
"""

from __future__ import annotations

import hashlib
import http.client
import lzma
import re
import shlex
import shutil
import tarfile
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from longfat.builds.apt import fetch_file
from longfat.builds.archive import archived
from longfat.study.catalog.kernels import Tree
from longfat.system.errors import RigError
from longfat.system.files import file_sha256
from longfat.system.processes import git


@dataclass(frozen=True)
class Source:
    """A kernel source tarball with its release and its SHA-256 (hex)."""

    path: Path
    version: str
    sha256: str


def find_source(settings: Mapping[str, str], folder: Path, say: Callable[[str], None]) -> Source:
    """Return the distribution's tarball, else its package of another suite, else the pinned release of kernel.org.

    ``folder`` keeps the download. Raises RigError if none is available.
    """
    if not _tarball(settings, folder).is_file() and not _fetch_package(settings, folder, say):
        _download(settings, _tarball(settings, folder), say)
    path = _tarball(settings, folder)
    return Source(path, _release(path), file_sha256(path))


def tree_source(tree: Tree) -> Source:
    """Return the source that a commit of a user's repository is, by its name alone: nothing is read yet.

    The commit's own hash stands for its content.
    """
    sha256 = hashlib.sha256(f"commit {tree.commit}".encode()).hexdigest()
    return Source(tree.path, "", sha256)


def pack(tree: Tree, path: Path) -> Source:
    """Write the files of the tree's commit to the tarball ``path``. Raises RigError if git cannot."""
    try:
        done = git(tree.path, "archive", "--prefix=linux/", f"--output={path.resolve()}", tree.commit)
    except OSError as error:
        raise RigError(f"git cannot be started: {error.strerror}", hint="apt-get install git") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"
        hint = f"`git -C {shlex.quote(str(tree.path))} rev-parse HEAD` prints a commit that it has"
        raise RigError(f"the commit {tree.commit} cannot be read: {said}", where=str(tree.path), hint=hint)
    return replace(tree_source(tree), path=path, version=_release(path))


def _tarball(settings: Mapping[str, str], folder: Path) -> Path:
    """Return the distribution's tarball, archived, installed or fetched, else the path of the pinned release."""
    installed = Path(settings["distribution_tarball"])
    pinned = folder / f"linux-{settings['pinned']}.tar.xz"
    stored = [found for name in (installed.name, pinned.name) if (found := archived("source", name))]
    return next((path for path in (*stored, installed, folder / installed.name) if path.is_file()), pinned)


def _fetch_package(settings: Mapping[str, str], folder: Path, say: Callable[[str], None]) -> bool:
    """Fetch the distribution's tarball from the ``suite`` in ``settings``; return whether that succeeded."""
    if "suite" not in settings:
        return False
    package, file = f"linux-source-{settings['series']}", settings["distribution_tarball"]
    say(f"fetching the package {package} of {settings['suite']}")
    try:
        fetch_file(package, settings["suite"], file, folder / Path(file).name)
    except RigError as error:
        say(f"the package {package} is not available: {error.message}")
        return False
    return True


def _release(path: Path) -> str:
    """Return VERSION.PATCHLEVEL.SUBLEVEL of the Makefile in the tarball's top folder."""
    try:
        with tarfile.open(path) as tar:
            makefile = next((member for member in tar if re.fullmatch(r"[^/]+/Makefile", member.name)), None)
            content = makefile and tar.extractfile(makefile)
            if not content:
                raise RigError("the tarball contains no kernel source", where=str(path))
            text = content.read(2000).decode()
    except (tarfile.TarError, EOFError, lzma.LZMAError) as error:
        raise RigError(f"the kernel source cannot be unpacked: {error}", where=str(path)) from error
    return ".".join(re.findall(r"^(?:VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", text, re.MULTILINE))


def _download(settings: Mapping[str, str], path: Path, say: Callable[[str], None]) -> None:
    """Fetch the pinned release and compare it with kernel.org's list of SHA-256 sums."""
    url = settings["url"].format(version=settings["pinned"])
    say(f"fetching {url}")
    partial = path.with_suffix(".partial")
    try:
        with urllib.request.urlopen(settings["sums_url"], timeout=60) as answer:
            sums = answer.read().decode()
        with urllib.request.urlopen(url, timeout=60) as answer, partial.open("wb") as stream:
            shutil.copyfileobj(answer, stream)
    except (OSError, http.client.HTTPException) as error:
        suite = f", in Debian's {settings['suite']}" if "suite" in settings else ""
        raise RigError(
            f"no kernel source: {settings['distribution_tarball']} does not exist and {url} cannot be fetched: {error}",
            hint=f"apt-get install linux-source-{settings['series']}{suite}",
        ) from error
    found = file_sha256(partial)
    if f"{found}  {url.rsplit('/', 1)[1]}" not in sums:
        partial.unlink()
        raise RigError(f"the SHA-256 of {url} is {found}, which is not in kernel.org's list")
    partial.rename(path)
