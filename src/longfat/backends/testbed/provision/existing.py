# SPDX-License-Identifier: Apache-2.0
"""Labs of existing machines, whose variables become the inventory without Terraform. Creates nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address
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
_FIRST_VNI = 4700  # of the first tunnel by name; two labs with tunnels between the same two hosts need other ones
VXLAN = "vxlan"


def inventory_of(folder: Path) -> dict[str, Any]:
    """Return the inventory that the lab's variables describe. Raises StudyError with every problem."""
    source = read_variables(folder)
    stated, message = source.data, f"wrong variables of environment {EXISTING}"
    unknown = [*_unknown(stated)]
    if findings := [*_findings(stated)]:
        refuse(source, [*unknown, *findings], message)
    made: dict[str, Any] = {
        "format": 1,
        "environment": EXISTING,
        "tags": {"expires": None, **stated["tags"]},
        "hosts": [_host(name, host) for name, host in sorted(stated["hosts"].items())],
    }
    links = stated.get("links") or {}
    paths = {link: {key: value for key, value in of.items() if key != "tunnel"} for link, of in links.items()}
    made |= {"paths": {link: of for link, of in paths.items() if of}} if any(paths.values()) else {}
    _lay_tunnels(made["hosts"], sorted(link for link, of in links.items() if "tunnel" in of))
    problems = [Finding(_place(made, path), text) for path, text in problems_of(made)]
    refuse(source, [*unknown, *problems, *_shared_doors(made["hosts"])], message)
    return made


def _shared_doors(hosts: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield a fault for each host with the address and port of an earlier one."""
    names: dict[str, str] = {}
    for host in hosts:
        door = f"{host['ssh'].get('address')} {host['ssh']['port']}"
        if "address" in host["ssh"] and (other := names.setdefault(door, host["name"])) != host["name"]:
            yield Finding(("hosts", host["name"], "ssh"), f"{other} has the same address and port")


def _lay_tunnels(hosts: list[dict[str, Any]], tunnels: list[str]) -> None:
    """Make the cards of these links the ends of tunnels between the addresses that SSH uses."""
    for vni, link in enumerate(tunnels, _FIRST_VNI):
        ends = [(host["ssh"]["address"], nic) for host in hosts for nic in host["nics"] if nic["link"] == link]
        for end, (address, nic) in enumerate(ends):
            others = [other for other, of in ends if of is not nic]
            nic["mac"] = f"02:6c:66:{vni >> 8:02x}:{vni & 255:02x}:{end:02x}"
            nic["tunnel"] = {"vni": vni, "local": address, "remote": others[0] if others else address}


def _place(made: Mapping[str, Any], path: Path_) -> Path_:
    """Return the path in the user's file for a path in the inventory, which lists hosts and cards by number."""
    if path[:1] == ("hosts",) and len(path) > 1 and isinstance(path[1], int):
        host = made["hosts"][path[1]]
        if path[2:3] == ("nics",) and len(path) > 3 and isinstance(path[3], int):
            return ("hosts", host["name"], "nics", host["nics"][path[3]]["link"], *path[4:])
        return ("hosts", host["name"], *path[2:])
    return ("links", *path[1:]) if path[:1] == ("paths",) else path


def _unknown(stated: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the unknown variables."""
    for name in sorted(stated.keys() - {"hosts", "links", "tags"}):
        yield Finding((name,), "unknown variable", nearest(name, ("hosts", "links", "tags")))
    for name, host in sorted(_mapping(stated.get("hosts")).items()):
        for key in sorted(_mapping(host).keys() - {*_HOST_KEYS}):
            yield Finding(("hosts", name, key), "unknown variable", nearest(key, _HOST_KEYS))


def _findings(stated: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the faults that the inventory's schema cannot find."""
    for name in ("hosts", "tags"):
        if not isinstance(stated.get(name), dict):
            yield Finding((name,), "missing" if name not in stated else "not a mapping of names")
    hosts = _mapping(stated.get("hosts"))
    for name, host in sorted(hosts.items()):
        whole = isinstance(host, dict) and all(isinstance(host.get(key, {}), dict) for key in ("ssh", "nics"))
        if not whole or not all(isinstance(nic, dict) for nic in host.get("nics", {}).values()):
            yield Finding(("hosts", name), "not a mapping; ssh, nics and each card are mappings, too")
    yield from _link_findings(stated.get("links"), hosts)


def _link_findings(links: Any, hosts: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the faults of links: not a mapping, another kind of tunnel, ends without an IPv4 address or with a card."""
    if links is not None and not isinstance(links, dict):
        yield Finding(("links",), "not a mapping of names")
        return
    for link, of in sorted((links or {}).items()):
        if not isinstance(of, dict):
            yield Finding(("links", link), "not a mapping; allowed: round_trip_us, tunnel")
        elif not any(link in _mapping(_mapping(host).get("nics")) for host in hosts.values()):
            yield Finding(("links", link), "no host has an end of this link")
        elif "tunnel" in of:
            if of["tunnel"] != VXLAN:
                yield Finding(("links", link, "tunnel"), f"{of['tunnel']!r} is unknown; allowed: {VXLAN}")
            for name, host in sorted(hosts.items()):
                if link in _mapping(_mapping(host).get("nics")):
                    yield from _tunnel_end_findings(name, link, host)


def _mapping(data: Any) -> Mapping[str, Any]:
    return data if isinstance(data, dict) else {}


def _tunnel_end_findings(name: str, link: str, host: Mapping[str, Any]) -> Iterator[Finding]:
    if stated := host["nics"][link]:
        yield Finding(("hosts", name, "nics", link), f"a tunnel has no card; write {{}}, not {stated!r}")
    address = _mapping(host.get("ssh")).get("address")
    try:
        IPv4Address(address)
    except (AddressValueError, TypeError):
        message = f"{address!r} is not an IPv4 address, which the tunnel {link} needs"
        yield Finding(("hosts", name, "ssh", "address"), message)


def _lower(nic: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card with its addresses as Linux writes them."""
    return {
        key: value.lower() if key in ("mac", "pci") and isinstance(value, str) else value for key, value in nic.items()
    }


def _host(name: str, host: Mapping[str, Any]) -> dict[str, Any]:
    nics = [{"link": link, **_NIC, **_lower(nic)} for link, nic in sorted(host.get("nics", {}).items())]
    placement = {"provider": EXISTING, "id": None} | {key: host.get(key) for key in ("location", "machine_type")}
    ssh = {**_SSH, **host.get("ssh", {})}
    return {"name": name, "role": host.get("role"), "ssh": ssh, "nics": nics, "placement": placement}
