# SPDX-License-Identifier: Apache-2.0
"""Processes of the machine: git, their environment, their state, and the killing of leftover processes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

LEAST_FILES = 64  # open files: a run with its guest needs about thirty
MOST_FILES = 4096


def enough_descriptors() -> bool:
    """Raise the limit of open files as far as allowed and useful; return whether it suffices."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return soft == resource.RLIM_INFINITY or soft >= LEAST_FILES


def is_running(process: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    fields = _fields(process)
    return bool(fields) and fields[0] not in ("Z", "X")


def children() -> set[int]:
    """Return the running child processes of this process, of all threads."""
    return {number for number in _all() if _is_child(number)}


def end_children(but: Collection[int] = ()) -> None:
    """Kill this process's children, except ``but``."""
    for number in children().difference(but):
        _kill(number, _is_child)


def end_orphans(folder: Path) -> None:
    """Kill this user's processes that work in ``folder`` and whose session leader has ended.

    A guest has its own session. A process that the guest's kernel started just before it was killed stays stopped for
    ever, and keeps the guest's memory (start_userspace in arch/um/os-Linux/skas/process.c).
    """
    place = folder.resolve()

    def is_orphan(number: int) -> bool:
        return Path(os.readlink(f"/proc/{number}/cwd")) == place and not is_running(os.getsid(number))

    for number in _all():
        with suppress(OSError):  # it has ended, or belongs to another user
            if is_orphan(number):
                _kill(number, is_orphan)


def limit_files(most_bytes: int) -> None:
    """Let no file that this process writes grow larger, in a child before exec: a host may send without end."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _all() -> Iterator[int]:
    yield from map(int, filter(str.isdigit, os.listdir("/proc")))


def _fields(process: int) -> list[str]:
    """Return the fields of a process from its state on (proc(5)), or none if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _is_child(number: int) -> bool:
    fields = _fields(number)
    return bool(fields) and fields[0] not in ("Z", "X") and int(fields[1]) == os.getpid()


def _kill(number: int, meant: Callable[[int], bool]) -> None:
    """Kill a process, unless its number belongs to another one by now."""
    with suppress(OSError):
        process = os.pidfd_open(number)
        try:
            if meant(number):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)


def environment_without(prefix: str, kept: Collection[str] = ()) -> dict[str, str]:
    """Return the environment without the variables that begin with ``prefix``, except those in ``kept``."""
    return {name: value for name, value in os.environ.items() if name in kept or not name.startswith(prefix)}


def git(checkout: Path, *arguments: str, seconds: float | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git in a checkout, never in the repository of GIT_DIR or a parent folder.

    The checkout may belong to another user. Raises FileNotFoundError without git, TimeoutExpired.
    """
    own = {"GIT_CEILING_DIRECTORIES": str(checkout.resolve().parent), "GIT_CONFIG_GLOBAL": os.devnull}
    settings = [f"safe.directory={checkout.resolve()}", "core.fsmonitor=false"]
    options = [word for setting in settings for word in ("-c", setting)]
    return subprocess.run(
        ["git", *options, "-C", str(checkout.resolve()), *arguments],
        env=environment_without("GIT_") | own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=seconds,
    )
