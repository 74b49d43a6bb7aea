# SPDX-License-Identifier: Apache-2.0
"""``lab``: the machines of a lab, with a question before they are created or destroyed."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console

from longfat.backends.testbed.folder import VARIABLES, labs_folder
from longfat.backends.testbed.provision import lifecycle
from longfat.backends.testbed.provision.existing import EXISTING, inventory_of
from longfat.backends.testbed.provision.labs import ENVIRONMENTS, RENTED, Lab, all_labs, open_lab
from longfat.backends.testbed.provision.terraform import (
    Price,
    describe,
    describe_resources,
    read_changes,
    refuse_expired,
)
from longfat.backends.testbed.provision.variables import Ceiling, write_example
from longfat.cli.console import say
from longfat.cli.options import Yes
from longfat.system.errors import RigError, StudyError

HELP = "Make, prepare and destroy the machines of a lab (docs/machines.md)."
NAMES = f"{', '.join(ENVIRONMENTS[:-1])} or {ENVIRONMENTS[-1]}"

Environment = Annotated[str | None, typer.Argument(help=f"{NAMES}: the lab's name unless --lab states another")]
OFF = "on aws they are deleted then, elsewhere they still cost: lab sweep destroys them"
Hours = Annotated[float | None, typer.Option(min=0, help=f"the machines power off after that; {OFF}")]
Cost = Annotated[float | None, typer.Option(min=0, help=f"the machines power off before they cost more; {OFF}")]
Name = Annotated[str | None, typer.Option("--lab", help="name of the lab (default: the name of its environment)")]


def init(
    console: Console,
    environment: Annotated[str, typer.Argument(help=NAMES)],
    name: Name = None,
    host: Annotated[list[str] | None, typer.Option(help="a worker of `existing`, [USER@]ADDRESS[:PORT]")] = None,
) -> None:
    """Write a commented example of the variables of a lab, for you to edit."""
    if host and environment != EXISTING:
        raise StudyError(f"only environment {EXISTING} takes hosts", where="--host")
    lab = open_lab(environment, name)
    say(console, f"edit {write_example(lab.folder, environment, tuple(host or ()))}")
    say(console, f"next: {lab.command('up')}")


def up(
    console: Console,
    environment: Annotated[str, typer.Argument(help=NAMES)],
    name: Name = None,
    yes: Yes = False,
    hourly_price: Annotated[float | None, typer.Option(min=0, help="cost of an hour of the whole lab")] = None,
    currency: Annotated[str, typer.Option(help="currency of that price")] = "USD",
    workers: Annotated[
        int, typer.Option(min=0, max=1000, help="machines that execute runs in virtual time, and no others")
    ] = 0,
    max_hours: Hours = None,
    max_cost: Cost = None,
) -> None:
    """Print the planned machines and their cost, ask, make them, and write the lab's inventory."""
    price, now = Price(hourly_price, currency), datetime.now(UTC)
    life = Ceiling(max_hours, max_cost).life(price)
    lab = open_lab(environment, name)
    again = f"{lab.command('up')} continues; {lab.command('down')} removes what exists"
    with lifecycle.lock_lab(lab):
        lifecycle.prepare(lab, lambda line: say(console, line), workers, life, now)
    with lifecycle.lock_lab(lab):  # locked again, because the folder now exists
        if environment == EXISTING:
            inventory = inventory_of(lab.folder)
            for host in inventory["hosts"]:
                say(console, f"machine {host['name']}: {host['role']}, {host['ssh']['address']}")
            lifecycle.note_inventory(lab, inventory)
            say(console, f"lab {lab.name} is up: {lab.folder}")
            say(console, f"next: {lab.command('provision')}")
            return
        terraform = lifecycle.ready_terraform(lab, again, lambda line: say(console, line))
        plan = terraform.plan()
        changes = read_changes(plan) if plan else None
        if changes and changes.resources:
            for line in describe(changes, price, now, rented=environment in RENTED):
                say(console, line)
            refuse_expired(changes, now, str(lab.folder / VARIABLES))
            _confirm(lab, yes)
        else:
            say(console, f"lab {lab.name} is up already: nothing to do")
        if plan:
            terraform.apply()
        say(console, f"lab {lab.name} is up: {lab.folder}")
        lifecycle.note_inventory(lab, terraform.inventory())
    say(console, f"next: {lab.command('provision')}")


