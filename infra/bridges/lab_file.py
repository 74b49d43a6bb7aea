# SPDX-License-Identifier: Apache-2.0
"""The file lab.yaml of environment ``existing``, from the machines of a testbed."""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import yaml

ROLES = ("sender", "receiver", "router")


@dataclass(frozen=True)
class Machine:
    """A machine of a testbed: its name, how SSH reaches it, and the MAC address of its card on each link."""

    name: str
    address: str
    user: str
    port: int = 22
    cards: dict[str, str] = field(default_factory=dict)


def lab_file(machines: Iterable[Machine], testbed: str) -> str:
    """Return the text of lab.yaml.

    A machine's role is the beginning of its name: sender, receiver or router; all others are workers, which have no
    links. Raises ValueError without machines, if workers and others are mixed, or if two have one name.
    """
    found = sorted((replace(one, name=one.name.lower()) for one in machines), key=lambda machine: machine.name)
    roles = {one.name: next((role for role in ROLES if one.name.startswith(role)), "worker") for one in found}
    if not found or ("worker" in roles.values() and set(roles.values()) != {"worker"}):
        listed = ", ".join(f"{name} ({role})" for name, role in roles.items()) or "none"
        raise ValueError(f"machines are {listed}; needed: workers, or names that begin with {', '.join(ROLES)}")
    if len(roles) < len(found):
        raise ValueError(f"machines are {', '.join(one.name for one in found)}; each needs another name, in lower case")
    hosts = {
        one.name: {
            "role": roles[one.name],
            "ssh": {"address": one.address, "port": one.port, "user": one.user},
            "nics": {} if roles[one.name] == "worker" else {link: {"mac": mac} for link, mac in one.cards.items()},
            "location": testbed,
        }
        for one in found
    }
    data = {"tags": {"study": "any", "owner": getpass.getuser()}, "hosts": hosts}
    return "# SPDX-License-Identifier: Apache-2.0\n" + yaml.safe_dump(data, sort_keys=False)
