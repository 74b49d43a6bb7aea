# SPDX-License-Identifier: Apache-2.0
"""Labs of existing machines, whose variables become the inventory without Terraform. Creates nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from longfat.backends.testbed.inventory import problems_of
from longfat.backends.testbed.provision.variables import read_variables, refuse
from longfat.study.schema.names import Finding, nearest
from longfat.study.schema.names import Path as Path_

EXISTING = "existing"
_HOST_KEYS = ("role", "ssh", "nics", "location", "machine_type")
_SSH = {"port": 22, "user": "root", "host_key": None}
_NIC: Mapping[str, None] = {"mac": None, "pci": None, "vlan": None}


def inventory_of(folder: Path) -> dict[str, Any]:
    """Return the inventory that the lab's variables describe. Raises StudyError with every problem."""
    source = read_variables(folder)
    stated, message = source.data, f"wrong variables of environment {EXISTING}"
    refuse(source, [*_findings(stated)], message)
    made = {
        "format": 1,
        "environment": EXISTING,
        "tags": {"expires": None, **stated["tags"]},
        "hosts": [_host(name, host) for name, host in sorted(stated["hosts"].items())],
    }
    made |= {"paths": stated["links"]} if stated.get("links") else {}
    refuse(source, [Finding(_place(made, path), text) for path, text in problems_of(made)], message)
    return made


def _place(made: Mapping[str, Any], path: Path_) -> Path_:
    """Return the path in the user's file for a path in the inventory, which lists hosts and cards by number."""
    if path[:1] == ("hosts",) and len(path) > 1 and isinstance(path[1], int):
        host = made["hosts"][path[1]]
        if path[2:3] == ("nics",) and len(path) > 3 and isinstance(path[3], int):
            return ("hosts", host["name"], "nics", host["nics"][path[3]]["link"], *path[4:])
        return ("hosts", host["name"], *path[2:])
    return ("links", *path[1:]) if path[:1] == ("paths",) else path


def _findings(stated: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the faults that the inventory's schema cannot find."""
    for name in ("hosts", "tags"):
        if not isinstance(stated.get(name), dict):
            yield Finding((name,), "missing" if name not in stated else "not a mapping of names")
    for name in sorted(stated.keys() - {"hosts", "links", "tags"}):
        yield Finding((name,), "unknown variable", nearest(name, ("hosts", "links", "tags")))
    hosts = stated.get("hosts")
    for name, host in sorted(hosts.items()) if isinstance(hosts, dict) else ():
        whole = isinstance(host, dict) and all(isinstance(host.get(key, {}), dict) for key in ("ssh", "nics"))
        if not whole or not all(isinstance(nic, dict) for nic in host.get("nics", {}).values()):
            yield Finding(("hosts", name), "not a mapping; ssh, nics and each card are mappings, too")
            continue
        for key in sorted(host.keys() - {*_HOST_KEYS}):
            yield Finding(("hosts", name, key), "unknown variable", nearest(key, _HOST_KEYS))


def _host(name: str, host: Mapping[str, Any]) -> dict[str, Any]:
    nics = [{"link": link, **_NIC, **nic} for link, nic in sorted(host.get("nics", {}).items())]
    placement = {"provider": EXISTING, "id": None} | {key: host.get(key) for key in ("location", "machine_type")}
    ssh = {**_SSH, **host.get("ssh", {})}
    return {"name": name, "role": host.get("role"), "ssh": ssh, "nics": nics, "placement": placement}
