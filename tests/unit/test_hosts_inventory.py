# SPDX-License-Identifier: Apache-2.0
"""Reading the inventory of a lab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longfat.errors import StudyError
from longfat.testbed.connect.inventory import read_inventory


def entry(name: str, role: str, *links: str) -> dict[str, Any]:
    return {
        "name": name,
        "role": role,
        "ssh": {"address": "192.0.2.1", "port": 22, "user": "root", "host_key": None},
        "nics": [{"link": link, "mac": "02:00:00:00:00:01", "pci": None, "vlan": None} for link in links],
        "placement": {"provider": "qemu", "location": None, "machine_type": "1 x tcg", "id": None},
    }


def write(folder: Path, *hosts: dict[str, Any], **changes: object) -> Path:
    tags = {"study": "any", "owner": "me", "expires": None}
    data = {"format": 1, "environment": "local", "tags": tags, "hosts": list(hosts)} | changes
    (folder / "inventory.json").write_text(json.dumps(data))
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(StudyError) as caught:
        read_inventory(folder)
    return str(caught.value)


def test_hosts_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path, entry("b", "receiver", "one"), entry("a", "sender", "one"))
    inventory = read_inventory(tmp_path)
    assert [host.name for host in inventory.hosts] == ["a", "b"]
    assert inventory.host("a").placement == "qemu, 1 x tcg"
    assert inventory.cables("a", "b") == ["one"]


def test_a_folder_without_inventory_is_no_lab_and_the_hint_makes_one(tmp_path: Path) -> None:
    message = refusal(tmp_path)
    assert "there is no lab here" in message
    assert "./just lab up" in message


def test_an_inventory_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "inventory.json").write_text("{")
    assert str(tmp_path / "inventory.json") in refusal(tmp_path)


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    wrong = entry("b", "server", "one")
    wrong["ssh"]["port"] = 0
    message = refusal(write(tmp_path, entry("a", "sender", "one"), wrong, format=2))
    for part in ("format", "'server' is not one of", "0 is less than the minimum of 1"):
        assert part in message


def test_two_hosts_with_one_name_and_a_link_with_one_end_are_refused(tmp_path: Path) -> None:
    twice = write(tmp_path, entry("a", "sender", "one", "loose"), entry("a", "receiver", "one"))
    message = refusal(twice)
    assert "two hosts have the name 'a'" in message
    assert "link 'loose' has 1 ends" in message


def test_a_link_has_the_delay_that_its_path_states_and_the_others_none(tmp_path: Path) -> None:
    hosts = [entry("a", "sender", "one", "two"), entry("b", "receiver", "one", "two")]
    write(tmp_path, *hosts, paths={"two": {"round_trip_us": 20_000}})
    assert read_inventory(tmp_path).own_us == {"two": 20_000}


def test_a_delay_of_a_link_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    hosts = [entry("a", "sender", "one"), entry("b", "receiver", "one")]
    message = refusal(write(tmp_path, *hosts, paths={"two": {"round_trip_us": 20_000}}))
    assert "paths.two: there is no such link; there are: one" in message
