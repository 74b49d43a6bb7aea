# SPDX-License-Identifier: Apache-2.0
"""The userland image in the cache folder: built once for each recipe, checked at each use.

Owns the layout of ``<cache>/images/<recipe digest>/``: ``image.tar``, ``root/`` (unpacked, for hostfs)
and ``image.json``, which is written last. Must not decide the image's content: ``images/`` does.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.builds.apt_sources import configured_sources, source_lines
from longfat.builds.image_recipe import ImageRecipe, Mode, mmdebstrap_argv, read_recipe
from longfat.builds.listing import UNREADABLE, content_digest, entries, listing_digest, sha256_of
from longfat.cache import cache_folder
from longfat.errors import RigError
from longfat.store import keep

RECIPE_FOLDER = Path(__file__).resolve().parents[3] / "images"
FORMAT = 1
STDERR_TAIL_LINES = 15
STDERR_LINE_CHARS = 300  # mmdebstrap repeats commands with every package in them


@dataclass(frozen=True)
class ImageBuild:
    """A usable image: ``path`` is its unpacked root folder, ``digest`` the SHA-256 (hex) of its tar file.

    ``listing_sha256`` and ``content_sha256`` are the digests that ``longfat.builds.listing`` gives for an undamaged
    ``path``.
    """

    path: Path
    digest: str
    listing_sha256: str
    content_sha256: str


def build_image(
    *,
    verify: bool = False,
    recipe_folder: Path = RECIPE_FOLDER,
    say: Callable[[str], None] = lambda line: None,
) -> ImageBuild:
    """The image of the recipe in ``recipe_folder``: from the cache folder, or built now (about 30 s).

    Every use compares names, sizes and times of all files with those of the build (some ms); ``verify`` also compares
    their contents. ``say`` receives one line about each step that takes time. Raises RigError when the image in the
    cache is damaged or cannot be built.
    """
    recipe = read_recipe(recipe_folder)
    folder = cache_folder() / "images" / recipe.digest

    def make(new: Path) -> None:
        say(f"building the {recipe.suite} image with mmdebstrap (about 30 s)")
        _build(recipe, new, folder)

    return load_image(keep(folder, make, "the image", "300 MB"), verify=verify)


def load_image(folder: Path, *, verify: bool = False) -> ImageBuild:
    """The image in ``folder``, after checking it. Raises RigError that names the damage."""
    facts = _read_facts(folder)
    root = folder / "root"
    found = listing_digest(root)
    if found.startswith(UNREADABLE) and root.exists():
        raise _closed(folder, found.removeprefix(UNREADABLE))
    if found != facts["listing_sha256"]:
        raise _damaged(folder, "files of the unpacked image were changed, added or removed")
    if verify and sha256_of(folder / "image.tar") != facts["digest"]:
        raise _damaged(folder, "image.tar does not have the digest it was built with")
    if verify and content_digest(root) != facts["content_sha256"]:
        raise _damaged(folder, "a file of the unpacked image does not have the content it was built with")
    return ImageBuild(root, facts["digest"], facts["listing_sha256"], facts["content_sha256"])


def composed_roots(images: Path, digest: str) -> list[Path]:
    """The folders of all roots composed of the image with this digest; ``images`` is the folder of all images."""
    return sorted((images.parent / "roots").glob(f"{digest[:16]}-*"))


def readable(mode: int) -> int:
    """The mode of a copy that any user may read or enter, whoever owns it."""
    return mode | 0o444 | (0o111 if stat.S_ISDIR(mode) or mode & 0o111 else 0)


def facts_of_readable_copy(folder: Path) -> bytes:
    """The ``image.json`` for a copy of the image in ``folder`` whose files have ``readable`` modes."""
    facts = json.loads((folder / "image.json").read_text(encoding="utf-8"))
    facts["listing_sha256"] = listing_digest(folder / "root", readable)
    return _as_json(facts)


def _as_json(facts: dict[str, Any]) -> bytes:
    return (json.dumps(facts, indent=1, sort_keys=True) + "\n").encode()


def _read_facts(folder: Path) -> dict[str, str]:
    """The digests in ``image.json``."""
    try:
        facts = json.loads((folder / "image.json").read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise _damaged(folder, f"image.json is of format {facts['format']!r}, not {FORMAT}")
        return {key: str(facts[key]) for key in ("digest", "listing_sha256", "content_sha256")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, f"image.json cannot be read ({error!r})") from error


def _damaged(folder: Path, what: str) -> RigError:
    return RigError(
        f"the image is damaged: {what}",
        where=str(folder),
        hint=f"rm -r {folder} && ./just image",
    )


def _closed(folder: Path, reason: str) -> RigError:
    """The error for an image that is another user's and has files that only that user may read."""
    owner = folder.stat().st_uid
    return RigError(
        f"the image belongs to user {owner}, and user {os.geteuid()} may not read all of it: {reason}",
        where=str(folder),
        hint=f"as user {owner}: rm -r {folder} && LONGFAT_CACHE={folder.parents[1]} ./just image makes one that every "
        "user may read; or use your own cache: LONGFAT_CACHE=$HOME/.cache/longfat",
    )


