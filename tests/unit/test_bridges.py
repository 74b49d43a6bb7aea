# SPDX-License-Identifier: Apache-2.0
"""The programs that turn a testbed's machines into a lab: what they write is a lab that `lab up existing` accepts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import cloudlab
import fabric
import pytest
from lab_file import lab_file

from longfat.backends.testbed.provision.existing import inventory_of

ENDS = {"left": ("sender", "router"), "right": ("router", "receiver")}
NODES = ("sender", "router", "receiver")


def manifest(
    login: str = '<login authentication="ssh-keys" hostname="{}.example.net" port="22" username="ann"/>',
) -> str:
    nodes = ""
    for number, name in enumerate(NODES):
        cards = "".join(
            f'<interface client_id="{name}:{link}" mac_address="0200000000{number}{place}"/>'
            for place, (link, ends) in enumerate(ENDS.items())
            if name in ends
        )
        nodes += f'<node client_id="{name}">{cards}<services>{login.format(name)}</services></node>'
    for link, ends in ENDS.items():
        refs = "".join(f'<interface_ref client_id="{end}:{link}"/>' for end in ends)
        nodes += f'<link client_id="{link}">{refs}</link>'
    return f'<rspec xmlns="http://www.geni.net/resources/rspec/3" type="manifest">{nodes}</rspec>'


def inventory(text: str, folder: Path) -> dict[str, dict[str, object]]:
    (folder / "lab.yaml").write_text(text)
    return {host["name"]: host for host in inventory_of(folder)["hosts"]}


def test_a_manifest_of_cloudlab_becomes_a_lab_with_its_cables(tmp_path: Path) -> None:
    hosts = inventory(lab_file(cloudlab.machines(manifest()), "cloudlab"), tmp_path)
    assert {name: host["role"] for name, host in hosts.items()} == {name: name for name in NODES}
    assert hosts["router"]["ssh"] == {
        "address": "router.example.net", "port": 22, "user": "ann", "host_key": None,
    }  # fmt: skip
    assert [(nic["link"], nic["mac"]) for nic in hosts["router"]["nics"]] == [  # type: ignore[attr-defined]
        ("left", "02:00:00:00:00:10"),
        ("right", "02:00:00:00:00:11"),
    ]


@pytest.mark.parametrize(
    "text",
    ["", "<rspec/>", manifest().replace('"manifest"', '"request"'), manifest(""), "<!DOCTYPE rspec []>" + manifest()],
)
def test_what_is_no_manifest_of_machines_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.xml").write_text(text)
    assert cloudlab.main(["cloudlab.py", str(tmp_path / "manifest.xml")]) == 1
    told = capsys.readouterr()
    assert told.err.startswith("cloudlab: ") and not told.out


def slice_of(names: tuple[str, ...]) -> list[SimpleNamespace]:
    def node(number: int, name: str) -> SimpleNamespace:
        links = [link for link, ends in ENDS.items() if name in ends]
        networks = [SimpleNamespace(get_name=lambda link=link: link) for link in links] + [None]
        cards = [
            SimpleNamespace(
                get_network=lambda net=net: net, get_mac=lambda place=place: f"0A:00:00:00:{number:02}:{place:02}"
            )
            for place, net in enumerate(networks)
        ]
        return SimpleNamespace(
            get_name=lambda: name,
            get_management_ip=lambda: f"192.0.2.{number}",
            get_username=lambda: "debian",
            get_interfaces=lambda: cards,
        )

    return [node(number, name) for number, name in enumerate(names, 1)]


def test_a_slice_of_fabric_becomes_a_lab_with_its_cables(tmp_path: Path) -> None:
    hosts = inventory(lab_file(fabric.machines(slice_of(NODES)), "fabric"), tmp_path)
    assert [nic["mac"] for nic in hosts["router"]["nics"]] == [  # type: ignore[attr-defined]
        "0a:00:00:00:02:00",
        "0a:00:00:00:02:01",
    ]


def test_machines_of_other_names_become_workers_and_are_not_mixed(tmp_path: Path) -> None:
    hosts = inventory(lab_file(fabric.machines(slice_of(("one", "two"))), "fabric"), tmp_path)
    assert {host["role"] for host in hosts.values()} == {"worker"}
    for names in ((), ("one", "sender"), ("one", "One")):
        with pytest.raises(ValueError, match="machines are"):
            lab_file(fabric.machines(slice_of(names)), "fabric")
