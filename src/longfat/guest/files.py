# SPDX-License-Identifier: Apache-2.0
"""Files of the kernel, of a run and of a study's programs: how they are read, written and copied."""

from __future__ import annotations

# Programs of a run import this module, and every further import would delay them.
import errno
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.spec.runspec import Sent

READ_BYTES = 1 << 14
COPY_BYTES = 1 << 16
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for its writer
_REASONS = {errno.ENOENT: "it is not there", errno.ELOOP: "it is a link"}


def read_file(path: str | Path) -> str:
    """Return the text of a kernel file with the fewest system calls: a run reads hundreds of files."""
    descriptor, text = os.open(path, os.O_RDONLY), b""
    try:
        while more := os.read(descriptor, READ_BYTES):
            text += more
    finally:
        os.close(descriptor)
    return text.decode()


def write_json(path: Path, data: object) -> None:
    """Write ``data`` as sorted, indented JSON."""
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


def report_of(kind: str, one: Sent) -> dict[str, Any]:
    """Return the first members of a traffic's report, which all kinds share."""
    found: dict[str, Any] = {kind: one.name, "sender": one.sender, "receiver": one.receiver}
    found |= {"start_us": one.start_us, "end_us": one.start_us + one.duration_us}
    return found | ({"cca": one.cca} if hasattr(one, "cca") else {})


def write_points(path: Path, column: str, points: Iterable[tuple[int, int]]) -> None:
    """Write a table of ``t_us`` and one more column."""
    with path.open("w") as table:
        table.write(f"t_us,{column}\n")
        table.writelines(f"{t_us},{value}\n" for t_us, value in points)


def copy_file(source: Path, target: Path, most_bytes: int) -> str | None:
    """Copy a plain file of at most ``most_bytes`` from an untrusted folder; return a refusal's reason, or None."""
    try:
        descriptor = os.open(source, _OPEN)
    except OSError as error:
        return _REASONS.get(error.errno or 0, f"it cannot be opened: {error.strerror}")
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return "it is not a plain file"
        if facts.st_size > most_bytes:
            return f"it has {facts.st_size} bytes, allowed {most_bytes}"
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(descriptor, "rb", closefd=False) as file, target.open("wb") as copy:
            while block := file.read(COPY_BYTES):
                copy.write(block)
    finally:
        os.close(descriptor)
    return None
