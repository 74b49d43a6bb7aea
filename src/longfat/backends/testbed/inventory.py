# SPDX-License-Identifier: Apache-2.0
"""The hosts of a lab, from ``inventory.json`` in the lab's folder (infra/inventory.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from longfat.backends.testbed.folder import INVENTORY
from longfat.study.schema.names import Path as Path_
from longfat.study.schema.names import key_text
from longfat.system.cache import HOME
from longfat.system.errors import Problem, StudyError

WORKER = "worker"  # role of a machine that executes runs in virtual time; it has no links
SCHEMA = HOME / "infra" / "inventory.schema.json"
_WORDS = {
    "contains": "a lab has workers only, or at least a sender and a receiver",
    "anyOf": "neither mac nor pci is given, which names the card",
    "minItems": "a sender, receiver or router has at least one link",
    "maxItems": "a worker has no links",
}


@dataclass(frozen=True)
class Host:
    """A machine: its role, its SSH address, and the links of its cards. ``placement`` describes it."""

    name: str
    role: str
    address: str
    port: int
    user: str
    links: tuple[str, ...]
    placement: str


@dataclass(frozen=True)
class Inventory:
    """The hosts of the lab in ``folder``, sorted by name; ``environment`` made them.

    ``own_us`` has the round trip of each link with its own delay, and ``tunnels`` the links that are no cables.
    """

    folder: Path
    environment: str
    hosts: tuple[Host, ...]
    own_us: Mapping[str, int] = field(default_factory=dict)
    tunnels: frozenset[str] = frozenset()

    def host(self, name: str) -> Host:
        """Return the host with this name."""
        (found,) = (host for host in self.hosts if host.name == name)
        return found

    def cables(self, one: str, other: str) -> list[str]:
        """Return the names of the links between two hosts, sorted."""
        return sorted(set(self.host(one).links) & set(self.host(other).links))


def read_inventory(folder: Path) -> Inventory:
    """Return the inventory of the lab in ``folder``. Raises StudyError with every problem."""
    data = load_inventory(folder / INVENTORY, f"./just lab up ENVIRONMENT --lab {folder.name} writes it")
    hosts = sorted((_host(entry) for entry in data["hosts"]), key=lambda host: host.name)
    own_us = {link: path["round_trip_us"] for link, path in data.get("paths", {}).items()}
    tunnels = frozenset(nic["link"] for host in data["hosts"] for nic in host["nics"] if "tunnel" in nic)
    return Inventory(folder, data["environment"], tuple(hosts), own_us, tunnels)


def load_inventory(file: Path, hint: str | None = None) -> dict[str, Any]:
    """Return the content of an inventory. Raises StudyError if it is missing or violates the schema.

    Every link needs two ends, on two hosts.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StudyError("no lab here: the inventory is missing", where=str(file), hint=hint) from error
    except (OSError, ValueError, RecursionError) as error:
        raise StudyError(f"the lab's inventory is unreadable: {error}", where=str(file), hint=hint) from error
    if problems := tuple(Problem(str(file), None, key_text(path), message) for path, message in problems_of(data)):
        raise StudyError("the lab's inventory is invalid", problems=problems)
    return dict(data)


def problems_of(data: Any) -> list[tuple[Path_, str]]:
    """Return path and message of each problem in an inventory."""
    schema = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    faults = sorted(schema.iter_errors(data), key=lambda fault: fault.json_path)
    found = dict.fromkeys((tuple(fault.absolute_path), _message(fault)) for fault in faults)
    return list(found) or list(_contradictions(data))


def _message(fault: ValidationError) -> str:
    """Return the message of a violation of the schema, with the value as in JSON."""
    given, rule, value = json.dumps(fault.instance), str(fault.validator), fault.validator_value
    if rule in ("const", "enum", "type"):
        return f"{given} is not allowed; allowed: {', '.join(value) if isinstance(value, list) else value}"
    if rule == "pattern":
        return f"{given} has another form than {value}"
    return _WORDS.get(rule) or fault.message


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


def _contradictions(data: dict[str, Any]) -> Iterator[tuple[Path_, str]]:
    """Yield path and message of each problem that the schema cannot express."""
    try:
        datetime.fromisoformat(data["tags"]["expires"] or "2030-01-31T18:00:00Z")
    except ValueError:
        yield ("tags", "expires"), f"{data['tags']['expires']!r} is not in the calendar"
    names = [host["name"] for host in data["hosts"]]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield ("hosts",), f"two hosts have the name {name!r}"
    ends: dict[str, list[str]] = {}
    for number, host in enumerate(data["hosts"]):
        cards: dict[tuple[str, int | None], str] = {}
        for place, nic in enumerate(host["nics"]):
            path = ("hosts", number, "nics", place)
            ends.setdefault(nic["link"], []).append(host["name"])
            card = nic["mac"] or nic["pci"]  # emulated cards with a MAC each may share a place on the bus
            if (other := cards.setdefault((card, nic["vlan"]), nic["link"])) != nic["link"]:
                yield path, f"the card {card} leads to link {other!r} already; two links need two cards or VLANs"
            if "tunnel" in nic and nic["tunnel"]["local"] == nic["tunnel"]["remote"]:
                yield path, f"both ends of the tunnel have the address {nic['tunnel']['local']}"
    for link, hosts in sorted(ends.items()):
        if len(hosts) != 2 or len(set(hosts)) != 2:
            yield ("nics",), f"link {link!r} has {len(hosts)} ends on {', '.join(hosts)}; a link has two, on two hosts"
    for link in sorted(data.get("paths", {}).keys() - ends.keys()):
        yield ("paths", link), f"unknown link; allowed: {', '.join(sorted(ends))}"
