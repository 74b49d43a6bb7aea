# SPDX-License-Identifier: Apache-2.0
"""The shared parts of the command line's verbs: arguments and options with their help, and reports of outcomes.

Owns messages of errors and the exit status.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from longfat.backends.registry import backend_names, require_backend
from longfat.catalog.stacks import STACKS
from longfat.errors import LongfatError, RigError, StudyError
from longfat.schema.names import unknown
from longfat.verbs.places import study_names, study_path

if TYPE_CHECKING:
    from rich.console import Console
    from typer._click.formatting import HelpFormatter

    from longfat.execute.study import Summary
    from longfat.studies import StudyFolder
    from longfat.verbs.study import Choices

RUNS_NOT_VALID = 4
UNFINISHED = 75  # EX_TEMPFAIL of sysexits(3): a later attempt is to succeed
INTERRUPTED = 130
CLOSED_PIPE = 141  # as a shell says of a program that SIGPIPE has ended

# The headings of the commands, in their order.
STUDIES, RUNS, EVIDENCE, MACHINES = "Studies", "One run", "Evidence", "Machines"
TESTBED, PROGRAM = "The testbed itself", "This program"
PROFILES = ("smoke", "quick", "steady", "paper")  # as longfat.manifest.profiles has them, which takes longer to import
HEADINGS = (STUDIES, RUNS, EVIDENCE, MACHINES, TESTBED, PROGRAM)

Given = TypeVar("Given")


class _Output(io.FileIO):
    """Standard output or standard error, whose failure ends the program with a status of its own.

    A reader that has gone, as in `longfat plan STUDY | head`, gives 141; a full disk a sentence and 3.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # what is still buffered goes nowhere
            if isinstance(error, BrokenPipeError):
                raise SystemExit(CLOSED_PIPE) from None
            with suppress(OSError):
                os.write(2, f"error: the output cannot be written: {error.strerror}\n".encode())
            raise SystemExit(RigError.exit_status) from None


def guard_output() -> None:
    """Let a failure to write to standard output or standard error end the program, without a traceback."""
    for name in ("stdout", "stderr"):
        former = getattr(sys, name)
        try:
            raw = _Output(former.fileno(), "w", closefd=False)
        except (AttributeError, OSError):  # it was closed before the start, or is no file
            continue
        lines = name == "stderr" or former.isatty()
        buffer = io.BufferedWriter(raw)
        text = io.TextIOWrapper(buffer, former.encoding, former.errors, line_buffering=lines)
        setattr(sys, name, text)


@contextmanager
def errors_told() -> Iterator[None]:
    """Turn an error or an interrupt into its message and exit status."""
    try:
        yield
    except LongfatError as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(error.exit_status) from error
    except KeyboardInterrupt as error:
        raise _interrupted() from error
    except (typer.Exit, typer.Abort):
        raise
    except OSError as error:
        refused = RigError(f"the machine refuses: {error.strerror or error}", where=_file_of(error))
        sys.stderr.write(f"error: {refused}\n")
        raise typer.Exit(refused.exit_status) from error
    except Exception as error:
        if _amid_interrupt(error):
            raise _interrupted() from error
        sys.stderr.write(_fault(error))
        raise typer.Exit(LongfatError.exit_status) from error


def _interrupted() -> typer.Exit:
    sys.stderr.write("interrupted; finished work is kept, and the same command continues\n")
    return typer.Exit(INTERRUPTED)


