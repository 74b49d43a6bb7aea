# SPDX-License-Identifier: Apache-2.0
"""Archive of all inputs of the testbed, for setting up a machine without a network.

Owns the layout of the archive: ``longfat.tar`` (the files of the commit), ``wheels/``, ``packages/`` (a Debian
repository), ``source/`` (the kernel's tarball), ``cache/`` (kernels and image) and ``SHA256SUMS``. The builds use the
archive in LONGFAT_ARCHIVE before they download anything; so does ``./just``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from longfat.builds.apt import apt_options, source_lines
from longfat.builds.listing import sha256_of
from longfat.builds.programs import list_entries, require_programs, run_program
from longfat.system.errors import RigError
from longfat.system.processes import git

CHECKOUT = Path(__file__).resolve().parents[3]
VARIABLE = "LONGFAT_ARCHIVE"
SUMS = "SHA256SUMS"


def archived(*names: str) -> Path | None:
    """Return a file or folder of the archive in LONGFAT_ARCHIVE, checked against SHA256SUMS; None if it is absent.

    Raises RigError for a damaged or missing archive.
    """
    if not os.environ.get(VARIABLE):
        return None
    home = Path(os.environ[VARIABLE])
    try:
        lines = (home / SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise RigError(f"the archive has no list {SUMS} that can be read: {error}", where=str(home)) from error
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    place = "/".join(names)
    expected = {name: digest for name, digest in sums.items() if name == place or name.startswith(f"{place}/")}
    if damaged := [name for name, digest in expected.items() if sha256_of(home / name) != digest]:
        raise RigError(f"the archive is damaged: {', '.join(damaged)}", where=str(home), hint="copy it again")
    return home / place if expected else None


def write_archive(
    folder: Path,
    kernels: Iterable[Path],
    tarballs: Iterable[Path],
    image: Path,
    suite: str,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Fill a new or empty folder with all inputs, about 600 MB.

    ``kernels`` and ``image`` are folders of the cache folder, ``tarballs`` are the kernels' sources. Raises RigError.
    """
    if folder.exists() and any(folder.iterdir()):
        raise RigError("the folder has files already", where=str(folder), hint="name a new or an empty folder")
    for name in ("wheels", "packages", "source", "cache/kernels", f"cache/images/{image.name}"):
        (folder / name).mkdir(parents=True)
    require_programs({"git": "git"}, "an archive")
    done = git(
        CHECKOUT, "archive", "--format=tar", "--prefix=longfat/", f"--output={folder.resolve()}/longfat.tar", "HEAD"
    )
    if done.returncode:
        raise RigError(f"git cannot archive the checkout: {done.stderr.decode(errors='replace').strip()}")
    say("collecting the Python packages of requirements.lock")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    lock = f"--requirement={CHECKOUT / 'requirements.lock'}"
    run_program(*pip, "--require-hashes", "--no-deps", lock, f"--dest={folder / 'wheels'}")
    for path in kernels:
        shutil.copytree(path, folder / "cache/kernels" / path.name)
    for path in {path.name: path for path in tarballs}.values():
        shutil.copy(path, folder / "source")
    for name in ("image.tar", "image.json"):
        shutil.copy(image / name, folder / "cache/images" / image.name)
    facts = json.loads((image / "image.json").read_text(encoding="utf-8"))
    say("collecting the Debian packages of packages.txt and of the image")
    own = [line.split()[0] for line in list_entries((CHECKOUT / "packages.txt").read_text(encoding="utf-8"))]
    _collect_packages(folder / "packages", own, facts["packages"], suite)
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{sha256_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in paths]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def _collect_packages(target: Path, host: Sequence[str], image: dict[str, str], suite: str) -> None:
    """Download the host's packages with all their dependencies, and the image's packages in its versions."""
    sources = source_lines(suite)
    if not sources:
        raise RigError("this machine's apt has no Debian archive")
    with tempfile.TemporaryDirectory(prefix="longfat-apt-") as name:
        scratch = Path(name)
        apt = ["apt-get", *apt_options(scratch, sources), "-oDebug::NoLocking=1"]
        (scratch / "status").touch()  # as if nothing were installed, so that all dependencies are fetched
        run_program(*apt, "update")
        install = ["install", "--yes", "--no-install-recommends", "--download-only"]
        run_program(*apt, f"-oDir::State::status={scratch / 'status'}", *install, *host)
        exact = [f"{package}={version}" for package, version in sorted(image.items())]
        hint = "./just build image makes a new image if the archive no longer has the packages of this one"
        run_program("env", f"--chdir={target.resolve()}", *apt, "download", *exact, hint=hint)
        for path in (scratch / "cache/archives").glob("*.deb"):
            shutil.move(path, target / path.name)
    index = [_stanza(path) for path in sorted(target.glob("*.deb"))]
    (target / "Packages").write_text("\n".join(index), encoding="utf-8")


def _stanza(path: Path) -> str:
    """Return the entry of a package in the index of a Debian repository."""
    control = subprocess.run(["dpkg-deb", "--field", path], capture_output=True, text=True, check=True).stdout
    return f"{control}Filename: ./{path.name}\nSize: {path.stat().st_size}\nSHA256: {sha256_of(path)}\n"
