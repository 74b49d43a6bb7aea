# SPDX-License-Identifier: Apache-2.0
"""Digests of a file tree: a quick one of names, sizes and times, and one of every byte.

Must not know the purpose of a tree.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from longfat.system.files import file_sha256

UNREADABLE = "unreadable: "  # prefix of the text that replaces the digest of an unreadable file


def entries(folder: str, prefix: str = "", *, left_out: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield all entries below ``folder`` with their relative path, sorted by name.

    The folder with the path ``left_out`` is yielded without its content.
    """
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = prefix + entry.name
        yield path, entry
        if entry.is_dir(follow_symlinks=False) and path != left_out:
            yield from entries(entry.path, path + "/", left_out=left_out)


def listing_digest(root: Path, *, left_out: str = "") -> str:
    """Return the SHA-256 of path, mode, size and time of every file, and the target of every link.

    The content of the folder ``left_out`` does not count.
    """
    digest = hashlib.sha256()
    try:
        for path, entry in entries(str(root), left_out=left_out):
            facts = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(facts.st_mode):
                detail = ""
            elif stat.S_ISLNK(facts.st_mode):
                detail = os.readlink(entry.path)
            else:
                detail = f"{facts.st_size} {int(facts.st_mtime)}"
            digest.update(f"{path}\0{facts.st_mode:o}\0{detail}\n".encode(errors="surrogateescape"))
    except OSError as error:
        return f"{UNREADABLE}{error}"
    return digest.hexdigest()


def tree_digest(root: Path) -> str:
    """Return the SHA-256 of all paths below ``root``, the content of files and the target of links."""
    digest = hashlib.sha256()
    try:
        for path, entry in entries(str(root)):
            if entry.is_symlink():
                detail = f"link {os.readlink(entry.path)}"
            else:
                detail = sha256_of(Path(entry.path)) if entry.is_file() else "folder"
            digest.update(f"{path}\0{detail}\n".encode(errors="surrogateescape"))
    except OSError as error:
        return f"{UNREADABLE}{error}"
    return digest.hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 (hex) of a file, or an error text if it cannot be read."""
    try:
        return file_sha256(path)
    except OSError as error:
        return f"{UNREADABLE}{error}"
