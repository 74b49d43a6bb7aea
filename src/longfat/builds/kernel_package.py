# SPDX-License-Identifier: Apache-2.0
"""A kernel source that Debian has, but not in the suite that this machine uses: fetched by apt, unpacked by dpkg-deb.

Owns apt's state for it: separate folders and one source. The machine's apt is therefore not touched, and any user can
do it. The signature is checked with Debian's keyring, as for any other package.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from longfat.builds.apt_sources import configured_sources, single_source
from longfat.errors import RigError

STDERR_TAIL_CHARS = 500


def fetch_source_package(package: str, suite: str, file: str, target: Path) -> None:
    """Write ``file`` of the newest ``package`` in Debian's ``suite`` to ``target``, whose folder exists.

    Raises RigError when the machine's apt has no Debian archive, the suite no such package, or a program fails.
    """
    source = single_source(suite, configured_sources())
    if source is None:
        raise RigError("this machine's apt has no Debian archive")
    with tempfile.TemporaryDirectory(prefix=".apt-", dir=target.parent) as name:
        scratch = Path(name)
        for folder in ("lists/partial", "cache/archives/partial"):
            (scratch / folder).mkdir(parents=True)
        (scratch / "sources.list").write_text(f"{source}\n")
        options = {
            "Dir::Etc::SourceList": scratch / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": scratch / "lists",
            "Dir::Cache": scratch / "cache",
        }
        apt = ["apt-get", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
        _run([*apt, "update"], "apt-get update", scratch)
        _run([*apt, "download", package], f"apt-get download {package}", scratch)
        [deb] = scratch.glob("*.deb")
        _unpack(deb, file, scratch / "unpacked")
        (scratch / "unpacked").rename(target)


def _run(argv: list[str], what: str, folder: Path) -> None:
    done = subprocess.run(argv, cwd=folder, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True)
    if done.returncode:
        raise RigError(f"{what} failed: {done.stderr.strip()[-STDERR_TAIL_CHARS:]}")


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