def _amid_interrupt(error: BaseException | None) -> bool:
    """Whether it was raised while an interrupt was handled: a library's clean-up of half an object may fail so."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


@contextmanager
def outcome(*, as_json: bool = False) -> Iterator[Console]:
    """Give a console, and turn an error or an interrupt into its message and exit status.

    Where a verb prints JSON, nothing else goes to standard output: the console is that of standard error.
    """
    with errors_told():
        from rich.console import Console

        yield Console(stderr=as_json)


def checked(check: Callable[[Given], object]) -> Callable[[Given | None], Given | None]:
    """A callback of an option or argument that is checked before the verb imports anything."""

    def callback(given: Given | None) -> Given | None:
        if given is not None:
            with errors_told():
                check(given)
        return given

    return callback


def _require_profile(name: str) -> None:
    if name not in PROFILES:
        message, hint = unknown("profile", name, PROFILES)
        raise StudyError(message, where="--profile", hint=hint)


def _require_stack(name: str) -> None:
    if name not in STACKS:
        message, hint = unknown("stack", name, STACKS)
        raise StudyError(message, where="--stack", hint=hint)


class Grouped(TyperGroup):
    """Lists the commands under the headings of their ``rich_help_panel``, as `./just` lists its recipes."""

    def format_commands(self, ctx: Any, formatter: HelpFormatter) -> None:
        """Write a section for each heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                told = (command.help or "").partition("\n\n")[0].removesuffix(".")
                heading = getattr(command, "rich_help_panel", None)
                sections.setdefault(heading if heading in HEADINGS else "Commands", []).append((name, told))
        width = max(len(name) for rows in sections.values() for name, _ in rows)
        for heading in sorted(sections, key=("Commands", *HEADINGS).index):
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), told) for name, told in sections[heading]])


def known_studies(names: Sequence[str]) -> None:
    """Raise StudyError unless there are studies of all these names."""
    for name in names:
        study_path(name)


def _studies(incomplete: str) -> list[str]:
    return [name for name in study_names() if name.startswith(incomplete)]


Study = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="name under experiments/, or path of a folder with study.yaml",
        callback=checked(study_path),
        autocompletion=_studies,
    ),
]
Profile = Annotated[
    str,
    typer.Option(
        help="smoke, quick, steady or paper", callback=checked(_require_profile), autocompletion=lambda: [*PROFILES]
    ),
]
Every = Annotated[bool, typer.Option("--all", help="print every verdict, not only those that are not as stated")]
Opened = Annotated[bool, typer.Option("--open", help="open the page in the browser")]
Json = Annotated[bool, typer.Option("--json", help="print JSON instead of text")]
Only = Annotated[str, typer.Option(help="ids of artifacts or experiments, separated by commas")]
Stack = Annotated[
    str | None,
    typer.Option(
        help="stack profile instead of the study's own",
        callback=checked(_require_stack),
        autocompletion=lambda incomplete: [name for name in STACKS if name.startswith(incomplete)],
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="seed instead of the study's own")]
BackendName = Annotated[
    str,
    typer.Option(
        "--backend",
        help=f"where runs happen: {', '.join(backend_names())}",
        callback=checked(require_backend),
        autocompletion=lambda incomplete: [name for name in backend_names() if name.startswith(incomplete)],
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="runs at a time (default: one for each CPU)")]
Results = Annotated[Path | None, typer.Option(help="results folder (default: results/STUDY)")]
UsedLab = Annotated[str | None, typer.Option("--lab", help="lab that the backend uses, as `lab up` named it")]
LabEnvironment = Annotated[str, typer.Argument(help="local, libvirt, openstack, latitude or existing")]
OfLab = Annotated[str | None, typer.Argument(help="environment, which is the lab's name unless --lab states another")]
LabName = Annotated[str | None, typer.Option("--lab", help="name of the lab (default: that of its environment)")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask")]
Budget = Annotated[str | None, typer.Option(help="wall time, such as 45min or 2h: no batch begins after it")]
Repetitions = Annotated[int, typer.Option(min=1, help="least number of repetitions of each scenario")]
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


def shown(valid: bool) -> None:
    """End with the same exit status where the one run that was looked at is not valid; what was printed says why."""
    if not valid:
        raise typer.Exit(RUNS_NOT_VALID)


def verified(same: bool) -> None:
    """End with the same exit status where some run differs from the evidence."""
    if not same:
        sys.stderr.write("some runs differ from the evidence: its verdicts are unverified\n")
        raise typer.Exit(RUNS_NOT_VALID)


def chosen(study: str, profile: str, only: str, stack: str | None, seed: int | None) -> tuple[Choices, StudyFolder]:
    """What is chosen of a study, checked, and the study: before what runs and judges is imported, which takes longer.

    Raises StudyError.
    """
    from longfat.verbs.study import Choices, find_study

    folder, choices = find_study(study), Choices(profile, ids(only), stack, seed)
    folder.experiments_named(choices.only)
    return choices, folder


def ids(text: str) -> tuple[str, ...]:
    """The items between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
