# SPDX-License-Identifier: Apache-2.0
"""Terraform or OpenTofu for one lab, with its state and data in the lab's folder. Decides nothing."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longfat.backends.testbed.folder import GIVEN, PLAN, STATE, TERRAFORM_DATA
from longfat.system.errors import RigError, StudyError
from longfat.system.processes import environment_without

SIGNS = {("create",): "+", ("delete",): "-", ("update",): "~"}
REPLACED = "-/+"
VERBS = {"+": "create", "~": "change", REPLACED: "replace", "-": "destroy"}


@dataclass(frozen=True)
class Price:
    """The price of an hour of the whole lab, stated by the user; ``hourly`` is None if it is not stated."""

    hourly: float | None
    currency: str


@dataclass(frozen=True)
class Changes:
    """A plan: sign and address of each changed resource, a line for each machine, and the lab's expiry in UTC."""

    resources: tuple[tuple[str, str], ...]
    machines: tuple[str, ...]
    expires: datetime | None

    def hours(self, now: datetime) -> float | None:
        """Return the hours from ``now`` to the expiry, or None without an expiry."""
        return None if self.expires is None else (self.expires - now).total_seconds() / 3600


def read_changes(plan: Mapping[str, Any]) -> Changes:
    """Return the changes in the output of ``terraform show -json``."""
    resources = [
        (SIGNS.get(tuple(entry["change"]["actions"]), REPLACED), f"{entry['address']}{_reason(entry['change'])}")
        for entry in plan.get("resource_changes", ())
        if entry["change"]["actions"] not in (["no-op"], ["read"])
    ]
    machines = plan.get("planned_values", {}).get("outputs", {}).get("machines", {}).get("value") or {}
    lines = (f"{name}: {it['role']}, {it.get('machine_type') or 'type not stated'}" for name, it in machines.items())
    expires = (plan.get("variables", {}).get("tags", {}).get("value") or {}).get("expires")
    return Changes(tuple(resources), tuple(sorted(lines)), datetime.fromisoformat(expires) if expires else None)


def _reason(change: Mapping[str, Any]) -> str:
    """Return the names of the attributes that an update or a replacement changes."""
    before, after = change.get("before"), change.get("after")
    if not before or not after:
        return ""
    unknown = {name for name, it in (change.get("after_unknown") or {}).items() if it is True}
    names = sorted(name for name in {*before, *after} - unknown if before.get(name) != after.get(name))
    return f" ({', '.join(names)})" if names else ""


def describe(changes: Changes, price: Price, now: datetime, *, rented: bool) -> Iterator[str]:
    """Yield the lines of the plan for the user's decision, before a lab is created or changed."""
    yield from describe_resources(changes)
    yield from (f"machine {machine}" for machine in changes.machines)
    hours = changes.hours(now)
    yield "expiry: none" if hours is None else f"expiry: {_utc(changes.expires)}, in {hours:.1f} h"
    if price.hourly is None:
        yield "price unknown, see the provider's list" if rented else "costs nothing"
        return
    each = f"{price.hourly:g} {price.currency} an hour, as you stated"
    if hours is None:
        yield f"costs {each}; without an expiry the cost is unlimited"
    else:
        yield f"costs {hours * price.hourly:.2f} {price.currency} until the expiry ({hours:.1f} h at {each})"


def describe_resources(changes: Changes) -> Iterator[str]:
    """Yield the changed resources, by the kind of change."""
    for sign, verb in VERBS.items():
        addresses = [address for its_sign, address in changes.resources if its_sign == sign]
        if addresses:
            yield f"{verb} {len(addresses)}:"
            yield from (f"  {sign} {address}" for address in addresses)


def refuse_expired(changes: Changes, now: datetime, where: str) -> None:
    """Raise StudyError if the lab's expiry has passed: the next sweep would destroy the lab."""
    if changes.expires is not None and changes.expires <= now:
        raise StudyError(
            f"the lab's expiry, {_utc(changes.expires)}, has passed",
            where=where,
            hint="state a later tags.expires, and --max-hours if an earlier command did, or destroy the lab",
        )


