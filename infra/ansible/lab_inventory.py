#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the inventory of a lab, as Terraform gives it, into Ansible's: lab_inventory.py INVENTORY FOLDER

INVENTORY is a file after infra/inventory.schema.json, or - for standard input. Into FOLDER go hosts.json, with the
groups senders, receivers and routers, and known_hosts, with the hosts' keys. Standard library only.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

FORMAT = 1
GROUPS = {"sender": "senders", "receiver": "receivers", "router": "routers"}
SSH_PORT = 22
OWN_KNOWN_HOSTS = Path(os.path.expanduser("~/.ssh/known_hosts"))

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
# What goes into ssh's command line and into known_hosts; neither may begin with a hyphen or hold a blank.
HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,31}")
HOST_KEY = re.compile(r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp256) [A-Za-z0-9+/=]+")
MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

Lookup = Callable[[str], tuple[str, ...]]


class InventoryError(Exception):
    """The inventory cannot be used; the message has a line for each reason."""


def convert(inventory: Mapping[str, Any], known_hosts: Path, lookup: Lookup) -> tuple[dict[str, Any], str]:
    """Ansible's inventory and the text of ``known_hosts``, which is where the latter will be.

    ``lookup`` gives the lines of the user's own known_hosts for a name; it is asked where the inventory has no
    host key. Raises InventoryError with every problem that was found.
    """
    problems = list(_problems(inventory))
    if problems:
        raise InventoryError("\n".join(problems))
    lines: list[str] = []
    for host in inventory["hosts"]:
        ssh = host["ssh"]
        name = known_name(ssh["address"], ssh["port"])
        found = (f"{name} {ssh['host_key']}",) if ssh["host_key"] is not None else lookup(name)
        if not found:
            problems.append(
                f"{host['name']}: its host key is not known: neither the inventory nor your own known_hosts has one"
                f" for {name}; compare the key out of band (the provider's console shows it), then connect once by ssh"
            )
        lines += found
    if problems:
        raise InventoryError("\n".join(problems))
    children: dict[str, Any] = {group: {"hosts": {}} for group in GROUPS.values()}
    for host in inventory["hosts"]:
        children[GROUPS[host["role"]]]["hosts"][host["name"]] = _host_variables(host)
    # ssh splits the value at blanks itself; the shell's quotes are Ansible's, which splits the arguments first.
    options = ["-o", f'UserKnownHostsFile="{known_hosts}"', "-o", "GlobalKnownHostsFile=/dev/null"]
    variables = {
        "ansible_ssh_common_args": shlex.join([*options, "-o", "StrictHostKeyChecking=yes"]),
        "lab_environment": inventory["environment"],
    }
    return {"all": {"vars": variables, "children": children}}, "".join(f"{line}\n" for line in lines)


def known_name(address: str, port: int) -> str:
    """How a line of known_hosts names a host (sshd(8))."""
    return address if port == SSH_PORT else f"[{address}]:{port}"


def known_to_user(name: str) -> tuple[str, ...]:
    """The lines of the user's own known_hosts for ``name``, hashed ones included."""
    done = subprocess.run(["ssh-keygen", "-F", name, "-f", str(OWN_KNOWN_HOSTS)], capture_output=True, text=True)
    return tuple(line for line in done.stdout.splitlines() if line and not line.startswith("#"))


def _host_variables(host: Mapping[str, Any]) -> dict[str, Any]:
    ssh = host["ssh"]
    return {
        "ansible_host": ssh["address"],
        "ansible_port": ssh["port"],
        "ansible_user": ssh["user"],
        "ansible_become": ssh["user"] != "root",
        "data_plane_nics": [dict(nic) for nic in host["nics"]],
    }


