# SPDX-License-Identifier: Apache-2.0
"""The command ``longfat``: its commands, the version, completion, signals, and the end of the process.

The module of a command is imported when the command is called, so it may import anything; ``--help`` imports none.
Exit status: 0 success, 1 a defect of the program, 2 a wrong study or command line, 3 a fault of the machine or of a
tool, 4 runs that failed, are invalid or differ from the evidence, 130 interrupted.
"""

from __future__ import annotations

import gc
import importlib
import keyword
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script
from typer.core import TyperGroup

from longfat.cli.outcome import INTERRUPTED, command_of, complain, guard_streams
from longfat.system.errors import RigError
from longfat.system.processes import LEAST_FILES, enough_descriptors

if TYPE_CHECKING:
    from types import FrameType

    from typer._click.formatting import HelpFormatter

NAME = "longfat"
STOPS = (signal.SIGTERM, signal.SIGHUP)
LATER_S = 0.01  # until a lost interrupt is repeated
COMPLETE = "_LONGFAT_COMPLETE"  # set by a shell's completion script

COMMANDS = {
    "Studies": {
        "try": "run algorithms on a path, print curves",
        "reproduce": "run a study, judge its claims, write the report",
        "new": "make the folder of a new study, which runs as it is",
        "check": "name every problem of a study",
        "plan": "print factors, fixed settings, exclusions and cost",
        "run": "execute the runs that have no valid record",
        "report": "rebuild dataset, verdicts, figures and report",
        "evaluate": "test an algorithm against RFC 9743 (BCP 133)",
        "package": "pack results for an archive, as an RO-Crate",
        "merge": "merge records from elsewhere into one folder",
    },
    "One run": {
        "show": "print settings declared and achieved, and metrics",
        "again": "repeat a run, or a sample of a study's evidence",
        "shell": "open a shell in the network of a run",
    },
    "Evidence": {
        "verdicts": "print the verdicts by the committed evidence",
        "compare": "compare verdicts of two results or stacks",
        "evidence": "add runs to the evidence in the repository",
    },
    "Machines": {
        "lab": "make, prepare and destroy the machines of a lab",
        "build": "build kernel, image, container or disk",
        "bench": "measure the speed of runs on this machine",
        "kernel-check": "check that the kernels behave as before",
    },
    "This program": {
        "completion": "print a completion script for a shell",
    },
}
"""The commands under their headings, each with its line in ``longfat --help``."""


def load_command(name: str) -> Any:
    """Import a command, or the group of a module that has several."""
    settings: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None}
    if name == "completion":
        single = typer.Typer(**settings)
        single.command()(completion)
        return typer.main.get_command(single)
    own = name.replace("-", "_") + "_" * keyword.iskeyword(name)
    module = importlib.import_module(f"longfat.cli.{own}")
    group: tuple[Callable[..., Any], ...] | None = getattr(module, "COMMANDS", None)
    made = typer.Typer(**settings, **({"cls": _Group, "no_args_is_help": True, "help": module.HELP} if group else {}))
    for function in group or (getattr(module, own),):
        made.command(function.__name__.rstrip("_").replace("_", "-"))(command_of(function))
    return typer.main.get_command(made)


class _Group(TyperGroup):
    """Commands below a command, listed with their whole help."""

    def format_commands(self, ctx: Any, formatter: HelpFormatter) -> None:
        """Write a section with a row for each command."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (command.help or "").removesuffix(".")) for name, command in self.commands.items()]
            )


class _Root(TyperGroup):
    """The root of all commands, which lists them without importing them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(name for group in COMMANDS.values() for name in group)  # type: ignore[assignment]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command."""
        return load_command(cmd_name) if cmd_name in self.commands else None

    def format_commands(self, ctx: Any, formatter: HelpFormatter) -> None:
        """Write a section for each heading."""
        width = max(map(len, self.commands))
        for heading, commands in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete a command by its name, else an option."""
        from typer._click.shell_completion import CompletionItem

        lines = {name: line for group in COMMANDS.values() for name, line in group.items()}
        found = [CompletionItem(name, help=line) for name, line in lines.items() if name.startswith(incomplete)]
        return found or super().shell_complete(ctx, incomplete)


app = typer.Typer(
    cls=_Root,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text, in a third of the time
    epilog="Recipes for development: ./just --list",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from longfat.cli.version import version_lines

        typer.echo("\n".join(version_lines()))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="print version, commit, kernel and image; exit"
        ),
    ] = False,
) -> None:
    """Reproduce published TCP congestion-control studies with real Linux TCP.

    \b
    Start here; `./just COMMAND` is `longfat COMMAND`:
      ./just try cubic bbr          two algorithms on a path, in seconds
      ./just reproduce _smoke       the whole chain on a small study, in a minute
      ./just reproduce sandia-2003  every figure and claim of a paper
      ./just new NAME               your own study
    """


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="shell that reads the script")],
) -> None:
    """Print a script that completes commands, options, studies and runs: eval "$(longfat completion bash)"."""
    typer.echo(get_completion_script(prog_name=NAME, complete_var=COMPLETE, shell=shell))


def main() -> None:
    """Run the command line; the only function that ends the process."""
    gc.set_threshold(100_000)  # the objects of modules live until the end
    sys.unraisablehook = _repeat_interrupt
    signal.signal(
        signal.SIGCHLD, signal.SIG_DFL
    )  # with SIGCHLD ignored, as under some daemons, the status of child processes is lost
    for number in (signal.SIGINT, *STOPS):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup(1) ignores SIGHUP, a shell SIGINT in the background
            signal.signal(number, _interrupt)
    if COMPLETE in os.environ:
        completion_init()
    try:
        guard_streams()
        if not enough_descriptors():
            complain(f"error: a process may open fewer than {LEAST_FILES} files here\n  hint: ulimit -n 1024")
            sys.exit(RigError.exit_status)
        try:
            app(prog_name=NAME)
        finally:
            gc.freeze()  # the end of the process frees everything at once
            if sys.stdout:
                sys.stdout.flush()
    except KeyboardInterrupt:  # an interrupt before the command
        complain("interrupted; nothing was begun")
        sys.exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Treat SIGTERM and a closed terminal as Ctrl-C, but only once, so that the clean-up is not disturbed.

    Raised within ``logging``, a KeyboardInterrupt could leave its lock taken, which each fork(2) with ``preexec_fn``
    takes and releases, too: another thread would wait for it for ever.
    """
    if number in STOPS:
        for stop in STOPS:
            signal.signal(stop, lambda number, frame: None)
    while frame is not None:
        if frame.f_globals.get("__name__") == "logging":
            _interrupt_later()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _repeat_interrupt(found: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt in a callback after fork(2) or in a finalizer, where Python only reports it."""
    if not issubclass(found.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(found)
    else:
        _interrupt_later()


def _interrupt_later() -> None:
    signal.signal(signal.SIGINT, _interrupt)
    later = threading.Timer(LATER_S, os.kill, (os.getpid(), signal.SIGINT))
    later.daemon = True
    later.start()
