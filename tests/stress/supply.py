# SPDX-License-Identifier: Apache-2.0
"""Supplies with a fault: locks, wheels, archives, cached kernels and images, sources, and no network.

A round changes one supply and installs or builds from it. Good are a refusal in a sentence, and a product that is equal
to the undamaged one. Bad are another product, a package that was installed against its lock, and a source that counts
as pinned with other bytes.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from test_archive import archive_of
from test_locks import ROOT, wheel
from tiny_images import empty_cache
from tiny_kernels import tiny_kernels

from longfat.builds.archive import VARIABLE
from longfat.builds.image import build_image
from longfat.builds.kernel import build_kernel
from longfat.system.errors import LongfatError
from stress.commands import SOURCE, Answer

Round = Callable[[random.Random, Path, pytest.MonkeyPatch], str]
REFUSED, EQUAL = "refused", "equal"
OFFLINE_S = 60.0


def prepare(work: Path, patch: pytest.MonkeyPatch) -> Callable[[random.Random], str]:
    """Build a tiny kernel and a tiny image, and make their archive; return the round."""
    whole = work / "whole"
    whole.mkdir()
    with pytest.MonkeyPatch.context() as own:
        empty_cache(whole, own)
        build_image()
    made = whole / "cache"
    kernels = work / "kernels"
    kernels.mkdir()
    folder = tiny_kernels(kernels, patch)
    patch.setenv("LONGFAT_CACHE", str(made))
    product = build_kernel(kernels_folder=folder).path.read_bytes()
    image = build_image()
    right = product, image.digest, image.listing_sha256
    stored = archive_of(made, "cache", work / "archive")

    def built(cache: Path, patch: pytest.MonkeyPatch) -> str:
        """Build both from what is there; return whether that was refused. Raises AssertionError for other products."""
        patch.setenv("LONGFAT_CACHE", str(cache))
        try:
            found = build_kernel(kernels_folder=folder).path.read_bytes(), build_image()
        except LongfatError:
            return REFUSED
        assert (found[0], found[1].digest, found[1].listing_sha256) == right, "another product"
        return EQUAL

    def archive(chance: random.Random, own: Path, patch: pytest.MonkeyPatch) -> str:
        shutil.copytree(stored, own / "archive", symlinks=True)
        damage(chance, own / "archive")
        patch.setenv(VARIABLE, str(own / "archive"))
        patch.setenv("PATH", "/usr/bin:/bin")  # without the stubs of compilers
        return built(own / "cache", patch)

    def cache(chance: random.Random, own: Path, patch: pytest.MonkeyPatch) -> str:
        shutil.copytree(made, own / "cache", symlinks=True)
        damage(chance, own / "cache", longer=True)
        return built(own / "cache", patch)

    def source(chance: random.Random, own: Path, patch: pytest.MonkeyPatch) -> str:
        changed = own / "source"
        shutil.copytree(kernels, changed)
        settings = changed / "kernels/linux-6.12/source.toml"
        text = settings.read_text(encoding="utf-8").replace(str(kernels), str(changed))
        settings.write_text(text, encoding="utf-8")
        tarball = next(changed.glob("linux-*.tar*"))
        change_byte(chance, tarball)
        patch.setenv("LONGFAT_CACHE", str(own / "cache"))
        try:
            assert not build_kernel(kernels_folder=changed / "kernels").pinned, "other bytes count as pinned"
        except LongfatError:
            return REFUSED
        return "not pinned"

    rounds: Sequence[Round] = (installer, installer, archive, archive, cache, cache, source, offline)

    def play(chance: random.Random) -> str:
        one = chance.choice(rounds)
        with pytest.MonkeyPatch.context() as own, tempfile.TemporaryDirectory(prefix="round-", dir=work) as name:
            return f"{one.__name__}: {one(chance, Path(name), own)}"

    return play


def change_byte(chance: random.Random, path: Path) -> None:
    """Change a byte of a file."""
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= chance.randint(1, 255)
    path.write_bytes(content)


def damage(chance: random.Random, folder: Path, *, longer: bool = False) -> None:
    """Damage one file below a folder; with ``longer``, one of an image's root only with another length."""
    path = chance.choice([path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()])
    kind = chance.choice(["byte", "cut", "remove", "append", "link", "folder"])
    if kind == "byte" and path.stat().st_size and not (longer and "root" in path.parts):
        change_byte(chance, path)
    elif kind == "cut" and path.stat().st_size:
        path.write_bytes(path.read_bytes()[:-1])
    elif kind in ("remove", "link", "folder"):
        path.unlink()
        if kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to("/etc/hostname")
    else:
        path.write_bytes(path.read_bytes() + b"\n")


def installer(chance: random.Random, own: Path, patch: pytest.MonkeyPatch) -> str:
    """Install a package whose lock or wheel was changed, as the set-up or as a recipe does."""
    path = wheel(own)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    at, other = chance.randrange(64), chance.choice("0123456789abcdef")
    changed = digest[:at] + other + digest[at + 1 :]
    lines = {
        "nothing": f"tiny-of-test==1.0 --hash=sha256:{digest}",
        "digit": f"tiny-of-test==1.0 --hash=sha256:{changed}",
        "no hash": "tiny-of-test==1.0",
        "no version": f"tiny-of-test --hash=sha256:{digest}",
        "cut": f"tiny-of-test==1.0 --hash=sha256:{digest[:-1]}",
        "wheel": f"tiny-of-test==1.0 --hash=sha256:{digest}",
    }
    kind = chance.choice(list(lines))
    if kind == "wheel":
        change_byte(chance, path)
    lock = own / "lock"
    lock.write_text(lines[kind] + "\n", encoding="ascii")
    patch.setenv("LONGFAT_CACHE", str(own / "cache"))
    for tool in ("UV", "PIP"):
        patch.setenv(f"{tool}_NO_INDEX", "1")
        patch.setenv(f"{tool}_FIND_LINKS", str(own))
    patch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    target = own / "target"
    if chance.random() < 0.5:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
        command += ["--no-cache-dir", f"--requirement={lock}", f"--target={target}"]
    else:
        patch.setenv("UV_NO_CACHE", "1")
        command = [str(ROOT / "infra/with-lock"), str(lock), "python", "-m", "tiny_of_test"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=OFFLINE_S, check=False)
    installed = done.returncode == 0
    allowed = kind == "nothing" or (kind == "digit" and changed == digest)
    assert installed == allowed, f"{kind}: {command}: {done.stdout}{done.stderr}"
    assert installed or not target.exists() or not any(target.iterdir()), "a refused package was installed"
    return "installed by its hash" if installed else REFUSED


def offline(chance: random.Random, own: Path, patch: pytest.MonkeyPatch) -> str:
    """Build an image with an empty cache folder and without a network."""
    if os.geteuid() != 0:
        return "not root"
    variables = {"LONGFAT_CACHE": str(own / "cache"), "PYTHONPATH": str(SOURCE)}
    words = ["unshare", "-n", sys.executable, "-P", "-m", "longfat", "build", "image"]
    done = subprocess.run(
        words, env={**os.environ, **variables}, capture_output=True, text=True, timeout=OFFLINE_S, check=False
    )
    answer = Answer(done.returncode, done.stdout + done.stderr)
    assert answer.status == 3 and "hint" in answer.output, answer.output
    assert not list((own / "cache").glob("images/*/image.json")), "an image without its packages"
    return REFUSED
