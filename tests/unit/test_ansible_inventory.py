# SPDX-License-Identifier: Apache-2.0
"""The inventory of a lab: its contract, its conversion for Ansible, and the host keys."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lab_inventory import convert
from manifests import refused

from longfat.backends.testbed.inventory import load_inventory, read_inventory
from longfat.backends.testbed.provision.settings import read_settings
from longfat.system.errors import StudyError

PROGRAM = Path(__file__).resolve().parents[2] / "infra/ansible/lab_inventory.py"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1vcmUgdGhhbiBhIGtleSBpcyBub3QgbmVlZGVk"
EXPIRY = "2031-01-02T03:04:05Z"
KNOWN_HOSTS = Path("/labs/one/known_hosts")


def machine(name: str, role: str, **ssh: Any) -> dict[str, Any]:
    return {
        "name": name,
        "role": role,
        "ssh": {"address": "192.0.2.1", "port": 22, "user": "root", "host_key": KEY} | ssh,
        "nics": [{"link": "left", "mac": "52:54:00:00:00:01", "pci": None, "vlan": None}],
        "placement": {"provider": "qemu", "location": None, "machine_type": "1 x tcg", "id": None},
    }


def lab(*machines: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "format": 1,
        "environment": "local",
        "tags": {"study": "smoke", "owner": "nobody", "expires": None},
        "hosts": list(machines) or [machine("b", "receiver", address="192.0.2.2"), machine("a", "sender")],
        **changes,
    }


def nobody_knows(name: str) -> tuple[str, ...]:
    return ()


def write(folder: Path, inventory: object) -> Path:
    file = folder / "inventory.json"
    file.write_text(json.dumps(inventory))
    return file


def refused_keys(folder: Path, inventory: object) -> list[str]:
    return [str(problem.key) for problem in refused(lambda: load_inventory(write(folder, inventory)))]


def test_hosts_and_the_delays_of_links_are_read(tmp_path: Path) -> None:
    write(tmp_path, lab(paths={"left": {"round_trip_us": 20_000}}))
    inventory = read_inventory(tmp_path)
    assert [host.name for host in inventory.hosts] == ["a", "b"]
    assert inventory.host("a").placement == "qemu, 1 x tcg"
    assert inventory.cables("a", "b") == ["left"]
    assert inventory.own_us == {"left": 20_000}


def test_a_lab_has_workers_without_cards_or_hosts_of_paths_but_not_both(tmp_path: Path) -> None:
    worker = machine("w", "worker") | {"nics": []}
    write(tmp_path, lab(worker))
    assert [host.links for host in read_inventory(tmp_path).hosts] == [()]
    assert convert(lab(worker), KNOWN_HOSTS, nobody_knows)[0]["all"]["children"]["workers"]["hosts"].keys() == {"w"}
    assert refused_keys(tmp_path, lab(machine("w", "worker"))) == ["hosts[0].nics"]
    assert refused_keys(tmp_path, lab(machine("b", "receiver"), machine("a", "sender"), worker))


@pytest.mark.parametrize("text", [None, "{", "[]", "{}", '"hosts"'])
def test_a_missing_or_foreign_inventory_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "inventory.json").write_text(text)
    with pytest.raises(StudyError, match=r"inventory\.json"):
        read_inventory(tmp_path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("ssh.address", "-oProxyCommand=x"),
        ("ssh.port", 0),
        ("ssh.user", "{{ x }}"),
        ("ssh.host_key", f"{KEY}\nevil {KEY}"),
        ("name", "A"),
        ("nics", []),
        ("nics[0].mac", "52:54"),
        ("nics[0].pci", "1:0"),
        ("nics[0].vlan", 4095),
    ],
)
def test_a_violation_of_the_contract_is_named_by_its_key(tmp_path: Path, place: str, value: object) -> None:
    host = machine("a", "sender")
    *way, key = place.replace("[0]", "").split(".")
    target = host if not way else host[way[0]][0] if way[0] == "nics" else host[way[0]]
    target[key] = value
    assert refused_keys(tmp_path, lab(host, machine("b", "receiver"))) == [f"hosts[0].{place}"]


def test_contradictions_and_files_outside_of_etc_are_refused(tmp_path: Path) -> None:
    ends = machine("a", "sender"), machine("b", "receiver")
    assert refused_keys(tmp_path, lab(ends[0], machine("a", "receiver"))) == ["hosts", "nics"]
    assert refused_keys(tmp_path, lab(*ends, machine("c", "router"))) == ["nics"]
    assert refused_keys(tmp_path, lab(*ends, paths={"two": {"round_trip_us": 1}})) == ["paths.two"]
    assert refused_keys(tmp_path, lab(filter={"/root/.bashrc": ""})) == ["filter"]
    tags = {"study": "smoke", "owner": "me", "expires": "2041-02-30T06:00:00Z"}
    assert refused_keys(tmp_path, lab(tags=tags)) == ["tags.expires"]
    for host in ends:
        host["nics"].append({**host["nics"][0], "link": "right"})
    assert refused_keys(tmp_path, lab(*ends)) == ["hosts[0].nics[1]", "hosts[1].nics[1]"]
    for host in ends:
        host["nics"][1]["vlan"] = 7
    assert load_inventory(write(tmp_path, lab(*ends)))["hosts"] == list(ends), "VLANs are links of one card"


@pytest.mark.parametrize(("environment", "user", "end"), [("existing", "debian", ""), ("local", "root", EXPIRY)])
def test_hosts_filter_and_the_end_of_machines_made_for_the_lab_reach_ansible(
    environment: str, user: str, end: str
) -> None:
    files = {"/etc/nftables.conf": "flush ruleset ip\n"}
    own = {"environment": environment, "filter": files, "tags": {"expires": EXPIRY}}
    everything = convert(lab(machine("a", "sender", port=2201, user=user), **own), KNOWN_HOSTS, nobody_knows)[0]["all"]
    assert everything["children"]["senders"]["hosts"]["a"] == {
        "ansible_host": "192.0.2.1",
        "ansible_port": 2201,
        "ansible_user": user,
        "ansible_become": user == "debian",
        "data_plane_nics": [{"link": "left", "mac": "52:54:00:00:00:01", "pci": None, "vlan": None}],
    }
    assert (everything["vars"]["packet_filter_files"], everything["vars"]["lab_expiry_utc"]) == (files, end)


def test_only_the_keys_of_the_lab_are_trusted() -> None:
    hosts, _ = convert(lab(), KNOWN_HOSTS, nobody_knows)
    options = shlex.split(hosts["all"]["vars"]["ansible_ssh_common_args"])[1::2]
    assert options == [
        'UserKnownHostsFile="/labs/one/known_hosts"',
        "GlobalKnownHostsFile=/dev/null",
        "StrictHostKeyChecking=yes",
    ]


def test_an_unknown_key_is_looked_up_or_an_error_for_every_such_host() -> None:
    one, two = machine("a", "sender", host_key=None), machine("b", "receiver", host_key=None, port=2202)
    _, keys = convert(lab(one), KNOWN_HOSTS, lambda name: (f"{name} {KEY} copied",))
    assert keys == f"192.0.2.1 {KEY} copied\n"
    with pytest.raises(ValueError, match=r"(?s)a: .* 192\.0\.2\.1;.*b: .* \[192\.0\.2\.1\]:2202;"):
        convert(lab(one, two), KNOWN_HOSTS, nobody_knows)


def test_the_program_writes_both_files_or_none(tmp_path: Path) -> None:
    file = write(tmp_path, lab())
    subprocess.run([sys.executable, PROGRAM, file, tmp_path / "lab"], check=True)
    assert json.loads((tmp_path / "lab/hosts.json").read_text())["all"]["vars"]["lab_environment"] == "local"
    assert (tmp_path / "lab/known_hosts").read_text() == f"192.0.2.2 {KEY}\n192.0.2.1 {KEY}\n"
    file.write_text("{")
    done = subprocess.run([sys.executable, PROGRAM, file, tmp_path / "no"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("lab_inventory: ")
    assert not (tmp_path / "no").exists()


def test_settings_have_the_names_and_types_of_the_roles(tmp_path: Path) -> None:
    path = tmp_path / "settings.yml"
    path.write_text("time_synchronised_within_s: 1\ntuning_persistent_modules: [sch_fq]\nansible_become: true\n")
    assert read_settings(path)["tuning_persistent_modules"] == ["sch_fq"]
    lines = (
        "time_synchronised_allow: 192.0.2.0/24",
        "data_plane_mtu: true",
        "kernel_booted_package:",
        "worker_packages: [{}]",
        "delay_element_emulated: yes",
        "preflight_ignore: [ufw]",
        "data_plane_mtu: 9000",
    )
    path.write_text("\n".join(lines))
    named = [problem.key for problem in refused(lambda: read_settings(path))]
    assert sorted(named) == sorted(line.partition(":")[0] for line in lines)
