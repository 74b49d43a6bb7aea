# SPDX-License-Identifier: Apache-2.0
"""The command, called in this process or in one of its own, and what it must never answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from campaigns.rounds import Failed
from longfat.cli import app

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = (sys.executable, "-m", "longfat")
FAULTS = ("Traceback (most recent call last)", "a fault of Longfat itself")


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
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "300"})
    return answered(done.exit_code, done.output)


def answered(status: int, output: str) -> Answer:
    """The same of a process that has ended."""
    if status == 1 or any(fault in output for fault in FAULTS):
        raise Failed("traceback", output[-2000:])
    return Answer(status, output)


def environment(**more: str) -> Mapping[str, str]:
    """That of a process which uses this checkout."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "300", **more}
