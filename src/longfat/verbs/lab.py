# SPDX-License-Identifier: Apache-2.0
"""The verbs ``lab up``, ``provision``, ``down``: what is shown and asked before a lab is touched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

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
from longfat.verbs.say import say

SWEEP = INFRA / "terraform/sweep.py"


def up(environment: str, name: str | None, price: Price, console: Console, *, yes: bool) -> None:
    """Make the lab, or what is missing of it, once that was confirmed; write its inventory.

    Raises StudyError when variables are missing or nobody confirms, RigError when Terraform or a machine fails.
    """
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


def provision(environment: str | None, name: str | None, options: Sequence[str], console: Console) -> None:
    """Prepare the lab's machines. Raises RigError naming those that could not be."""
    lab = open_lab(environment, name)
    with files_of(lab), alone(lab):
        provision_lab(lab, options, lambda line: say(console, line))
    say(console, f"lab {lab.name} is prepared")


def down(environment: str | None, name: str | None, console: Console, *, yes: bool) -> None:
    """Destroy the lab, once that was confirmed, and remove what was made in its folder.

    Raises StudyError when nobody confirms, RigError when Terraform fails; the state is kept then.
    """
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


def sweep(options: Sequence[str]) -> int:
    """Start infra/terraform/sweep.py, which needs nothing of this package; its exit status."""
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
