# SPDX-License-Identifier: Apache-2.0
"""The command, called in this process or in one of its own, and what it must never answer."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import pandas
from typer.testing import CliRunner

from campaigns.rounds import Failed
from longfat import cli
from longfat.verbs import conclude, run

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = (sys.executable, "-m", "longfat")
READ_BEFORE = (conclude, run, pandas)  # with all that they import, for those that `start` forks
FAULTS = ("Traceback (most recent call last)", "a defect of Longfat itself")


@dataclass(frozen=True)
class Answer:
    """Exit status and both outputs of a command."""

    status: int
    output: str

    @property
    def refused(self) -> bool:
        """Whether the command named a fault of study, machine or record."""
        return self.status in (2, 3)


def call(*arguments: object) -> Answer:
    """The answer of a verb. Raises Failed on a traceback or a fault of the program."""
    done = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], env={"COLUMNS": "300"})
    return answered(done.exit_code, done.output)


def answered(status: int, output: str) -> Answer:
    """The same of a process that has ended."""
    if status == 1 or any(fault in output for fault in FAULTS):
        raise Failed("traceback", output[-2000:])
    return Answer(status, output)


def environment(**more: str) -> Mapping[str, str]:
    """That of a process which uses this checkout."""
    return {**os.environ, "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}/tests/fake", "COLUMNS": "300", **more}


def start(arguments: tuple[str, ...], output: Path, own: Mapping[str, str], *, fresh: bool) -> BaseProcess:
    """The command in a process and a session of its own, with both outputs in a file.

    One that is not fresh is a fork of this process and has its modules, whose reading takes two thirds of a start. This
    process must not have used a library that has threads.
    """
    process = get_context("fork").Process(target=_become, args=(arguments, output, own, fresh))
    process.start()
    return process


def _become(arguments: tuple[str, ...], output: Path, own: Mapping[str, str], fresh: bool) -> None:
    os.setsid()
    for one in (signal.SIGPIPE, signal.SIGXFSZ) if fresh else ():  # as subprocess does
        signal.signal(one, signal.SIG_DFL)
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
        os.dup2(os.open(path, flags), number)
    os.dup2(1, 2)
    if fresh:
        os.execve(sys.executable, [*COMMAND, *arguments], own)
    os.environ.clear()
    os.environ.update(own)
    tempfile.tempdir = None
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
    sys.argv = [*COMMAND[-1:], *arguments]
    cli.main()
