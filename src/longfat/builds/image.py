# SPDX-License-Identifier: Apache-2.0
"""Userland image in the cache folder, built once per recipe and checked at each use.

Owns the layout of ``<cache>/images/<recipe digest>/``: ``image.tar``, ``root/`` (unpacked, for hostfs) and
``image.json``, written last. The files of ``images/`` define the image's content.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tarfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from longfat.builds.apt import source_lines
from longfat.builds.archive import archived
from longfat.builds.listing import entries, listing_digest, sha256_of
from longfat.builds.programs import list_entries, run_program
from longfat.system.cache import HOME, cache_folder
from longfat.system.errors import RigError
from longfat.system.store import keep

RECIPE_FOLDER = HOME / "images"
RECIPE_FILES = ("recipe.toml", "packages.txt", "path-excludes.txt", "customize.sh")
FORMAT = 1
Mode = Literal["root", "unshare"]


@dataclass(frozen=True)
class ImageRecipe:
    """Recipe of a userland. ``source_date_epoch`` is in seconds; ``digest`` covers all RECIPE_FILES.

    ``snapshot`` is a time of Debian's archive, such as 20261101T000000Z (default: the time of the build).
    """

    suite: str
    variant: str
    architecture: str
    source_date_epoch: int
    packages: tuple[str, ...]
    path_excludes: tuple[str, ...]
    customize: str
    digest: str
    snapshot: str | None = None


@dataclass(frozen=True)
class ImageBuild:
    """A usable image: ``path`` is its unpacked root folder, ``digest`` the SHA-256 (hex) of its tar file.

    ``listing_sha256`` is the digest by ``longfat.builds.listing`` of an undamaged ``path``.
    """

    path: Path
    digest: str
    listing_sha256: str


def read_recipe(folder: Path) -> ImageRecipe:
    """Read the recipe in ``folder``. Raises RigError if a file or a key of ``recipe.toml`` is missing."""
    try:
        texts = {name: (folder / name).read_text(encoding="utf-8") for name in RECIPE_FILES}
        settings = tomllib.loads(texts["recipe.toml"])
        return ImageRecipe(
            suite=settings["suite"],
            variant=settings["variant"],
            architecture=settings["architecture"],
            source_date_epoch=settings["source_date_epoch"],
            packages=list_entries(texts["packages.txt"]),
            path_excludes=list_entries(texts["path-excludes.txt"]),
            customize=texts["customize.sh"],
            digest=hashlib.sha256(
                "".join(f"{name} {len(text)}\n{text}" for name, text in texts.items()).encode()
            ).hexdigest(),
            snapshot=settings.get("snapshot"),
        )
    except OSError as error:
        hint = "git status shows what is missing from the checkout"
        where = str(error.filename)
        raise RigError(f"the image's recipe cannot be read: {error.strerror}", where=where, hint=hint) from error
    except tomllib.TOMLDecodeError as error:
        raise RigError(f"not TOML: {error}", where=str(folder / "recipe.toml")) from error
    except KeyError as error:
        raise RigError(f"the key {error} is missing", where=str(folder / "recipe.toml")) from error


def mmdebstrap_argv(recipe: ImageRecipe, *, mode: Mode, sources: Sequence[str], target: Path) -> list[str]:
    """Return the command that writes the userland to the tar file ``target``, with the same bytes in either mode."""
    return [
        "mmdebstrap",
        f"--mode={mode}",
        f"--variant={recipe.variant}",
        f"--architectures={recipe.architecture}",
        "--format=tar",
        f"--include={','.join(recipe.packages)}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in recipe.path_excludes),
        f"--customize-hook={recipe.customize}",
        recipe.suite,
        str(target),
        *sources,
    ]


def write_userland(recipe: ImageRecipe, target: Path) -> None:
    """Write the userland to the tar file ``target``, as root or in the user's own namespace. Raises RigError."""
    mode: Mode = "root" if os.geteuid() == 0 else "unshare"
    argv = mmdebstrap_argv(recipe, mode=mode, sources=source_lines(recipe.suite, recipe.snapshot), target=target)
    hint = "./just installs mmdebstrap; `apt-get update` shows whether the Debian archives are reachable"
    if mode == "unshare":
        hint += f"; user {os.geteuid()} needs the package uidmap and ranges in /etc/subuid and /etc/subgid"
    run_program("env", "--chdir=/", *argv, hint=hint, SOURCE_DATE_EPOCH=str(recipe.source_date_epoch))


