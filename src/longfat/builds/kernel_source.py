# SPDX-License-Identifier: Apache-2.0
"""The kernel's source: where its tarball is, which release it holds, its digest.

Owns the search and the download. Must not unpack it: ``longfat.builds.kernel`` does.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import shutil
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from longfat.builds.kernel_package import fetch_source_package
from longfat.errors import RigError
from longfat.files import write_whole

MEMORY = "sources.json"


@dataclass(frozen=True)
class Source:
    """A kernel source tarball: where it is, its release and its SHA-256 (hex)."""

    path: Path
    version: str
    sha256: str


def find_source(settings: dict[str, str], folder: Path, say: Callable[[str], None]) -> Source:
    """The distribution's tarball, else its package of another suite, else the pinned release of kernel.org.

    The last two are kept in ``folder``. Raises RigError when none of them exists.
    """
    if not has_source(settings, folder) and not _fetch_package(settings, folder, say):
        _download(settings, _tarball(settings, folder), say)
    return known_source(settings, folder) or _described(_tarball(settings, folder), folder)


def has_source(settings: dict[str, str], folder: Path) -> bool:
    """Whether ``find_source`` finds a tarball without a download."""
    return _tarball(settings, folder).is_file()


def known_source(settings: dict[str, str], folder: Path) -> Source | None:
    """The result of ``find_source``, if it has described this tarball before; nothing is written."""
    path = _tarball(settings, folder)
    described = _memory(folder).get(_key(path)) if path.is_file() else None
    return Source(path, *described) if described else None


def _tarball(settings: dict[str, str], folder: Path) -> Path:
    """The distribution's tarball where there is one, installed or fetched, else the place of the pinned release."""
    for tarball in (Path(settings["distribution_tarball"]), _fetched(settings, folder)):
        if tarball.is_file():
            return tarball
    return folder / f"linux-{settings['pinned']}.tar.xz"


def _fetched(settings: dict[str, str], folder: Path) -> Path:
    return folder / Path(settings["distribution_tarball"]).name


def _fetch_package(settings: dict[str, str], folder: Path, say: Callable[[str], None]) -> bool:
    """Fetch the distribution's tarball from the suite that ``settings`` may name; whether that was possible."""
    if "suite" not in settings:
        return False
    package = f"linux-source-{settings['series']}"
    say(f"fetching the package {package} of {settings['suite']}")
    try:
        file = settings["distribution_tarball"]
        fetch_source_package(package, settings["suite"], file, _fetched(settings, folder))
    except RigError as error:
        say(f"the package {package} is not available: {error.message}")
        return False
    return True


def _described(path: Path, folder: Path) -> Source:
    """Version and digest of a tarball; remembered in ``folder`` by size and time, as reading it takes a second."""
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    version = _release(path)
    write_whole(folder / MEMORY, json.dumps(_memory(folder) | {_key(path): [version, sha256]}))
    return Source(path, version, sha256)


def _memory(folder: Path) -> dict[str, list[str]]:
    try:
        return dict(json.loads((folder / MEMORY).read_text()))
    except (OSError, ValueError):
        return {}


def _key(path: Path) -> str:
    facts = path.stat()
    return f"{path}:{facts.st_size}:{facts.st_mtime_ns}"


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
    raise RigError("the tarball contains no kernel source", where=str(path))


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
            hint=f"apt-get install linux-source-{settings['series']}"
            + (f", which is in Debian's {settings['suite']}" if "suite" in settings else ""),
        ) from error
    with partial.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if f"{found}  {url.rsplit('/', 1)[1]}" not in sums:
        partial.unlink()
        raise RigError(f"the SHA-256 of {url} is {found}, which kernel.org does not list")
    partial.rename(path)
