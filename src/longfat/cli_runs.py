# SPDX-License-Identifier: Apache-2.0
"""The commands about one run: to look at it, to run it again, to capture it, to open a shell in its network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longfat.cli_options import RUNS, Json, outcome, shown

runs = typer.Typer()


def _run_names(incomplete: str) -> list[str]:
    from longfat.verbs.found import run_names

    return run_names(incomplete)


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
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="open the captures in Wireshark, if it is there")
    ] = True,
    as_json: Json = False,
) -> None:
    """Run one run again with a capture of every flow, and open it in Wireshark where there is one."""
    with outcome(as_json=as_json) as console:
        from longfat.verbs.again import pcap

        shown(pcap(run, results, console, opened=open_, as_json=as_json))