def build_image(*, say: Callable[[str], None] = lambda line: None) -> ImageBuild:
    """Return the image, from the cache folder or built now (about 30 s).

    Each use compares names, sizes and times of all files with the record of the build (some ms). Raises RigError if the
    image in the cache is damaged or cannot be built.
    """
    recipe = read_recipe(RECIPE_FOLDER)
    folder = cache_folder() / "images" / recipe.digest

    def make(new: Path) -> None:
        if stored := archived("cache/images", recipe.digest):
            shutil.copytree(stored, new)
            _unpack(new / "image.tar", new / "root")
            return
        say(f"building the {recipe.suite} image with mmdebstrap (about 30 s)")
        _build(recipe, new, folder)

    return load_image(keep(folder, make, "the image", "300 MB"))


def load_image(folder: Path) -> ImageBuild:
    """Return the image in ``folder`` after checking it. Raises RigError with the damage."""
    root = folder / "root"
    try:
        facts = json.loads((folder / "image.json").read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise ValueError(f"format {facts['format']!r} is not {FORMAT}")
        image = ImageBuild(root, str(facts["digest"]), str(facts["listing_sha256"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, f"image.json cannot be read ({error!r})") from error
    if listing_digest(root) != image.listing_sha256:
        fault = "files of the unpacked image were changed, added or removed, or another user may not read them"
        raise _damaged(folder, fault)
    return image


def _damaged(folder: Path, fault: str) -> RigError:
    hint = f"rm -r {folder} && ./just build image"
    return RigError(f"the image is damaged: {fault}", where=str(folder), hint=hint)


def _build(recipe: ImageRecipe, new: Path, folder: Path) -> None:
    """Build into ``new``, which will become ``folder``."""
    new.mkdir()
    tar, cooked = new / "image.tar", new.parent / "cooked.tar"
    write_userland(recipe, cooked)
    _repack(cooked, tar)
    cooked.unlink()
    _unpack(tar, new / "root")
    facts = {
        "format": FORMAT,
        "digest": sha256_of(tar),
        "listing_sha256": listing_digest(new / "root"),
        "packages": _installed(new / "root" / "var/lib/dpkg/status"),
    }
    (new / "image.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    # They link to files of a removed image, which may have been damaged.
    for composed in (folder.parents[1] / "roots").glob(f"{str(facts['digest'])[:16]}-*"):
        shutil.rmtree(composed)


def _repack(source: Path, target: Path) -> None:
    """Copy a tar file without its device nodes, in one tar format, because mmdebstrap's varies by release."""
    with tarfile.open(source) as old, tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as new:
        for member in old:
            if not member.name.startswith("./dev/"):
                member.pax_headers = {}
                new.addfile(member, old.extractfile(member) if member.isreg() else None)


def _unpack(tar: Path, root: Path) -> None:
    """Unpack ``tar`` for hostfs: files owned by the building user, readable by all, without set-id bits."""
    root.mkdir()
    options = ["--no-same-owner", "--no-same-permissions"]
    run_program("sh", "-c", 'umask 022; exec "$@"', "sh", "tar", "-x", f"-f{tar}", f"-C{root}", *options)
    for _, entry in entries(str(root)):
        if not entry.is_symlink():
            mode = stat.S_IMODE(entry.stat().st_mode)
            os.chmod(entry.path, mode | 0o444 | (0o111 if entry.is_dir() or mode & 0o111 else 0))


def _installed(status: Path) -> dict[str, str]:
    """Return name and version of each package in dpkg's status file."""
    packages = {}
    for stanza in status.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and line[0] != " ")
        if "Package" in fields:
            packages[fields["Package"]] = fields["Version"]
    return packages
