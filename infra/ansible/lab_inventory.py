#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the inventory of a lab into an Ansible inventory: lab_inventory.py INVENTORY FOLDER

INVENTORY is a file in the form of infra/inventory.schema.json. FOLDER receives hosts.json, with the groups senders,
receivers, routers and workers, and known_hosts, with the hosts' keys.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from longfat.backends.testbed.inventory import load_inventory
from longfat.system.errors import StudyError

GROUPS = {"sender": "senders", "receiver": "receivers", "router": "routers", "worker": "workers"}
SSH_PORT = 22
OWN_KNOWN_HOSTS = Path(os.path.expanduser("~/.ssh/known_hosts"))

Lookup = Callable[[str], tuple[str, ...]]


def convert(inventory: Mapping[str, Any], known_hosts: Path, lookup: Lookup) -> tuple[dict[str, Any], str]:
    """Return the Ansible inventory, and the text of the file ``known_hosts``.

    ``lookup`` returns the lines of the user's known_hosts for a host whose key the inventory lacks. Raises ValueError
    with every host without a known key.
    """
    lines: list[str] = []
    unknown = []
    children: dict[str, Any] = {group: {"hosts": {}} for group in (*GROUPS.values(), "workstations")}
    for host in inventory["hosts"]:
        ssh = host["ssh"]
        name = known_name(ssh["address"], ssh["port"])
        found = (f"{name} {ssh['host_key']}",) if ssh["host_key"] is not None else lookup(name)
        lines += found
        if not found:
            unknown.append(
                f"{host['name']}: unknown host key: neither the inventory nor your known_hosts has a key for {name};"
                " compare the key out of band (the provider's console shows it), then connect once by ssh"
            )
        children[GROUPS[host["role"]]]["hosts"][host["name"]] = {
            "ansible_host": ssh["address"],
            "ansible_port": ssh["port"],
            "ansible_user": ssh["user"],
            "ansible_become": ssh["user"] != "root",
            "data_plane_nics": [dict(nic) for nic in host["nics"]],
        }
    if unknown:
        raise ValueError("\n".join(unknown))
    # ssh splits the value at blanks; the outer quotes are for Ansible, which splits the arguments first.
    options = ["-o", f'UserKnownHostsFile="{known_hosts}"', "-o", "GlobalKnownHostsFile=/dev/null"]
    options += ["-o", "IdentitiesOnly=yes"] if known_hosts.with_name("id_ed25519").exists() else []
    variables = {
        "ansible_ssh_common_args": shlex.join([*options, "-o", "StrictHostKeyChecking=yes"]),
        "lab_environment": inventory["environment"],
        "packet_filter_files": inventory.get("filter", {}),
        # Machines that exist already are their owner's to end.
        "lab_expiry_utc": "" if inventory["environment"] == "existing" else inventory["tags"]["expires"] or "",
    }
    return {"all": {"vars": variables, "children": children}}, "".join(f"{line}\n" for line in lines)


def known_name(address: str, port: int) -> str:
    """Return the name of a host in known_hosts (sshd(8))."""
    return address if port == SSH_PORT else f"[{address}]:{port}"


def known_to_user(name: str) -> tuple[str, ...]:
    """Return the lines of the user's known_hosts for ``name``, hashed ones included."""
    done = subprocess.run(["ssh-keygen", "-F", name, "-f", str(OWN_KNOWN_HOSTS)], capture_output=True, text=True)
    return tuple(line for line in done.stdout.splitlines() if line and not line.startswith("#"))


def main(arguments: list[str]) -> int:
    """Execute the command line and return the exit status."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[1]).absolute()
    try:
        if re.search(r'[\s"%\\]', str(folder)):  # ssh expands and splits the path of known_hosts
            raise ValueError(f"the folder {str(folder)!r} has a blank, a quote, a backslash or % in its path")
        known_hosts = folder / "known_hosts"
        hosts, keys = convert(load_inventory(Path(arguments[0])), known_hosts, known_to_user)
        folder.mkdir(parents=True, exist_ok=True)
        known_hosts.write_text(keys, encoding="utf-8")
        (folder / "hosts.json").write_text(json.dumps(hosts, indent=2) + "\n", encoding="utf-8")
    except (OSError, ValueError, StudyError) as error:
        for line in str(error).splitlines():
            print(f"lab_inventory: {line}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
