# SPDX-License-Identifier: Apache-2.0
"""Files and folders that one process makes while others wait, and that are either complete or absent.

Owns the draft next to an item, the lock, and the rename. Independent of the content of an item.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from longfat.system.errors import RigError
from longfat.system.files import flush_file_system
from longfat.system.locks import hold
from longfat.system.text import visible

LONG_S = 5.0  # wait before a notice


def holder(path: Path) -> str:
    """Return the processes that hold the lock on a file or folder, with their commands if proc(5) shows them."""
    found = []
    with suppress(OSError, ValueError):
        facts = path.stat()
        place = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5] == place:
                command = Path(f"/proc/{words[4]}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"process {words[4]} ({visible(command.strip())})")
    return " and ".join(found) or "another process"


@contextmanager
def hold_patiently(path: Path) -> Iterator[int]:
    """Lock the file ``path`` like ``hold``, and name the holder on standard error if that takes long."""

    def announce() -> None:
        sys.stderr.write(f"waiting for {holder(path)}, which holds {visible(str(path))}\n")

    notice = threading.Timer(LONG_S, announce)
    notice.daemon = True
    notice.start()
    try:
        with hold(path) as descriptor:
            notice.cancel()
            yield descriptor
    finally:
        notice.cancel()


@contextmanager
def draft(target: Path) -> Iterator[Path]:
    """Yield a path in a separate folder next to the target; the file or folder made there replaces the target.

    That folder may hold other files, too. It is removed after the block or, after a kill, when the next draft of the
    target begins; only one process may draft a target at a time. After an error the target is unchanged. Raises
    OSError.
    """
    for left in target.parent.glob(f"{_prefix(target)}*"):
        shutil.rmtree(left, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=_prefix(target), dir=target.parent))
    try:
        scratch.chmod(0o755)  # programs of other users work there too
        new = scratch / target.name
        yield new
        if target.is_dir():
            target.rename(scratch / f"replaced-{target.name}")  # rename(2) replaces a file, but not a full folder
        new.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def keep(
    target: Path,
    make: Callable[[Path], None],
    what: str,
    size: str,
    *,
    right: Callable[[Path], bool] = Path.exists,
    lock: Path | None = None,
) -> Path:
    """Return ``target``, after making it unless it is ``right``; in that case nothing is written to its folder.

    ``make`` receives the path of a ``draft``; every user may read the result. ``what`` is the noun in messages,
    ``size`` the needed disk space. Raises RigError if it cannot be written.
    """
    if right(target):
        return target
    with (
        in_cache(target, what, size),
        _for_everybody(),
        hold_patiently(lock or target.with_name(f"{target.name}.lock")),
    ):
        if not right(target):
            with draft(target) as new:
                make(new)
                _remove_but(new)
                flush_file_system(new.parent)
    return target


def _remove_but(new: Path) -> None:
    """Remove everything except the draft from its folder before the flush."""
    for path in new.parent.iterdir():
        if path == new:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


@contextmanager
def _for_everybody() -> Iterator[None]:
    """Make the files of the block readable for every user."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def in_cache(target: Path, what: str, size: str) -> Iterator[None]:
    """Convert an OSError of the block to a RigError that ``what`` cannot be written to ``target``."""
    try:
        yield
    except OSError as error:
        reason, place = error.strerror, error.filename
        if isinstance(error, shutil.Error):  # of a copied tree, which lists a source, a target and a reason for each
            _, place, reason = error.args[0][0]
        inside = place and Path(os.fsdecode(place)).is_relative_to(
            target.parent
        )  # otherwise the file is the source of a copy
        raise RigError(
            f"{what} cannot be written: {reason}",
            where=str(place if inside else target),
            hint=f"it needs {size} of disk space in a folder that you own; LONGFAT_CACHE names another folder",
        ) from error


def _prefix(target: Path) -> str:
    return f".partial-{target.name}-"
