# SPDX-License-Identifier: Apache-2.0
"""The hosts of a lab, from ``inventory.json`` in the lab's folder (infra/inventory.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from longfat.errors import Problem, StudyError
from longfat.runspec import Role
from longfat.testbed.provision.folder import INVENTORY

SCHEMA = Path(__file__).resolve().parents[4] / "infra" / "inventory.schema.json"


@dataclass(frozen=True)
class Host:
    """A machine: its role, how SSH reaches it, and the links that it has a card for. ``placement`` describes it."""

    name: str
    role: Role
    address: str
    port: int
    user: str
    links: tuple[str, ...]
    placement: str


@dataclass(frozen=True)
class Inventory:
    """The hosts of the lab in ``folder`` by the order of their names; ``environment`` made them.

    ``own_us`` has the round trip of each link that has a delay of its own.
    """

    folder: Path
    environment: str
    hosts: tuple[Host, ...]
    own_us: Mapping[str, int] = field(default_factory=dict)

    def host(self, name: str) -> Host:
        """The host with this name."""
        (found,) = (host for host in self.hosts if host.name == name)
        return found

    def cables(self, one: str, other: str) -> list[str]:
        """Names of the links between two hosts, sorted."""
        return sorted(set(self.host(one).links) & set(self.host(other).links))


def read_inventory(folder: Path) -> Inventory:
    """The inventory of the lab in ``folder``.

    Raises StudyError, with every problem, when there is none, it is not of the contract, or a link has not two ends.
    """
    file = folder / INVENTORY
    hint = f"./just lab up ENVIRONMENT --lab {folder.name} writes it"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StudyError("there is no lab here: the inventory is missing", where=str(file), hint=hint) from error
    except (OSError, ValueError) as error:
        raise StudyError(f"the lab's inventory cannot be read: {error}", where=str(file), hint=hint) from error
    if problems := _problems(str(file), data):
        raise StudyError("the lab's inventory cannot be used", problems=problems)
    hosts = tuple(_host(entry) for entry in data["hosts"])
    own_us = {link: path["round_trip_us"] for link, path in data.get("paths", {}).items()}
    return Inventory(folder, data["environment"], tuple(sorted(hosts, key=lambda host: host.name)), own_us)


def _host(entry: dict[str, Any]) -> Host:
    ssh, placed = entry["ssh"], entry["placement"]
    return Host(
        name=entry["name"],
        role=entry["role"],
        address=ssh["address"],
        port=ssh["port"],
        user=ssh["user"],
        links=tuple(nic["link"] for nic in entry["nics"]),
        placement=", ".join(str(placed[key]) for key in ("provider", "location", "machine_type") if placed[key]),
    )


def _problems(file: str, data: object) -> tuple[Problem, ...]:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    faults = sorted(Draft202012Validator(schema).iter_errors(data), key=lambda fault: fault.json_path)
    if faults:
        return tuple(Problem(file, None, fault.json_path, fault.message) for fault in faults)
    assert isinstance(data, dict)
    names = [host["name"] for host in data["hosts"]]
    ends = [nic["link"] for host in data["hosts"] for nic in host["nics"]]
    twice = [
        Problem(file, None, "hosts", f"two hosts have the name {name!r}")
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    loose = [
        Problem(file, None, "nics", f"link {link!r} has {ends.count(link)} ends; a link has two")
        for link in sorted(set(ends))
        if ends.count(link) != 2
    ]
    unknown = [
        Problem(file, None, f"paths.{link}", f"there is no such link; there are: {', '.join(sorted(set(ends)))}")
        for link in sorted(data.get("paths", {}).keys() - set(ends))
    ]
    return (*twice, *loose, *unknown)
