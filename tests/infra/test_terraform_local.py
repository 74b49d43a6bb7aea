# SPDX-License-Identifier: Apache-2.0
"""The local environment, really applied and destroyed: machines are processes of a stub that stands in for QEMU."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from needs import free_ports
from terraform_toolbox import (
    Terraform,
    end_machines,
    inventory_schema,
    machines,
    refusals_of_smoke,
    runs,
    write_qemu_stub,
)
from terraform_toolbox import terraform as terraform

pytestmark = pytest.mark.terraform

LOCAL = "terraform/environments/local"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbc somebody"
NAMES = ("receiver", "router", "sender")
NO_CHANGES, CHANGES = 0, 2


@dataclass
class Lab:
    """One lab of the local environment, with a state and a folder of its own."""

    terraform: Terraform
    scratch: Path
    variables: dict[str, Any]

    @property
    def folder(self) -> Path:
        return self.scratch / "lab"

    @property
    def data(self) -> Path:
        return self.scratch / ".terraform"

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        values = {
            f"TF_VAR_{name}": value if isinstance(value, str) else json.dumps(value)
            for name, value in self.variables.items()
        }
        if not self.data.exists():
            self.terraform.run(
                LOCAL, "init", f"-backend-config=path={self.scratch / 'state'}", TF_DATA_DIR=str(self.data)
            )
        return self.terraform.run(
            LOCAL, arguments[0], "-no-color", *arguments[1:], check=check, TF_DATA_DIR=str(self.data), **values
        )

    def apply(self, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("apply", "-auto-approve", check=check)

    def destroy(self) -> subprocess.CompletedProcess[str]:
        return self.run("destroy", "-auto-approve")

    def plan(self) -> int:
        return self.run("plan", "-detailed-exitcode", check=False).returncode

    def inventory(self) -> dict[str, Any]:
        return dict(json.loads(self.run("output", "-json", "inventory").stdout))

    def pids(self) -> dict[str, int]:
        return machines(self.folder)

    def end_by_force(self, name: str) -> None:
        number = self.pids()[name]
        handle = os.pidfd_open(number)
        os.kill(number, signal.SIGKILL)
        select.select([handle], [], [])  # until it has ended
        os.close(handle)


def seed_of(lab: Lab) -> dict[str, str]:
    """Return the files by which the sender learns who it is."""
    with tarfile.open(lab.folder / "sender.seed") as seed:
        found = {Path(entry.name).name: seed.extractfile(entry) for entry in seed if entry.isfile()}
        return {name: file.read().decode().strip() for name, file in found.items() if file}


@pytest.fixture
def lab(terraform: Terraform, tmp_path: Path) -> Iterator[Lab]:
    # A path of pytest's is too long for a socket's name.
    scratch = Path(os.path.realpath(subprocess.check_output(["mktemp", "-d"], text=True).strip()))
    program = scratch / "qemu"
    write_qemu_stub(program, scratch)
    image = scratch / "image.raw"
    image.write_bytes(b"userland")
    ports = free_ports(len(NAMES))
    hosts = {name: {"role": name, "ssh_port": port} for name, port in zip(NAMES, ports, strict=True)}
    made = Lab(
        terraform,
        scratch,
        {
            "tags": {"study": "smoke", "owner": "lab", "expires": None},
            "folder": str(scratch / "lab"),
            "image": str(image),
            "hosts": hosts,
            "ssh_public_key": KEY,
            "qemu": str(program),
            "boot_timeout_s": 60,
        },
    )
    yield made
    end_machines(made.folder)
    shutil.rmtree(scratch)


def test_a_lab_comes_up_is_mended_and_leaves_nothing(lab: Lab) -> None:
    lab.apply()
    pids = lab.pids()
    assert sorted(pids) == list(NAMES)
    assert all(runs(number) for number in pids.values())
    assert {path.name for path in lab.folder.iterdir() if path.is_socket()} == {
        "direct@sender",
        "direct@receiver",
        "left@sender",
        "left@router",
        "right@router",
        "right@receiver",
    }
    assert oct(lab.folder.stat().st_mode & 0o777) == "0o700"

    inventory = lab.inventory()
    Draft202012Validator(inventory_schema()).validate(inventory)
    assert [(host["name"], host["role"], len(host["nics"])) for host in inventory["hosts"]] == [
        ("receiver", "receiver", 2),
        ("router", "router", 2),
        ("sender", "sender", 2),
    ]
    assert refusals_of_smoke(inventory, lab.scratch) == set()
    for host in inventory["hosts"]:
        assert (lab.folder / f"{host['name']}.host_key.pub").read_text().startswith(f"{host['ssh']['host_key']} ")
        with socket.create_connection((host["ssh"]["address"], host["ssh"]["port"])) as door:
            assert door.recv(4) == b"SSH-"
    seed = seed_of(lab)
    assert set(seed) == {"hostname", "authorized_keys", "ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"}
    assert seed["hostname"] == "sender"

    assert lab.plan() == NO_CHANGES

    before = pids
    disk = lab.folder / "router.raw"
    disk.write_bytes(b"changed by the machine")
    identity = lab.inventory()["hosts"][1]["ssh"]["host_key"]
    lab.end_by_force("router")
    assert lab.plan() == CHANGES

    lab.apply()
    after = lab.pids()
    assert runs(after["router"]) and after["router"] != before["router"]
    assert {name: after[name] for name in ("receiver", "sender")} == {
        name: before[name] for name in ("receiver", "sender")
    }
    assert disk.read_bytes() == b"changed by the machine"
    assert lab.inventory()["hosts"][1]["ssh"]["host_key"] == identity
    assert lab.plan() == NO_CHANGES
    lab.destroy()
    assert not any(runs(number) for number in after.values())
    assert not lab.folder.exists()


def test_machines_that_reach_other_networks_have_a_resolver(lab: Lab) -> None:
    lab.variables["isolated"] = False
    lab.run("apply", "-auto-approve", "-target=terraform_data.identity")
    assert seed_of(lab)["resolv.conf"] == "nameserver 192.168.127.3"


def test_a_process_that_got_the_number_of_a_machine_is_neither_taken_for_it_nor_ended(lab: Lab) -> None:
    lab.apply()
    lab.end_by_force("sender")
    with subprocess.Popen(["sleep", "infinity"]) as stranger:
        (lab.folder / "sender.pid").write_text(f"{stranger.pid}\n")
        assert lab.plan() == CHANGES
        lab.destroy()
        assert stranger.poll() is None
        stranger.kill()
    assert not lab.folder.exists()


def test_a_machine_that_does_not_answer_stays_for_a_look(lab: Lab) -> None:
    lab.variables["boot_timeout_s"] = 1
    (lab.scratch / "sender.silent").touch()
    done = lab.apply(check=False)
    assert done.returncode == 1
    assert f"SSH does not answer on port {lab.variables['hosts']['sender']['ssh_port']}" in done.stdout + done.stderr
    assert f"{lab.folder}/sender.console" in done.stdout + done.stderr
    pids = lab.pids()
    assert runs(pids["sender"])
    (lab.scratch / "sender.silent").unlink()
    lab.apply()
    assert lab.pids() == pids
    lab.destroy()
    assert not any(runs(number) for number in pids.values())


def test_a_port_that_is_taken_is_named(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        lab.variables["hosts"]["receiver"]["ssh_port"] = port
        done = lab.apply(check=False)
    assert done.returncode == 1
    assert f"tcp:127.0.0.1:{port}-:22" in done.stdout + done.stderr
    lab.destroy()
    assert not lab.folder.exists()


@pytest.mark.parametrize(
    ("links", "complaint"),
    [
        ({"left": {"a": "sender", "b": "nobody"}}, "Links and cards do not fit"),
        ({"left": {"a": "sender", "b": "router"}}, "must be an end of a link"),
    ],
)
def test_links_that_cannot_be_are_refused_before_anything_starts(
    lab: Lab, links: dict[str, Any], complaint: str
) -> None:
    lab.variables["links"] = links
    done = lab.apply(check=False)
    assert done.returncode == 1
    assert complaint in " ".join((done.stdout + done.stderr).replace("│", " ").split())
    assert not lab.folder.exists()
