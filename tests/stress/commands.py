# SPDX-License-Identifier: Apache-2.0
"""The command, called in this process or in its own, and the processes below it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import psutil
from typer.testing import CliRunner

from longfat.cli import app, main

SOURCE = Path(__file__).parents[2] / "src"
# Processes of the command are forked from one that only imported these modules, because imports take seconds.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["fake_backend", "stress.commands", "longfat.cli.reproduce", "longfat.cli.run", "longfat.backends.virtual"]
)
FAULTS = ("Traceback (most recent call last)", "a defect of Longfat itself")
GONE_S = 120.0


@dataclass(frozen=True)
class Answer:
    """Exit status and both outputs of a command that ended without a fault of the program."""

    status: int
    output: str

    def __post_init__(self) -> None:
        """Raise AssertionError for a traceback or a fault of the program."""
        assert self.status != 1 and not any(fault in self.output for fault in FAULTS), self.output[-2000:]

    @property
    def refused(self) -> bool:
        """Whether the command names a fault of study, machine or record."""
        return self.status in (2, 3)


def call(*arguments: object) -> Answer:
    """Call a command in this process."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "300"})
    return Answer(done.exit_code, done.output)


def start(arguments: Iterable[str], output: Path, root: Path) -> ForkServerProcess:
    """Start a command in its own session, with both outputs in a file and its temporary files in ``root/tmp``."""
    (root / "tmp").mkdir(exist_ok=True)
    path = f"{SOURCE}:{SOURCE.parent}/tests/fake"
    own: Mapping[str, str] = {"TMPDIR": f"{root}/tmp", "LONGFAT_ROOT": str(root), "PYTHONPATH": path, "COLUMNS": "300"}
    process = SERVER.Process(target=_main, args=(tuple(arguments), output, own))
    process.start()
    return process


def _main(arguments: Iterable[str], output: Path, own: Mapping[str, str]) -> None:
    os.setsid()
    with open(os.devnull, "rb") as nothing, output.open("wb") as file:
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(own)
    sys.argv = ["longfat", *arguments]
    main()


def send(number: int, processes: Iterable[psutil.Process]) -> int:
    """Send a signal; return to how many processes, because some may have ended."""
    sent = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
            sent += 1
    return sent


def ended(process: ForkServerProcess, output: Path, seconds: float) -> Answer:
    """Wait for the end of a command. Raises AssertionError, and kills it, if it takes longer."""
    process.join(seconds)
    if process.exitcode is None:
        send(signal.SIGKILL, below(process.pid))
        process.join()
        raise AssertionError(f"the command did not end within {seconds:.0f} s")
    return Answer(process.exitcode, output.read_text(encoding="utf-8", errors="replace"))


def below(number: int | None) -> list[psutil.Process]:
    """Return the process and its descendants."""
    try:
        process = psutil.Process(number or 0)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def await_gone(processes: Iterable[psutil.Process], root: Path) -> list[psutil.Process]:
    """Wait for the end of the processes and of all whose temporary files are in ``root/tmp``.

    Returns stopped processes of a killed guest, which the next start ends. Raises AssertionError, and kills them, if
    others do not end.
    """
    waiting = [*processes, *(one for one in psutil.process_iter() if _temporary(one) == f"{root}/tmp")]
    deadline = time.monotonic() + GONE_S
    while left := [one for one in waiting if lives(one) and not _is_orphan(one)]:
        if time.monotonic() > deadline:
            lines = [" ".join(one.cmdline()) for one in left]
            for one in left:
                one.kill()
            raise AssertionError(f"still running {GONE_S:.0f} s after the command: {', '.join(lines)}")
        time.sleep(0.05)
    return [one for one in waiting if lives(one)]


def lives(process: psutil.Process) -> bool:
    """Return whether a process still runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_orphan(process: psutil.Process) -> bool:
    try:
        stopped = process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
        return stopped and not psutil.pid_exists(os.getsid(process.pid))
    except (psutil.NoSuchProcess, ProcessLookupError):
        return False


def _temporary(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("TMPDIR")
    except (psutil.Error, OSError):
        return None
