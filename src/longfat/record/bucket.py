# SPDX-License-Identifier: Apache-2.0
"""Records away from this machine: one object a run, in a folder or a bucket that fsspec can reach.

Owns the names and the form of the objects: ``ID8/NAME.tar`` (docs/formats.md). An object is written once: of several
writers the server lets one succeed, where it can (S3: If-None-Match), and all of them have the same measurements. Must
not know what a record contains.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longfat.errors import RecordError, RigError
from longfat.files import write_once
from longfat.record.bundle import PARTIAL_PREFIX, flush
from longfat.record.verify import Record, read_record

SUFFIX = ".tar"
FAILED = ".failed"  # in the name of a failed run's object: an ok one is another object, and nothing is overwritten


@dataclass(frozen=True)
class Bucket:
    """The place that an address such as ``s3://bucket/study`` or ``file:///scratch/study`` names."""

    address: str

    def __post_init__(self) -> None:
        files, root = _opened(self.address)
        object.__setattr__(self, "_files", files)
        object.__setattr__(self, "_root", root.rstrip("/"))

    def names(self) -> dict[str, str]:
        """The keys of all objects, by the name of the run's folder; an ok record's where there are two.

        Lists page by page: the cost is one request for a thousand objects on S3. Raises RigError.
        """
        found: dict[str, str] = {}
        for key in self._list():
            name = name_of(key)
            if key.endswith(SUFFIX) and (name not in found or not is_failed(key)):
                found[name] = key
        return found

    def put(self, file: Path) -> bool:
        """Write the object that ``pack`` has made, unless it is there; whether it was written.

        Raises FileNotFoundError when there is no such file, RigError when the store does not take it.
        """
        return self._put(f"{name_of(file.name)[-8:]}/{file.name}", file.read_bytes())

    def text(self, name: str) -> str | None:
        """A text that was shared, or None. Raises RigError."""
        try:
            return bytes(self._files.cat_file(f"{self._root}/{name}")).decode(errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._trouble("read from", error) from error

    def share(self, name: str, text: str) -> str:
        """Write a text for all who use the store, unless there is one: the text that is there. Raises RigError."""
        if self._put(name, text.encode()):
            return text
        return self.text(name) or ""

    def _put(self, name: str, content: bytes) -> bool:
        key = f"{self._root}/{name}"
        try:
            if self._is_local:
                path = Path(key)
                path.parent.mkdir(parents=True, exist_ok=True)
                return write_once(path, content)
            try:
                self._files.pipe_file(key, content, mode="create")
            except FileExistsError:
                return False
            return True
        except OSError as error:
            raise self._trouble("written to", error) from error

    def get(self, key: str, raw: Path) -> Record:
        """Fetch an object into a record below ``raw``, complete or not at all; one that is there already stays.

        Raises RecordError when it is damaged, RigError when it cannot be fetched.
        """
        name = name_of(key)
        final = raw / name
        if final.exists():
            return read_record(final)
        try:
            content = self._files.cat_file(key)
        except OSError as error:
            raise self._trouble("read from", error) from error
        draft = raw / f"{PARTIAL_PREFIX}{name}-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        try:
            unpack(content, draft, key)
            record = read_record(draft)
            for path in (*sorted(draft.rglob("*")), draft):
                flush(path)
            draft.rename(final)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return replace(record, folder=final)

    @property
    def _is_local(self) -> bool:
        return "file" in (self._files.protocol if isinstance(self._files.protocol, tuple) else (self._files.protocol,))

    def _list(self) -> Iterator[str]:
        self._files.invalidate_cache()
        try:
            yield from self._files.find(self._root)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._trouble("listed", error) from error

    def _trouble(self, what: str, error: OSError) -> RigError:
        return RigError(f"the store cannot be {what}: {error.strerror or error}", where=self.address)

    _files: Any = None
    _root: str = ""


def object_name(name: str, *, ok: bool) -> str:
    """The last part of the key of a run's object, by the name of its folder."""
    return f"{name}{'' if ok else FAILED}{SUFFIX}"


def name_of(key: str) -> str:
    """The name of the folder of the run whose object has this key."""
    return key.rpartition("/")[2].removesuffix(SUFFIX).removesuffix(FAILED)


def is_failed(key: str) -> bool:
    """Whether the object is that of a failed run."""
    return key.endswith(f"{FAILED}{SUFFIX}")


def pack(folder: Path, target: Path) -> None:
    """Make a tar file of a record, its checksums among it: the same record gives the same bytes. Raises OSError."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    with tarfile.open(target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in paths:
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)


def unpack(content: bytes, folder: Path, where: str) -> None:
    """Unpack a record's tar file into a new folder.

    Raises RecordError on anything but plain files in it: nothing in it may be larger than the object itself.
    """
    folder.mkdir(parents=True)
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for entry in archive:
                parts = Path(entry.name).parts
                if not entry.isfile() or entry.issparse() or entry.name.startswith("/") or ".." in parts:
                    raise RecordError(f"{entry.name} is no plain file of a record", where=where)
                path = folder / entry.name
                path.parent.mkdir(parents=True, exist_ok=True)
                source = archive.extractfile(entry)
                assert source is not None
                path.write_bytes(source.read())
    except tarfile.TarError as error:
        raise RecordError(f"the object is no tar file: {error}", where=where) from error


def _opened(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it. Raises RigError where fsspec lacks a package for it."""
    import fsspec  # every worker imports this module, and few need that one

    try:
        files, root = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise RigError(f"the store cannot be opened: {error}", where=address) from error
    return files, str(root)
