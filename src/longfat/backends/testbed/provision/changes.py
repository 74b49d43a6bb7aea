# SPDX-License-Identifier: Apache-2.0
"""The changes in a Terraform plan and their cost, as text. Pure: reads only the plan's JSON.

Form of a plan: https://developer.hashicorp.com/terraform/internals/json-format
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from longfat.system.errors import StudyError

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
