# SPDX-License-Identifier: Apache-2.0
"""The converter from a lab's inventory to Ansible's, and the host keys that go with it."""

from __future__ import annotations

import copy
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lab_inventory import InventoryError, convert, known_name

PROGRAM = Path(__file__).resolve().parents[2] / "infra/ansible/lab_inventory.py"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1vcmUgdGhhbiBhIGtleSBpcyBub3QgbmVlZGVk"
KNOWN_HOSTS = Path("/labs/one/known_hosts")


def machine(name: str, role: str, **ssh: Any) -> dict[str, Any]:
    return {
        "name": name,
        "role": role,
        "ssh": {"address": "192.0.2.1", "port": 22, "user": "root", "host_key": KEY} | ssh,
        "nics": [{"link": "left", "mac": "52:54:00:00:00:01", "pci": None, "vlan": None}],
        "placement": {"provider": "qemu", "location": None, "machine_type": None, "id": None},
    }


def lab(*machines: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": 1,
        "environment": "local",
        "tags": {"study": "smoke", "owner": "nobody", "expires": None},
        "hosts": list(machines) or [machine("a", "sender"), machine("b", "receiver", address="192.0.2.2")],
    }


def nobody_knows(name: str) -> tuple[str, ...]:
    return ()


def problems(inventory: Any) -> str:
    with pytest.raises(InventoryError) as caught:
        convert(inventory, KNOWN_HOSTS, nobody_knows)
    return str(caught.value)


def test_each_role_is_a_group() -> None:
    hosts, _ = convert(
        lab(machine("a", "sender"), machine("m", "router"), machine("z", "receiver")), KNOWN_HOSTS, nobody_knows
    )
    groups = {name: list(group["hosts"]) for name, group in hosts["all"]["children"].items()}
    assert groups == {"senders": ["a"], "receivers": ["z"], "routers": ["m"]}


def test_a_lab_without_a_router_has_the_group_all_the_same() -> None:
    hosts, _ = convert(lab(), KNOWN_HOSTS, nobody_knows)
    assert hosts["all"]["children"]["routers"] == {"hosts": {}}


def test_a_host_keeps_its_address_its_user_and_its_cards() -> None:
    hosts, _ = convert(lab(machine("a", "sender", port=2201, user="debian")), KNOWN_HOSTS, nobody_knows)
    assert hosts["all"]["children"]["senders"]["hosts"]["a"] == {
        "ansible_host": "192.0.2.1",
        "ansible_port": 2201,
        "ansible_user": "debian",
        "ansible_become": True,
        "data_plane_nics": [{"link": "left", "mac": "52:54:00:00:00:01", "pci": None, "vlan": None}],
    }


def test_root_needs_not_become_root() -> None:
    hosts, _ = convert(lab(), KNOWN_HOSTS, nobody_knows)
    assert hosts["all"]["children"]["senders"]["hosts"]["a"]["ansible_become"] is False


def test_no_key_but_the_labs_is_believed() -> None:
    hosts, _ = convert(lab(), KNOWN_HOSTS, nobody_knows)
    options = shlex.split(hosts["all"]["vars"]["ansible_ssh_common_args"])[1::2]
    assert options == [
        'UserKnownHostsFile="/labs/one/known_hosts"',
        "GlobalKnownHostsFile=/dev/null",
        "StrictHostKeyChecking=yes",
    ]


@pytest.mark.parametrize(
    ("address", "port", "name"),
    [
        ("192.0.2.1", 22, "192.0.2.1"),
        ("192.0.2.1", 2201, "[192.0.2.1]:2201"),
        ("2001:db8::1", 2201, "[2001:db8::1]:2201"),
    ],
)
def test_known_hosts_names_a_port_unless_it_is_the_usual_one(address: str, port: int, name: str) -> None:
    _, keys = convert(lab(machine("a", "sender", address=address, port=port)), KNOWN_HOSTS, nobody_knows)
    assert keys == f"{name} {KEY}\n"
    assert known_name(address, port) == name


def test_a_key_that_is_not_in_the_inventory_is_taken_from_the_users_own() -> None:
    def user_knows(name: str) -> tuple[str, ...]:
        return (f"{name} {KEY} copied",)

    _, keys = convert(lab(machine("a", "sender", host_key=None)), KNOWN_HOSTS, user_knows)
    assert keys == f"192.0.2.1 {KEY} copied\n"


