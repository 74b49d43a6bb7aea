# SPDX-License-Identifier: Apache-2.0
"""The content of a tree of files, as digests: a quick one of names, sizes and times, and one of every byte.

Must not know the purpose of a tree.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

UNREADABLE = "unreadable: "  # prefix of the text that replaces a digest where a file cannot be read


def entries(folder: str, prefix: str = "", *, left_out: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All entries below ``folder`` with their path inside it, in an order that no disk decides.

    Of the folder with the path ``left_out`` there is the folder itself and nothing below it.
    """
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = prefix + entry.name
        yield path, entry
        if entry.is_dir(follow_symlinks=False) and path != left_out:
            yield from entries(entry.path, path + "/", left_out=left_out)


def listing_digest(root: Path, shown: Callable[[int], int] = int, *, left_out: str = "") -> str:
    """SHA-256 over path, mode, size and time of every file, and the target of every link.

    ``shown`` maps a file's or folder's own mode to the mode that counts; the content of the folder ``left_out`` does
    not count.
    """
    digest = hashlib.sha256()
    try:
        for path, entry in entries(str(root), left_out=left_out):
            facts = entry.stat(follow_symlinks=False)
            mode = shown(facts.st_mode)
            if stat.S_ISDIR(mode):
                detail = ""
            elif stat.S_ISLNK(mode):
                detail = os.readlink(entry.path)
            else:
                detail = f"{facts.st_size} {int(facts.st_mtime)}"
            digest.update(f"{path}\0{mode:o}\0{detail}\n".encode(errors="surrogateescape"))
    except OSError as error:
        return f"{UNREADABLE}{error}"
    return digest.hexdigest()


def content_digest(root: Path, *, left_out: str = "", known: dict[tuple[int, int], str] | None = None) -> str:
    """SHA-256 over path and content of every regular file outside the folder ``left_out``.

    ``known`` keeps the digests of single files by device and inode: a file with many names is read once.
    """
    digest, known = hashlib.sha256(), {} if known is None else known
    for path, entry in entries(str(root), left_out=left_out):
        if entry.is_file(follow_symlinks=False):
            facts = entry.stat(follow_symlinks=False)
            file = (facts.st_dev, facts.st_ino)
            if file not in known:
                known[file] = sha256_of(Path(entry.path))
            digest.update(f"{path}\0{known[file]}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def tree_digest(root: Path) -> str:
    """SHA-256 over the path of everything below ``root``, the content of files and the target of links."""
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
    """SHA-256 (hex) of a file; a text that is not a digest where the file cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"{UNREADABLE}{error}"
