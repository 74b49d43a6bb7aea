# SPDX-License-Identifier: Apache-2.0
"""``lab``: the machines of a lab, and the questions before one is made or destroyed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from longfat.cli.console import say
from longfat.cli.options import Yes
from longfat.errors import RigError, StudyError
from longfat.testbed.provision.changes import Price, describe, describe_removal, read_changes, refuse_expired
from longfat.testbed.provision.environments import INFRA
from longfat.testbed.provision.folder import VARIABLES
from longfat.testbed.provision.work import (
    Lab,
    alone,
    files_of,
    no_plan_left,
    note_inventory,
    open_lab,
    prepare,
    ready_terraform,
    remove_traces,
)
from longfat.testbed.provision.work import provision as provision_lab

SWEEP = INFRA / "terraform/sweep.py"
HELP = "Make, prepare and destroy the machines of a lab (docs/machines.md)."
ENVIRONMENTS = "local, libvirt, openstack, latitude or existing"

Environment = Annotated[str | None, typer.Argument(help=f"{ENVIRONMENTS}: the lab's name unless --lab states another")]
Name = Annotated[str | None, typer.Option("--lab", help="name of the lab (default: the name of its environment)")]


def up(
    console: Console,
    environment: Annotated[str, typer.Argument(help=ENVIRONMENTS)],
    name: Name = None,
    yes: Yes = False,
    hourly_price: Annotated[float | None, typer.Option(min=0, help="cost of an hour of the whole lab")] = None,
    currency: Annotated[str, typer.Option(help="currency of that price")] = "USD",
) -> None:
    """Print the planned machines and their cost, ask, make them, and write the lab's inventory."""
    price = Price(hourly_price, currency)
    lab = open_lab(environment, name)
    assert lab.environment is not None
    again = f"{lab.command('up')} goes on from there; {lab.command('down')} removes what is there"
    with files_of(lab):
        prepare(lab, lambda line: say(console, line))
    with files_of(lab), alone(lab), no_plan_left(lab):
        terraform = ready_terraform(lab, again, lambda line: say(console, line))
        plan = terraform.plan()
        changes = read_changes(plan) if plan else None
        if changes and changes.resources:
            now = datetime.now(UTC)
            _show(console, describe(changes, lab.environment, price, now))
            refuse_expired(changes, now, str(lab.folder / VARIABLES))
            _confirm(lab, yes)
        else:
            say(console, f"lab {lab.name}: it is up already, nothing to do")
        if plan:
            terraform.apply(lambda line: say(console, line))
        note_inventory(lab, terraform.inventory())
    say(console, f"lab {lab.name} is up: {lab.folder}")
    say(console, f"next: {lab.command('provision')}")


def provision(
    console: Console,
    environment: Environment = None,
    options: Annotated[list[str] | None, typer.Argument(help="options of ansible-playbook, after --")] = None,
    name: Name = None,
) -> None:
    """Prepare the machines of a lab with the roles of infra/ansible."""
    words = [word for word in (environment, *(options or ())) if word]
    environment = words.pop(0) if words and not words[0].startswith("-") else None
    lab = open_lab(environment, name)
    with files_of(lab), alone(lab):
        provision_lab(lab, words, lambda line: say(console, line))
    say(console, f"lab {lab.name} is prepared")


def down(console: Console, environment: Environment = None, name: Name = None, yes: Yes = False) -> None:
    """Print the machines to destroy, ask, destroy them, and remove the files that were made in the lab's folder."""
    lab = open_lab(environment, name)
    if not lab.folder.exists():
        say(console, f"there is no lab {lab.name} in {lab.folder.parent}: nothing to do")
        return
    with files_of(lab), alone(lab), no_plan_left(lab):
        if lab.standing:
            again = f"{lab.command('down')} goes on from there"
            terraform = ready_terraform(lab, again, lambda line: say(console, line))
            plan = terraform.plan(destroy=True)
            if plan:
                _show(console, describe_removal(read_changes(plan)))
                _confirm(lab, yes)
                terraform.apply(lambda line: say(console, line))
            left = open_lab(environment, name).standing
            if left:
                raise RigError(f"{left.resources} resources of the lab are left", where=str(lab.folder), hint=again)
        else:
            say(console, f"lab {lab.name}: no machine is there")
        kept = remove_traces(lab)
    say(console, f"lab {lab.name} is down" + (f"; kept in {lab.folder}: {', '.join(kept)}" if kept else ""))


def list_(console: Console) -> int:
    """List the labs of this account, and how long each has left."""
    return _sweep("--list")


def sweep(console: Console, yes: Yes = False) -> int:
    """List the labs of this account, and destroy those past their expiry, after a confirmation for each."""
    return _sweep(*(["--yes"] if yes else []))


def _sweep(*options: str) -> int:
    """Start infra/terraform/sweep.py, which needs nothing of this package; return its exit status."""
    return subprocess.run([Path(sys.executable), SWEEP, *options]).returncode


def _confirm(lab: Lab, yes: bool) -> None:
    """Let the user type the lab's name. Raises StudyError when that is not what is typed, or nobody can."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise StudyError("nothing was changed: there is no terminal to confirm at", hint="--yes does not ask")
    try:
        typed = input(f"Type the name of the lab, {lab.name}, to go on: ").strip()
    except EOFError:
        typed = ""
    if typed != lab.name:
        raise StudyError(f"nothing was changed: {typed!r} is not the name of the lab, {lab.name}")


def _show(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        say(console, line)


COMMANDS = (up, provision, down, list_, sweep)
