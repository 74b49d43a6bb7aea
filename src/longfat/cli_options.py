# SPDX-License-Identifier: Apache-2.0
"""What the verbs of the command line share: arguments and options with their help, and how an outcome is told.

Owns messages of errors and the exit status.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longfat.backends.registry import backend_names
from longfat.errors import LongfatError

if TYPE_CHECKING:
    from rich.console import Console

RUNS_NOT_VALID = 4
INTERRUPTED = 130

Study = Annotated[str, typer.Argument(help="name under experiments/, or path of a folder with study.yaml")]
Profile = Annotated[str, typer.Option(help="smoke, quick or paper")]
Only = Annotated[str, typer.Option(help="ids of artifacts or experiments, separated by commas")]
Stack = Annotated[str | None, typer.Option(help="stack profile instead of the study's own")]
Seed = Annotated[int | None, typer.Option(min=0, help="seed instead of the study's own")]
BackendName = Annotated[str, typer.Option("--backend", help=f"where runs happen: {', '.join(backend_names())}")]
Jobs = Annotated[int | None, typer.Option(min=1, help="runs at a time (default: one a CPU)")]
Results = Annotated[Path | None, typer.Option(help="results folder (default: results/STUDY)")]
UsedLab = Annotated[str | None, typer.Option("--lab", help="lab that the backend uses, as `lab up` named it")]
LabEnvironment = Annotated[str, typer.Argument(help="local, libvirt, openstack, latitude or existing")]
OfLab = Annotated[str | None, typer.Argument(help="environment, which is the lab's name unless --lab states another")]
LabName = Annotated[str | None, typer.Option("--lab", help="name of the lab (default: that of its environment)")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask")]
Sample = Annotated[str, typer.Option(help="runs to run again: a number, or a percentage (never fewer than 20)")]
EpochName = Annotated[str | None, typer.Option("--epoch", help="epoch of the evidence (default: the newest)")]
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
        sys.stderr.write("interrupted; what is finished is kept, the same command continues\n")
        raise typer.Exit(INTERRUPTED) from error


def finish(valid: bool) -> None:
    """End with an exit status of its own where some run is not valid."""
    if not valid:
        sys.stderr.write("some runs failed or are invalid; the report and exclusions.csv say which and why\n")
        raise typer.Exit(RUNS_NOT_VALID)


def verified(same: bool) -> None:
    """End with the same where some run is not what the evidence says."""
    if not same:
        sys.stderr.write("some runs of the evidence are not what they were: its verdicts are unverified\n")
        raise typer.Exit(RUNS_NOT_VALID)


def ids(text: str) -> tuple[str, ...]:
    """What commas separate."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def say(console: Console, what: str, path: Path) -> None:
    """Print where something is."""
    console.print(f"{what}: {path}", soft_wrap=True, markup=False, highlight=False)
