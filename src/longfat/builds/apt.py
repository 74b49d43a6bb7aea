# SPDX-License-Identifier: Apache-2.0
"""The Debian archive of this machine's apt, for packages of a suite other than the machine's own.

Must not read apt's source files, which have two formats: apt lists its sources itself. Must not change apt's state:
downloads use separate folders. Packages are checked with Debian's keyring.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from longfat.builds.programs import run_program
from longfat.system.errors import RigError

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LISTING = ("indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)", "Created-By: Packages")
ARCHIVES = ("debian", "debian-security")
"""Last parts of the addresses of Debian's archives: the origin is unknown until their lists are fetched."""
SNAPSHOTS = "https://snapshot.debian.org/archive/{archive}/{time}"


def source_lines(suite: str, snapshot: str | None = None) -> tuple[str, ...]:
    """Return the sources of ``suite``, its updates and its security fixes, for mmdebstrap.

    A ``snapshot``, such as 20261101T000000Z, selects Debian's archive as it was then. A machine without a Debian
    archive, for example with Ubuntu, has none; mmdebstrap then uses Debian's public one.
    """
    archive, security = find_archives(_listing())
    if snapshot:
        archive, security = (SNAPSHOTS.format(archive=name, time=snapshot) for name in ARCHIVES)
    if archive is None:
        return ()
    lines = _source(archive, suite), _source(archive, f"{suite}-updates")
    return (*lines, _source(security, f"{suite}-security")) if security else lines


def find_archives(listing: str) -> tuple[str | None, str | None]:
    """Return the addresses of Debian's archive and of its security fixes in the output of ``apt-get indextargets``."""
    archive = security = None
    for line in listing.splitlines():
        uri, release, component, origin = (*line.split(" ", 3), "", "", "")[:4]
        uri = uri.rstrip("/")
        known = origin and not origin.startswith("$(")
        if component != "main" or not (origin == "Debian" if known else uri.rsplit("/", 1)[-1] in ARCHIVES):
            continue
        if release.endswith("-security"):
            security = security or uri
        elif "-" not in release:
            archive = archive or uri
    return archive, security


def fetch_file(package: str, suite: str, file: str, target: Path) -> None:
    """Write ``file`` of the newest ``package`` in Debian's ``suite`` to ``target``, whose folder exists.

    Raises RigError if apt has no Debian archive, if the suite lacks the package, or if a program fails.
    """
    archive, _ = find_archives(_listing())
    if archive is None:
        raise RigError("this machine's apt has no Debian archive")
    with tempfile.TemporaryDirectory(prefix=".apt-", dir=target.parent) as name:
        scratch = Path(name)
        apt = ["apt-get", *apt_options(scratch, [_source(archive, suite)])]
        run_program(*apt, "update")
        run_program("env", f"--chdir={scratch}", *apt, "download", package)
        [deb] = scratch.glob("*.deb")
        _unpack(deb, file, scratch / "unpacked")
        (scratch / "unpacked").rename(target)


def apt_options(scratch: Path, sources: Sequence[str]) -> list[str]:
    """Return apt-get's options for a separate state in ``scratch`` with these sources only."""
    for folder in ("lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "sources.list").write_text("".join(f"{line}\n" for line in sources))
    folders = {"Etc::SourceList": "sources.list", "State::Lists": "lists", "Cache": "cache"}
    options = [f"-oDir::{key}={scratch / path}" for key, path in folders.items()]
    return [*options, "-oDir::Etc::SourceParts=/dev/null"]


def _listing() -> str:
    """Return apt's list of its sources; empty on a machine without apt."""
    try:
        return subprocess.run(["apt-get", *LISTING], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def _source(uri: str, release: str) -> str:
    old = " check-valid-until=no" if uri.startswith(SNAPSHOTS.partition("{")[0]) else ""
    return f"deb [signed-by={KEYRING}{old}] {uri} {release} main"


def _unpack(deb: Path, file: str, target: Path) -> None:
    try:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as process:
            with tarfile.open(fileobj=process.stdout, mode="r|") as tar, target.open("wb") as stream:
                content = next(tar.extractfile(member) for member in tar if member.name.lstrip(".") == file)
                assert content is not None
                shutil.copyfileobj(content, stream)
            process.kill()  # the rest of the package is not needed
    except (tarfile.TarError, StopIteration) as error:
        raise RigError(f"the package {deb.name} has no {file}") from error
