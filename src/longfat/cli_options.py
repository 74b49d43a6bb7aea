# SPDX-License-Identifier: Apache-2.0
"""The shared parts of the command line's verbs: arguments and options with their help, and reports of outcomes.

Owns messages of errors and the exit status.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longfat.backends.registry import backend_names
from longfat.errors import LongfatError, RigError

if TYPE_CHECKING:
    from rich.console import Console

    from longfat.execute.study import Summary

RUNS_NOT_VALID = 4
UNFINISHED = 75  # EX_TEMPFAIL of sysexits(3): a later attempt is to succeed
INTERRUPTED = 130

Study = Annotated[str, typer.Argument(help="name under experiments/, or path of a folder with study.yaml")]
Profile = Annotated[str, typer.Option(help="smoke, quick or paper")]
Only = Annotated[str, typer.Option(help="ids of artifacts or experiments, separated by commas")]
Stack = Annotated[str | None, typer.Option(help="stack profile instead of the study's own")]
Seed = Annotated[int | None, typer.Option(min=0, help="seed instead of the study's own")]
BackendName = Annotated[str, typer.Option("--backend", help=f"where runs happen: {', '.join(backend_names())}")]
Jobs = Annotated[int | None, typer.Option(min=1, help="runs at a time (default: one for each CPU)")]
Results = Annotated[Path | None, typer.Option(help="results folder (default: results/STUDY)")]
UsedLab = Annotated[str | None, typer.Option("--lab", help="lab that the backend uses, as `lab up` named it")]
LabEnvironment = Annotated[str, typer.Argument(help="local, libvirt, openstack, latitude or existing")]
OfLab = Annotated[str | None, typer.Argument(help="environment, which is the lab's name unless --lab states another")]
LabName = Annotated[str | None, typer.Option("--lab", help="name of the lab (default: that of its environment)")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask")]
Budget = Annotated[str | None, typer.Option(help="wall time for what decides open claims, such as 45min or 2h")]
Sample = Annotated[str, typer.Option(help="runs to run again: a number, or a percentage (never fewer than 20)")]
SampleOnly = Annotated[
    str | None, typer.Option(help="run a sample of the study's evidence again instead: a number of runs, or 5%")
]
EpochName = Annotated[str | None, typer.Option("--epoch", help="epoch of the evidence (default: the newest)")]
ShardOption = Annotated[
    str | None, typer.Option("--shard", help="part of the runs: K/N, or auto in an array of Slurm or Kubernetes")
]
Until = Annotated[
    str | None, typer.Option("--until", help="end by then: a length of time such as 45min, or a time such as 06:30")
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="cluster that executes the runs: slurm, ssh:HOST,... or kubernetes:image=...,claim=... (docs/cluster.md)",
    ),
]
StoreAddress = Annotated[str | None, typer.Option("--store", help="address for a shard's records, s3://bucket/study")]
Tasks = Annotated[int | None, typer.Option(min=1, help="tasks for the cluster (default: by the estimate)")]
Scheduler = Annotated[str | None, typer.Option(help="address of a Dask scheduler to use, tcp://host:port")]


@contextmanager
def outcome() -> Iterator[Console]:
    """Give a console, and turn an error or an interrupt into its message and exit status."""
    try:
        from rich.console import Console

        yield Console()
    except LongfatError as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(error.exit_status) from error
    except KeyboardInterrupt as error:
        sys.stderr.write("interrupted; finished work is kept, and the same command continues\n")
        raise typer.Exit(INTERRUPTED) from error
    except (typer.Exit, typer.Abort):
        raise
    except OSError as error:
        refused = RigError(f"the machine refuses: {error.strerror or error}", where=_file_of(error))
        sys.stderr.write(f"error: {refused}\n")
        raise typer.Exit(refused.exit_status) from error
    except Exception as error:
        sys.stderr.write(_fault(error))
        raise typer.Exit(LongfatError.exit_status) from error


def _file_of(error: OSError) -> str | None:
    return None if error.filename is None else os.fsdecode(error.filename)


def _fault(error: Exception) -> str:
    """The message for a fault of the program itself, whose traceback goes into a file."""
    first = next(iter(str(error).splitlines()), "")
    said = f"error: a defect of Longfat itself: {type(error).__name__}: {first}\n"
    told = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="longfat-fault-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(told)
    except OSError:
        return said + told
    return f"{said}  hint: please report it with {file.name}; finished work is kept\n"


def finish(valid: bool) -> None:
    """End with a separate exit status where some run is not valid."""
    if not valid:
        sys.stderr.write("some runs failed or are invalid; the report and exclusions.csv say which and why\n")
        raise typer.Exit(RUNS_NOT_VALID)


def settle(summary: Summary) -> None:
    """End with the status of an execution: runs that are left for want of time, or failed."""
    if summary.left:
        sys.stderr.write(f"the time is up; {summary.left} runs are left, and the same command continues\n")
        raise typer.Exit(UNFINISHED)
    finish(summary.failed == 0)


def verified(same: bool) -> None:
    """End with the same exit status where some run differs from the evidence."""
    if not same:
        sys.stderr.write("some runs differ from the evidence: its verdicts are unverified\n")
        raise typer.Exit(RUNS_NOT_VALID)


def ids(text: str) -> tuple[str, ...]:
    """The items between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def say(console: Console, what: str, path: Path) -> None:
    """Print where something is."""
    console.print(f"{what}: {path}", soft_wrap=True, markup=False, highlight=False)
