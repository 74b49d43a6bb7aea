# SPDX-License-Identifier: Apache-2.0
"""Labs of machines that exist already: their variables become the inventory, without Terraform. Makes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from longfat.backends.testbed.folder import VARIABLES
from longfat.backends.testbed.inventory import problems_of
from longfat.backends.testbed.provision.terraform import read_object
from longfat.study.schema.names import nearest
from longfat.system.errors import Problem, StudyError

EXISTING = "existing"
_HOST_KEYS = ("role", "ssh", "nics", "location", "machine_type")
_SSH = {"port": 22, "user": "root", "host_key": None}
_NIC: Mapping[str, None] = {"mac": None, "pci": None, "vlan": None}


def inventory_of(folder: Path) -> dict[str, Any]:
    """Return the inventory that the lab's variables describe. Raises StudyError with every problem."""
    path, stated = folder / VARIABLES, read_object(folder / VARIABLES)
    problems = [Problem(str(path), None, key, message, hint) for key, message, hint in _problems(stated)]
    if not problems:
        made = {
            "format": 1,
            "environment": EXISTING,
            "tags": {"expires": None, **stated["tags"]},
            "hosts": [_host(name, host) for name, host in sorted(stated["hosts"].items())],
        }
        made |= {"paths": stated["links"]} if stated.get("links") else {}
        problems = [Problem(str(path), None, key, message) for key, message in problems_of(made)]
    if problems:
        raise StudyError("wrong variables of environment existing", problems=tuple(problems), hint="longfat lab init")
    return made


def _problems(stated: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """Yield key, message and hint of each fault that the inventory's schema would not show."""
    for name in ("hosts", "tags"):
        if not isinstance(stated.get(name), dict):
            yield name, "missing" if name not in stated else "not a mapping of names", None
    for name in sorted(stated.keys() - {"hosts", "links", "tags"}):
        yield name, "unknown variable", nearest(name, ("hosts", "links", "tags"))
    hosts = stated.get("hosts")
    for name, host in sorted(hosts.items()) if isinstance(hosts, dict) else ():
        whole = isinstance(host, dict) and all(isinstance(host.get(key, {}), dict) for key in ("ssh", "nics"))
        if not whole or not all(isinstance(nic, dict) for nic in host.get("nics", {}).values()):
            yield f"hosts.{name}", "not a mapping; ssh, nics and each card are mappings, too", None
            continue
        for key in sorted(host.keys() - {*_HOST_KEYS}):
            yield f"hosts.{name}.{key}", "unknown variable", nearest(key, _HOST_KEYS)


def _host(name: str, host: Mapping[str, Any]) -> dict[str, Any]:
    nics = [{"link": link, **_NIC, **nic} for link, nic in sorted(host.get("nics", {}).items())]
    placement = {"provider": EXISTING, "id": None} | {key: host.get(key) for key in ("location", "machine_type")}
    ssh = {**_SSH, **host.get("ssh", {})}
    return {"name": name, "role": host.get("role"), "ssh": ssh, "nics": nics, "placement": placement}
