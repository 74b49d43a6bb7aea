# SPDX-License-Identifier: Apache-2.0
"""One layer of a container image: a tar file whose bytes depend only on its content.

Owns order, owners, times and modes. Must not know the purpose of the layer.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from longfat.builds.image import readable


class Layer:
    """The entries by path, without a leading slash; a later entry replaces an earlier one.

    Everything is root's and readable by all. Times are ``epoch`` in seconds, or earlier where files keep their own.
    ``comment`` describes the layer.
    """

    def __init__(self, comment: str, epoch: int) -> None:
        self.comment = comment
        self._epoch = epoch
        self._entries: dict[str, tuple[tarfile.TarInfo, bytes | Path | None]] = {}

    def folder(self, path: str, mode: int = 0o755) -> None:
        """A folder."""
        self._add(path, tarfile.DIRTYPE, mode)

    def link(self, path: str, target: str) -> None:
        """A symbolic link."""
        self._add(path, tarfile.SYMTYPE, 0o777).linkname = target

    def file(self, path: str, content: bytes) -> None:
        """A file of these bytes."""
        self._add(path, tarfile.REGTYPE, 0o644, content).size = len(content)

    def tree(
        self, path: str, source: Path, *, own: bool = False, wanted: Callable[[str], bool] = lambda path: True
    ) -> None:
        """A copy of the file or folder ``source``, and of all below it whose path inside ``wanted`` accepts.

        With ``own`` files keep times and modes, except set-id bits and the bits that any user needs to read them. Files
        that are hard links of each other stay so, in all trees of a layer: their content is there once.
        """
        self._copy(path, source, own)
        for inside in _below(source, "", wanted) if source.is_dir() else ():
            self._copy(f"{path}/{inside}".lstrip("/"), source / inside, own)

    def write(self, stream: io.BufferedIOBase) -> None:
        """Write the tar file, each folder before its content."""
        written: dict[tuple[int, int], str] = {}
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted(self._entries, key=lambda path: path.split("/")):
                member, content = self._entries[path]
                if isinstance(content, Path):
                    facts = content.stat()
                    first = written.setdefault((facts.st_dev, facts.st_ino), path)
                    if first != path:
                        member.type, member.linkname, member.size = tarfile.LNKTYPE, first, 0
                        tar.addfile(member)
                        continue
                    with content.open("rb") as file:
                        tar.addfile(member, file)
                else:
                    tar.addfile(member, io.BytesIO(content) if content is not None else None)

    def _copy(self, path: str, source: Path, own: bool) -> None:
        facts = source.lstat()
        if stat.S_ISLNK(facts.st_mode):
            self.link(path, os.readlink(source))
            return
        folder = stat.S_ISDIR(facts.st_mode)
        mode = 0o755 if folder or facts.st_mode & 0o100 else 0o644
        if own:
            mode = stat.S_IMODE(readable(facts.st_mode)) & ~(stat.S_ISUID | stat.S_ISGID)
        if path:
            kind, content = (tarfile.DIRTYPE, None) if folder else (tarfile.REGTYPE, source)
            member = self._add(path, kind, mode, content)
            member.size = 0 if folder else facts.st_size
            member.mtime = min(self._epoch, int(facts.st_mtime)) if own else self._epoch

    def _add(self, path: str, kind: bytes, mode: int, content: bytes | Path | None = None) -> tarfile.TarInfo:
        parent = path.rpartition("/")[0]
        if parent and parent not in self._entries:
            self.folder(parent)
        member = tarfile.TarInfo(path)
        member.type, member.mode, member.mtime = kind, mode, self._epoch
        self._entries[path] = member, content
        return member


def _below(folder: Path, prefix: str, wanted: Callable[[str], bool]) -> Iterator[str]:
    for entry in os.scandir(folder):
        path = prefix + entry.name
        if wanted(path):
            yield path
            if entry.is_dir(follow_symlinks=False):
                yield from _below(Path(entry.path), path + "/", wanted)
