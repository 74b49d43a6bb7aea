# SPDX-License-Identifier: Apache-2.0
"""The command line about the program itself: its version, and completion in shells."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer._completion_shared import get_completion_script

from longfat.cli_options import PROGRAM, errors_told

NAME = "longfat"
COMPLETE = "_LONGFAT_COMPLETE"  # set by the script of a shell, with what it wants to know

program = typer.Typer()


def _print_version(wanted: bool) -> None:
    if wanted:
        with errors_told():
            from longfat.verbs.version import version_lines

            typer.echo("\n".join(version_lines()))
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="print version, commit, kernel and image; exit"
        ),
    ] = False,
) -> None:
    """Reproduce published TCP congestion-control studies with real Linux TCP.

    `./just COMMAND` does the same, and sets the machine up first.
    """


@program.command(rich_help_panel=PROGRAM)
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="the shell to write it for")],
) -> None:
    """Print a script that completes commands, options, studies and runs: eval "$(longfat completion bash)"."""
    typer.echo(get_completion_script(prog_name=NAME, complete_var=COMPLETE, shell=shell))