def test_a_key_that_nobody_knows_is_an_error_naming_every_such_host() -> None:
    message = problems(lab(machine("a", "sender", host_key=None), machine("b", "receiver", host_key=None, port=2202)))
    assert (
        "a: its host key is not known: neither the inventory nor your own known_hosts has one for 192.0.2.1" in message
    )
    assert (
        "b: its host key is not known: neither the inventory nor your own known_hosts has one for [192.0.2.1]:2202"
        in message
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"role": "switch"}, "a: role 'switch' is none of sender, receiver, router"),
        ({"ssh.address": "-oProxyCommand=x"}, "a: '-oProxyCommand=x' is no address"),
        ({"ssh.address": "a b"}, "a: 'a b' is no address"),
        ({"ssh.address": "fe80::1%eth0"}, "a: 'fe80::1%eth0' is no address"),
        ({"ssh.port": 0}, "a: 0 is no port"),
        ({"ssh.port": True}, "a: True is no port"),
        ({"ssh.user": "{{ x }}"}, "a: '{{ x }}' is no name of a user"),
        ({"ssh.host_key": f"{KEY}\nevil {KEY}"}, "a: its host key is not of the form of a known_hosts line"),
        ({"name": "A"}, "host 1: it has no name of small letters, digits and hyphens"),
        ({"nics": []}, "a: it has no network card of the data plane"),
    ],
)
def test_what_is_not_after_the_contract_is_named(change: dict[str, Any], message: str) -> None:
    host = machine("a", "sender")
    for path, value in change.items():
        *way, key = path.split(".")
        (host[way[0]] if way else host)[key] = value
    assert message in problems(lab(host, machine("b", "receiver")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mac": None}, "the network card of link left has neither MAC address nor PCI address"),
        ({"mac": "52:54"}, "'52:54' is no mac address of a network card"),
        ({"pci": "1:0"}, "'1:0' is no pci address of a network card"),
        ({"vlan": 4095}, "4095 is no VLAN"),
    ],
)
def test_a_card_that_cannot_be_found_is_named(change: dict[str, Any], message: str) -> None:
    host = machine("a", "sender")
    host["nics"][0].update(change)
    assert problems(lab(host)) == f"a: {message}"


def test_a_card_twice_on_a_link_and_a_host_twice_are_named() -> None:
    host = machine("a", "sender")
    host["nics"] *= 2
    assert problems(lab(host, copy.deepcopy(host))).splitlines()[0] == "a: two hosts have this name"
    assert "a: link left has two ends on it" in problems(lab(host))


@pytest.mark.parametrize("inventory", [[], {}, {"hosts": None}, "hosts"])
def test_something_else_is_no_inventory(inventory: Any) -> None:
    assert "this is no inventory of a lab" in problems(inventory)


def test_another_format_is_not_read() -> None:
    assert problems(lab() | {"format": 2}) == "the inventory has format 2, but only 1 is understood"


def test_the_program_writes_both_files(tmp_path: Path) -> None:
    source = tmp_path / "inventory.json"
    source.write_text(json.dumps(lab()))
    subprocess.run([sys.executable, PROGRAM, source, tmp_path / "lab"], check=True)
    assert json.loads((tmp_path / "lab/hosts.json").read_text())["all"]["vars"]["lab_environment"] == "local"
    assert (tmp_path / "lab/known_hosts").read_text() == f"192.0.2.1 {KEY}\n192.0.2.2 {KEY}\n"


def test_the_program_says_what_is_wrong_and_writes_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM, "-", tmp_path / "lab"], input="{", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("lab_inventory: ")
    assert not (tmp_path / "lab").exists()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_a_hashed_line_of_the_users_known_hosts_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lab_inventory

    known = tmp_path / "known_hosts"
    known.write_text(f"[192.0.2.1]:2201 {KEY}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", known], check=True, capture_output=True)
    monkeypatch.setattr(lab_inventory, "OWN_KNOWN_HOSTS", known)
    [line] = lab_inventory.known_to_user("[192.0.2.1]:2201")
    assert line.startswith("|1|")
    assert line.endswith(KEY)
    assert lab_inventory.known_to_user("192.0.2.1") == ()