def _build(recipe: ImageRecipe, new: Path, folder: Path) -> None:
    """Build into ``new``, which is to become ``folder``."""
    mode = _mode()
    new.mkdir()
    tar, cooked = new / "image.tar", new.parent / "cooked.tar"
    _cook(recipe, mode, cooked)
    _repack(cooked, tar)
    cooked.unlink()
    _unpack(tar, new / "root")
    facts = {
        "format": FORMAT,
        "digest": sha256_of(tar),
        "listing_sha256": listing_digest(new / "root"),
        "content_sha256": content_digest(new / "root"),
        "packages": _installed(new / "root" / "var/lib/dpkg/status"),
    }
    (new / "image.json").write_bytes(_as_json(facts))
    # They have the files of an image that is gone, with its damage if that was the reason.
    for composed in composed_roots(folder.parent, str(facts["digest"])):
        shutil.rmtree(composed)


def _mode() -> Mode:
    """How this user can build a root file system. Raises RigError that names the things a normal user lacks."""
    if os.geteuid() == 0:
        return "root"
    lacking = []
    if shutil.which("newuidmap") is None:
        lacking.append("the program newuidmap (package uidmap)")
    user = _user_name()
    for table in ("/etc/subuid", "/etc/subgid"):
        if not _has_range(Path(table), user):
            lacking.append(f"a range for {user} in {table}")
    if lacking:
        raise RigError(
            f"a normal user cannot build the image here without {' and '.join(lacking)}",
            hint=f"as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}; "
            "or run ./just image once as root with the same LONGFAT_CACHE",
        )
    return "unshare"


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _has_range(table: Path, user: str) -> bool:
    """Whether subuid(5) or subgid(5) table ``table`` gives ``user`` its own identities."""
    try:
        lines = table.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(line.split(":", 1)[0] in (user, str(os.geteuid())) for line in lines)


def _cook(recipe: ImageRecipe, mode: Mode, tar: Path) -> None:
    """Run mmdebstrap. Raises RigError with the command and the end of its output."""
    sources = source_lines(recipe.suite, configured_sources())
    argv = mmdebstrap_argv(recipe, mode=mode, sources=sources, target=tar)
    environment = os.environ | {"LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": str(recipe.source_date_epoch)}
    try:
        done = subprocess.run(
            argv,
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise RigError("mmdebstrap is not installed", hint="./just installs it") from error
    if done.returncode != 0:
        tail = "\n  ".join(line[:STDERR_LINE_CHARS] for line in done.stderr.splitlines()[-STDERR_TAIL_LINES:])
        raise RigError(
            f"mmdebstrap ended with exit status {done.returncode} in mode {mode}:\n  {tail}",
            hint="are the Debian archives reachable? apt-get update tells",
        )


def _repack(source: Path, target: Path) -> None:
    """Copy a tar file without its device nodes, in one dialect of tar: mmdebstrap's varies by release."""
    with tarfile.open(source) as old, tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as new:
        for member in old:
            if not member.name.startswith("./dev/"):
                member.pax_headers = {}
                new.addfile(member, old.extractfile(member) if member.isreg() else None)


def _unpack(tar: Path, root: Path) -> None:
    """Unpack ``tar`` for hostfs: files of the user who builds, which every user may read, modes without set-id bits."""
    root.mkdir()
    argv = ["tar", "--extract", f"--file={tar}", f"--directory={root}"]
    argv += ["--no-same-owner", "--no-same-permissions"]
    done = subprocess.run(argv, capture_output=True, text=True, umask=0o022)
    if done.returncode != 0:
        raise RigError(f"tar ended with exit status {done.returncode}: {done.stderr[-500:]}", where=str(tar))
    for _, entry in entries(str(root)):
        if not entry.is_symlink():
            os.chmod(entry.path, stat.S_IMODE(readable(entry.stat().st_mode)))


def _installed(status: Path) -> dict[str, str]:
    """Name and version of each package in dpkg's status file."""
    packages = {}
    for stanza in status.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and line[0] != " ")
        if "Package" in fields:
            packages[fields["Package"]] = fields["Version"]
    return packages