def _problems(inventory: Any) -> Iterable[str]:
    """What in the inventory is not as infra/inventory.schema.json demands, as far as Ansible reads it."""
    if not isinstance(inventory, dict) or not isinstance(inventory.get("hosts"), list):
        yield "this is no inventory of a lab: it has no list of hosts (terraform output -json inventory gives one)"
        return
    if inventory.get("format") != FORMAT:
        yield f"the inventory has format {inventory.get('format')!r}, but only {FORMAT} is understood"
        return
    if not _is(inventory.get("environment"), NAME):
        yield f"{inventory.get('environment')!r} is no name of an environment"
    names = [host.get("name") for host in inventory["hosts"] if isinstance(host, dict)]
    yield from (
        f"{name}: two hosts have this name" for name in sorted({n for n in names if names.count(n) > 1}, key=str)
    )
    for place, host in enumerate(inventory["hosts"]):
        if not isinstance(host, dict) or not _is(host.get("name"), NAME):
            yield f"host {place + 1}: it has no name of small letters, digits and hyphens"
            continue
        yield from (f"{host['name']}: {problem}" for problem in _host_problems(host))


def _host_problems(host: Mapping[str, Any]) -> Iterable[str]:
    if host.get("role") not in GROUPS:
        yield f"role {host.get('role')!r} is none of {', '.join(GROUPS)}"
    ssh = host.get("ssh")
    if not isinstance(ssh, dict) or set(ssh) != {"address", "port", "user", "host_key"}:
        yield "ssh has other fields than address, port, user and host_key"
        return
    if not _is_address(ssh["address"]):
        yield f"{ssh['address']!r} is no address"
    if type(ssh["port"]) is not int or not 1 <= ssh["port"] <= 65535:
        yield f"{ssh['port']!r} is no port"
    if not _is(ssh["user"], USER):
        yield f"{ssh['user']!r} is no name of a user"
    if ssh["host_key"] is not None and not _is(ssh["host_key"], HOST_KEY):
        yield "its host key is not of the form of a known_hosts line: type and base64"
    nics = host.get("nics")
    if not isinstance(nics, list) or not nics:
        yield "it has no network card of the data plane"
        return
    for nic in nics:
        if not isinstance(nic, dict) or set(nic) != {"link", "mac", "pci", "vlan"} or not _is(nic["link"], NAME):
            yield "a network card has other fields than link, mac, pci and vlan, or no link"
            continue
        if nic["mac"] is None and nic["pci"] is None:
            yield f"the network card of link {nic['link']} has neither MAC address nor PCI address"
        for key, form in (("mac", MAC), ("pci", PCI)):
            if nic[key] is not None and not _is(nic[key], form):
                yield f"{nic[key]!r} is no {key} address of a network card"
        if nic["vlan"] is not None and (type(nic["vlan"]) is not int or not 1 <= nic["vlan"] <= 4094):
            yield f"{nic['vlan']!r} is no VLAN"
    links = [nic["link"] for nic in nics if isinstance(nic, dict) and "link" in nic]
    yield from (f"link {link} has two ends on it" for link in sorted({li for li in links if links.count(li) > 1}))


def _is(value: Any, form: re.Pattern[str]) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _is_address(value: Any) -> bool:
    if _is(value, HOST_NAME):
        return True
    try:
        ipaddress.ip_address(value if isinstance(value, str) and "%" not in value else "")
    except ValueError:
        return False
    return True


def main(arguments: list[str]) -> int:
    """The command line; gives the exit status."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    source, folder = arguments[0], Path(arguments[1]).absolute()
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
        if re.search(r'[\s"%\\]', str(folder)):  # ssh expands and splits the name of a known_hosts file
            raise InventoryError(f"the folder {str(folder)!r} has a blank, a quote, a backslash or % in its name")
        known_hosts = folder / "known_hosts"
        hosts, keys = convert(json.loads(text), known_hosts, known_to_user)
        folder.mkdir(parents=True, exist_ok=True)
        known_hosts.write_text(keys, encoding="utf-8")
        (folder / "hosts.json").write_text(json.dumps(hosts, indent=2) + "\n", encoding="utf-8")
    except (OSError, ValueError, InventoryError) as error:
        for line in str(error).splitlines():
            print(f"lab_inventory: {line}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