def provision(
    console: Console,
    environment: Environment = None,
    options: Annotated[list[str] | None, typer.Argument(help="options of ansible-playbook, after --")] = None,
    name: Name = None,
    yes: Yes = False,
) -> None:
    """Prepare the machines of a lab with the roles of infra/ansible, after a question if they restart."""
    words = [word for word in (environment, *(options or ())) if word]
    environment = words.pop(0) if words and not words[0].startswith("-") else None
    lab = open_lab(environment, name)
    with lifecycle.lock_lab(lab):

        def confirm(line: str) -> None:
            say(console, line)
            _confirm(lab, yes)

        lifecycle.provision(lab, words, lambda line: say(console, line), confirm)
    say(console, f"lab {lab.name} is prepared")


def down(console: Console, environment: Environment = None, name: Name = None, yes: Yes = False) -> None:
    """Print the machines to destroy, ask, destroy them, and remove the lab's generated files."""
    lab = open_lab(environment, name)
    if not lab.folder.exists():
        say(console, f"there is no lab {lab.name} in {lab.folder.parent}: nothing to do")
        return
    with lifecycle.lock_lab(lab):
        if lab.standing and lab.standing.environment != EXISTING:
            again = f"{lab.command('down')} continues"
            terraform = lifecycle.ready_terraform(lab, again, lambda line: say(console, line))
            if plan := terraform.plan(destroy=True):
                for line in describe_resources(read_changes(plan)):
                    say(console, line)
                _confirm(lab, yes)
                terraform.apply()
            if left := open_lab(environment, name).standing:
                raise RigError(f"{left.resources} resources of the lab are left", where=str(lab.folder), hint=again)
        rest = lifecycle.remove_files(lab)
    say(console, f"lab {lab.name} is down" + (f"; kept in {lab.folder}: {', '.join(rest)}" if rest else ""))


def list_(console: Console) -> None:
    """List the labs of this account, and the time each has left."""
    _, unreadable = _print_labs(console)
    if not all_labs():
        say(console, f"no labs in {labs_folder()}; `./just lab init ENVIRONMENT` begins one")
    _refuse_left([], unreadable)


def sweep(console: Console, yes: Yes = False) -> None:
    """List the labs of this account, and destroy those past their expiry, after a confirmation for each."""
    left = []
    expired, unreadable = _print_labs(console)
    for name in expired:
        try:
            down(console, None, name, yes)
        except Exception as error:  # whatever is odd about a lab, the others do not cost money on
            say(console, f"{name}: not destroyed: {error or type(error).__name__}")
            left.append(name)
    _refuse_left(left, unreadable)


def _print_labs(console: Console) -> tuple[list[str], list[str]]:
    """Print every lab; return the names of those past their expiry, and of the unreadable ones."""
    expired, unreadable, now = [], [], datetime.now(UTC)
    for name in all_labs():
        try:
            standing = open_lab(None, name).standing
        except (RigError, StudyError) as error:
            say(console, f"{name}: unreadable: {error}")
            unreadable.append(name)
            continue
        if not standing:
            say(console, f"{name}: not up")
            continue
        life = "no expiry"
        if standing.expires:
            hours = round((standing.expires - now).total_seconds() / 3600)
            life = f"{hours} h left" if standing.expires > now else f"expired {-hours} h ago"
            expired += [] if standing.expires > now else [name]
        owned = f"study {standing.study}, owner {standing.owner}"
        say(console, f"{name}: {standing.environment}, {owned}, {standing.resources} resources, {life}")
    return expired, unreadable


def _refuse_left(left: list[str], unreadable: list[str]) -> None:
    if names := left + unreadable:
        raise RigError(f"labs that may cost money are left: {', '.join(names)}", hint="see the messages above")


def _confirm(lab: Lab, yes: bool) -> None:
    """Ask for the lab's name. Raises StudyError on any other answer, or without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise StudyError("nothing was changed: there is no terminal to confirm at", hint="--yes skips the question")
    try:
        typed = input(f"Type the name of the lab, {lab.name}, to continue: ").strip()
    except EOFError:
        typed = ""
    if typed != lab.name:
        raise StudyError(f"nothing was changed: {typed!r} is not the name of the lab, {lab.name}")


COMMANDS = (init, up, provision, down, list_, sweep)
