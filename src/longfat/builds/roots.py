# SPDX-License-Identifier: Apache-2.0
"""Roots of guests in the cache folder: the image with the guest's code, checked at each use.

Owns the layout of ``<cache>/roots/<image>-<code>/``: ``root/`` with hard links to the image's files and, in ``code/``,
its own files; ``root.json`` with the digest of ``code/``, out of reach of any guest. Must not know the code: the caller
adds it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from longfat.builds.image import ImageBuild
from longfat.builds.listing import listing_digest, tree_digest
from longfat.system.errors import RigError
from longfat.system.store import keep

FORMAT = 1
CODE = "code"
LOCK = ".lock"  # shared by all roots


def open_root(
    image: ImageBuild,
    code_digest: str,
    add_code: Callable[[Path], None],
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Return the root of this image and this code, from the cache folder or composed now (about a second).

    ``add_code`` fills ``code/`` of a root. Every use compares names, sizes and times of the image's files with those at
    the build of the image, and all bytes below ``code/`` with the original ones (some 50 ms). A damaged root is
    composed again, with a message to ``say``. Raises RigError if that is not possible.
    """
    folder = image.path.parents[2] / "roots" / f"{image.digest[:16]}-{code_digest[:16]}"

    def right(root: Path) -> bool:
        return root_fault(root, image) is None

    def make(new: Path) -> None:
        for left in folder.parent.glob(".partial-*"):  # left by killed processes, also with other code
            if left != new.parent:
                shutil.rmtree(left, ignore_errors=True)
        if folder.exists():
            say(f"the composed root is damaged ({root_fault(folder, image)}); it is composed again: {folder}")
        _compose(new, image, add_code)

    return keep(folder, make, "the composed root", "10 MB", right=right, lock=folder.parent / LOCK) / "root"


def root_fault(folder: Path, image: ImageBuild) -> str | None:
    """Return the fault of the root in ``folder``, or None, without reading the content of the image's files."""
    try:
        facts = json.loads((folder / "root.json").read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            return f"root.json is of format {facts['format']!r}, not {FORMAT}"
        code_sha256 = str(facts["code_sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"root.json cannot be read ({error!r})"
    if listing_digest(folder / "root", left_out=CODE) != image.listing_sha256:
        return "files of the image were changed, added or removed"
    if tree_digest(folder / "root" / CODE) != code_sha256:
        return "the guest's code was changed"
    return None


def _link(source: str, target: str) -> None:
    """Make a hard link, or a copy if the kernel refuses one, for example of another user's file."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _compose(new: Path, image: ImageBuild, add_code: Callable[[Path], None]) -> None:
    new.mkdir()
    shutil.copytree(image.path, new / "root", symlinks=True, copy_function=_link)
    add_code(new / "root")
    facts = {"format": FORMAT, "code_sha256": tree_digest(new / "root" / CODE)}
    (new / "root.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
    if fault := root_fault(new, image):
        raise RigError(f"the composed root is not correct: {fault}", where=str(new))