def _utc(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


PROGRAMS = ("terraform", "tofu")
# Variables of the user that select providers and logs; any other TF_ variable would change the lab.
PASSED_ON = ("TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "TF_LOG", "TF_LOG_PATH")
PRIVATE = 0o077  # umask: the state has the lab's addresses and names
CHANGES = 2  # exit status of plan -detailed-exitcode


def find_program() -> str:
    """Return the path of terraform, else of tofu. Raises RigError if both are missing."""
    for name in PROGRAMS:
        if found := shutil.which(name):
            return found
    raise RigError(
        "neither terraform nor tofu is in PATH",
        hint="https://developer.hashicorp.com/terraform/install or https://opentofu.org/docs/intro/install",
    )


@contextmanager
def interrupts_for_child() -> Iterator[None]:
    """Ignore Ctrl-C here, so that the program in the foreground can end in an orderly way while this one waits."""
    # Programs inherit an ignored signal, but not a handler.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Terraform:
    """A program, a module and a lab's folder. ``again`` is the command to repeat after a failure."""

    program: str
    module: Path
    folder: Path
    again: str

    def initialise(self) -> None:
        """Install providers and open the state. Raises RigError with Terraform's message."""
        self._ask("init", "-input=false", "-no-color", "-reconfigure", f"-backend-config=path={self.folder / STATE}")

    def plan(self, *, destroy: bool = False) -> dict[str, Any] | None:
        """Plan into the lab's folder and return the plan's JSON, or None if there is nothing to do.

        Raises RigError with Terraform's message.
        """
        options = ["-input=false", "-no-color", "-detailed-exitcode", f"-out={self.folder / PLAN}"]
        options += ["-destroy"] if destroy else []
        options += [f"-var-file={path}"] if (path := self.folder / GIVEN).exists() else []
        if self._ask("plan", *options, fine=(0, CHANGES)).returncode == 0:
            return None
        return dict(json.loads(self._ask("show", "-json", "-no-color", str(self.folder / PLAN)).stdout))

    def apply(self) -> None:
        """Apply the plan in the lab's folder; Terraform reports on standard output. Raises RigError."""
        colour = () if sys.stdout.isatty() else ("-no-color",)
        argv = self._argv("apply", "-input=false", *colour, str(self.folder / PLAN))
        with interrupts_for_child():
            done = subprocess.run(argv, env=self._environment(), stdin=subprocess.DEVNULL, umask=PRIVATE, check=False)
            status = done.returncode
        if status:
            raise RigError(
                f"terraform apply ended with exit status {status}; see its message above. The state lists what exists",
                where=str(self.folder / STATE),
                hint=self.again,
            )

    def inventory(self) -> dict[str, Any]:
        """Return the lab's inventory. Raises RigError."""
        found = json.loads(self._ask("output", "-json", "-no-color", "inventory").stdout)
        if not isinstance(found, dict):
            raise RigError("Terraform's state has no inventory", where=str(self.folder / STATE), hint=self.again)
        return found

    def _ask(self, *arguments: str, fine: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self._argv(*arguments),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            umask=PRIVATE,
        )
        if done.returncode not in fine:
            output = f"{done.stdout}\n{done.stderr}".strip()
            raise RigError(
                f"terraform {arguments[0]} ended with exit status {done.returncode} and changed nothing:\n{output}",
                where=str(self.folder / STATE),
                hint=self.again,
            )
        return done

    def _argv(self, *arguments: str) -> list[str]:
        return [self.program, f"-chdir={self.module}", *arguments]

    def _environment(self) -> dict[str, str]:
        return {
            **environment_without("TF_", PASSED_ON),
            "TF_DATA_DIR": str(self.folder / TERRAFORM_DATA),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
        }
