# SPDX-License-Identifier: Apache-2.0
"""``shell``: a shell in a guest with the network of a run, in virtual time."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.backends.shell.session import Prompt, converse, session
from longfat.backends.virtual import VirtualBackend, open_virtual
from longfat.cli.again import pins_here
from longfat.cli.console import Screen, say
from longfat.cli.find_run import Found, find_run
from longfat.cli.options import InResults, Target
from longfat.cli.outcome import INTERRUPTED
from longfat.cli.paths import study_names
from longfat.cli.study import find_study
from longfat.data.study_folder import StudyFolder
from longfat.plan import Scenario, scenarios_of
from longfat.spec.network import lay_out
from longfat.spec.runspec import RunSpec
from longfat.system.errors import StudyError

SHOWN = 20  # most points in a message
PROFILE = "paper"  # has all points


def shell(
    console: Console,
    target: Target = None,
    point: Annotated[
        str | None, typer.Argument(help="point of the study: its scenario, or the beginning of one")
    ] = None,
    command: Annotated[
        list[str] | None, typer.Option("--command", "-c", help="execute this and leave; may be given several times")
    ] = None,
    results: InResults = None,
) -> int:
    """Open a shell in the network of one run, where ping, ss, tc and tcpdump work in virtual time."""
    if target is None:
        raise StudyError("no run or study is named", where="RUN|STUDY")
    console, commands = Screen(stderr=True), command or ()
    found = _found(target, point, results)
    backend: VirtualBackend = open_virtual(partial(say, console), *found.kernels)
    spec = dataclasses.replace(found.spec, pins=pins_here(backend, found.spec, found.source))
    if reasons := backend.refuses(spec):
        raise StudyError("; ".join(reasons))
    node = next((node.name for node in spec.nodes if node.role == "sender"), spec.nodes[0].name)
    if not commands and sys.stdin.isatty():
        _introduce(spec, node, console)
    try:
        with session(backend, spec, node, _show) as one:
            return converse(one, _source(commands))
    except KeyboardInterrupt:
        say(console, "\nthe guest was ended: its command never slept, so it could not be interrupted")
        return INTERRUPTED


def _found(target: str, point: str | None, given: Path | None) -> Found:
    """Return a run, or the first repetition of a study's point."""
    try:
        study = find_study(target)
    except StudyError as error:
        if point is not None:
            raise
        no_study = error
    else:
        one = point_of(study, point)
        return Found(one.run(1, 1).spec, one.name, 1, study.name, study.header.stack, home=study)
    try:
        found = find_run(target, given)
    except StudyError as error:
        hint = f"studies are {', '.join(study_names())}; {error.hint or no_study.hint}"
        raise StudyError(error.message, where=error.where, hint=hint) from error
    if found.backend != DEFAULT_BACKEND:
        raise StudyError(f"the run is of backend {found.backend!r}, but shells need {DEFAULT_BACKEND!r}", where=target)
    return found


def point_of(folder: StudyFolder, point: str | None) -> Scenario:
    """Return the scenario with this name, or the only one whose name begins so. Raises StudyError with all names."""
    study = folder.study
    pins = {"backend": DEFAULT_BACKEND}
    scenarios, _ = scenarios_of(study, profile=PROFILE, stack=study.header.stack, pins=pins)
    wanted = [one for one in scenarios if one.name == point] or [
        one for one in scenarios if point is None or one.experiment == point or one.name.startswith(point)
    ]
    if len(wanted) == 1:
        return wanted[0]
    names = [one.name for one in wanted or scenarios]
    listing = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    what = "is not a point of the study" if not wanted else "names several points of the study"
    message = f"{point!r} {what}" if point else "the study has several points"
    raise StudyError(message, where="POINT", hint=f"give one of {listing}")


def _introduce(spec: RunSpec, node: str, console: Console) -> None:
    """Print the nodes and a short help."""
    topology = lay_out(spec)
    for name, ports in topology.ports.items():
        links = ", ".join(f"{port.name} {port.address} to {port.peer}" for port in ports)
        say(console, f"{name}: {links}")
    flows = ", ".join(flow.name for flow in spec.flows)
    say(console, f"You are on {node}. Each node is a command: `{spec.nodes[-1].name} ss -ti`; `on NODE` goes there.")
    starting = f"`start` starts the flows of the run ({flows}); " if flows else ""
    say(console, f"{starting}ping, ss, tc, ip, sysctl, tcpdump and iperf are available.")
    say(console, "The clock stands still while you type: only commands make time pass, such as `sleep 5`. Ctrl-D ends.")


def _source(commands: Sequence[str]) -> Callable[[Prompt], str | None]:
    """Return the source of lines: the given commands, a file or pipe, or the keyboard."""
    if commands or not sys.stdin.isatty():
        lines: Iterator[str] = iter(commands or (line.rstrip("\n") for line in sys.stdin))
        return lambda prompt: next(lines, None)
    import readline  # noqa: F401 - input() edits lines and remembers them by it

    return _typed


def _typed(prompt: Prompt) -> str | None:
    while True:
        try:
            return input(str(prompt))
        except KeyboardInterrupt:
            print()
        except EOFError:
            print()
            return None


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
