# SPDX-License-Identifier: Apache-2.0
"""The changes in a plan of Terraform, and their cost, in words. Pure: reads only the plan's JSON.

The form of a plan: https://developer.hashicorp.com/terraform/internals/json-format
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from longfat.errors import StudyError
from longfat.testbed.provision.environments import Environment

SIGNS = {("create",): "+", ("delete",): "-", ("update",): "~"}
REPLACED = "-/+"
VERBS = {"+": "create", "~": "change", REPLACED: "make anew", "-": "destroy"}
HOUR_S = 3600


@dataclass(frozen=True)
class Price:
    """The user's statement of the whole lab's cost; ``hourly`` is None where there is none."""

    hourly: float | None
    currency: str


@dataclass(frozen=True)
class Machine:
    """A machine that the lab will have. ``kind`` is None where the user did not state it."""

    name: str
    role: str
    kind: str | None


@dataclass(frozen=True)
class Changes:
    """A plan. ``resources``: sign and address of each that is not left as it is; ``expires`` in UTC or None."""

    resources: tuple[tuple[str, str], ...]
    machines: tuple[Machine, ...]
    expires: datetime | None


def read_changes(plan: Mapping[str, Any]) -> Changes:
    """The content of ``terraform show -json`` about a plan."""
    resources = [
        (SIGNS.get(tuple(entry["change"]["actions"]), REPLACED), str(entry["address"]))
        for entry in plan.get("resource_changes", ())
        if entry["change"]["actions"] not in (["no-op"], ["read"])
    ]
    outputs = plan.get("planned_values", {}).get("outputs", {})
    machines = outputs.get("machines", {}).get("value") or {}
    tags = plan.get("variables", {}).get("tags", {}).get("value") or {}
    expires = tags.get("expires")
    return Changes(
        tuple(resources),
        tuple(Machine(name, it["role"], it.get("machine_type")) for name, it in sorted(machines.items())),
        datetime.fromisoformat(expires) if expires else None,
    )


def describe(changes: Changes, environment: Environment, price: Price, now: datetime) -> Iterator[str]:
    """The lines that the user decides by, before a lab is made or changed."""
    yield f"environment {environment.name}: {environment.met}"
    yield from _resources(changes)
    for machine in changes.machines:
        yield f"machine {machine.name}: {machine.role}, {machine.kind or 'type not stated'}"
    if changes.expires is None:
        yield "expiry: none"
    else:
        yield f"expiry: {changes.expires:%Y-%m-%dT%H:%M:%SZ}, in {_hours(changes.expires, now):.1f} h"
    yield _cost(changes, environment, price, now)
    yield f"time: {environment.patience}"


def describe_removal(changes: Changes) -> Iterator[str]:
    """The lines that the user decides by, before a lab is destroyed."""
    yield from _resources(changes)


def refuse_expired(changes: Changes, now: datetime, where: str) -> None:
    """Raise StudyError when the lab's time is over: it would be destroyed as soon as somebody sweeps."""
    if changes.expires is not None and changes.expires <= now:
        raise StudyError(
            f"the lab's expiry, {changes.expires.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}, has passed",
            where=where,
            hint="state a later one in tags.expires, or destroy the lab",
        )


def _resources(changes: Changes) -> Iterator[str]:
    for sign, verb in VERBS.items():
        addresses = [address for its_sign, address in changes.resources if its_sign == sign]
        if addresses:
            yield f"{verb} {len(addresses)}:"
            yield from (f"  {sign} {address}" for address in addresses)


def _cost(changes: Changes, environment: Environment, price: Price, now: datetime) -> str:
    if price.hourly is None:
        return "price unknown, see the provider's list" if environment.rented else "costs nothing"
    each = f"{price.hourly:g} {price.currency} an hour, as you stated"
    if changes.expires is None:
        return f"costs {each}; without an expiry the cost is unlimited"
    hours = _hours(changes.expires, now)
    return f"costs {hours * price.hourly:.2f} {price.currency} until the expiry ({hours:.1f} h at {each})"


def _hours(expires: datetime, now: datetime) -> float:
    return (expires - now).total_seconds() / HOUR_S
