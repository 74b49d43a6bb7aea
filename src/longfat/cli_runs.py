# SPDX-License-Identifier: Apache-2.0
"""The commands about one run: to look at it, to run it again, to capture it, to open a shell in its network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longfat.cli_options import RUNS, Json, outcome, shown
from longfat.runspec import CapturePoint
from longfat.verbs.places import study_names

runs = typer.Typer()


def _run_names(incomplete: str) -> list[str]:
    from longfat.verbs.found import run_names

    return run_names(incomplete)


def _studies_and_runs(incomplete: str) -> list[str]:
    return [name for name in study_names() if name.startswith(incomplete)] or _run_names(incomplete)


RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="beginning of a run's id, or name or path of its folder", autocompletion=_run_names
    ),
]
InResults = Annotated[Path | None, typer.Option("--results", help="results folder that the run is in (default: all)")]


@runs.command(rich_help_panel=RUNS)
def show(run: RunName, results: InResults = None, as_json: Json = False) -> None:
    """Print one run: settings declared and achieved, gates, metrics and files."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.show import show

        shown(show(run, results, console, as_json=as_json))


@runs.command(rich_help_panel=RUNS)
def again(run: RunName, results: InResults = None, as_json: Json = False) -> None:
    """Run one run once more and compare it to the byte with what is kept."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.again import again

        shown(again(run, results, console, as_json=as_json))


@runs.command(rich_help_panel=RUNS)
def pcap(
    run: RunName,
    results: InResults = None,
    at: Annotated[CapturePoint, typer.Option(help="where to capture")] = "sender",
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="open the captures in Wireshark, if it is there")
    ] = True,
    as_json: Json = False,
) -> None:
    """Run one run again with a capture of all its traffic, and open the captures in Wireshark if it is there."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.again import pcap

        shown(pcap(run, results, console, at=at, opened=open_, as_json=as_json))


@runs.command(rich_help_panel=RUNS)
def shell(
    target: Annotated[str, typer.Argument(metavar="RUN|STUDY", help="run or study", autocompletion=_studies_and_runs)],
    point: Annotated[
        str | None, typer.Argument(help="point of the study: its scenario, or a beginning of that")
    ] = None,
    command: Annotated[
        list[str] | None, typer.Option("--command", "-c", help="execute this and leave; may be given several times")
    ] = None,
    results: InResults = None,
) -> None:
    """Open a shell in the network of one run, where ping, ss, tc and tcpdump work in virtual time."""
    with outcome(as_json=True) as console:
        from longfat.verbs.shell import shell

        raise typer.Exit(shell(target, point, results, command or (), console))
