# SPDX-License-Identifier: Apache-2.0
"""The recipes of `./just lab` with real Terraform: machines are processes of a stub that stands in for QEMU."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from terraform_toolbox import end_machines, inventory_schema, machines, runs, terraform_program, write_qemu_stub
from typer.testing import CliRunner

from longfat.backends.testbed.provision import local
from longfat.cli import app

pytestmark = pytest.mark.terraform

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbc"


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    program = Path(terraform_program())
    # A path of pytest's is too long for a socket's name.
    scratch = Path(tempfile.mkdtemp(dir="/tmp"))
    programs = scratch / "programs"
    programs.mkdir()
    (programs / "terraform").symlink_to(program.resolve())
    write_qemu_stub(programs / "qemu-system-x86_64", scratch)
    (scratch / "disk.raw").write_bytes(b"userland")
    (scratch / "settings.tfrc").touch()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("LONGFAT_LABS", str(scratch / "labs"))
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(scratch / "settings.tfrc"))
    monkeypatch.setattr(local, "build_disk", lambda say: scratch / "disk.raw")
    yield scratch / "labs"
    end_machines(scratch / "labs/local/machines")
    shutil.rmtree(scratch)


def call(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["lab", *arguments], env={"COLUMNS": "300"})
    assert done.exit_code == status, done.output
    return done.output


def inventory(folder: Path) -> dict[str, Any]:
    content = dict(json.loads((folder / "inventory.json").read_text()))
    Draft202012Validator(inventory_schema()).validate(content)
    return content


def test_local_machines_come_up_are_mended_and_leave_nothing(labs: Path) -> None:
    refused = call("up", "local", status=2)
    assert "machine router: router, 1 x tcg, 512 MiB" in refused and "--yes" in refused
    assert not (labs / "local/machines").exists()

    call("up", "local", "--yes")
    folder = labs / "local"
    before = machines(folder / "machines")
    assert sorted(before) == ["receiver", "router", "sender"]
    assert [len(host["nics"]) for host in inventory(folder)["hosts"]] == [2, 2, 2]
    assert len((folder / "known_hosts").read_text().splitlines()) == 3
    assert "local: local, study any" in call("list")

    assert "nothing to do" in call("up", "local", "--yes")
    assert machines(folder / "machines") == before

    os.kill(before["router"], signal.SIGKILL)
    while runs(before["router"]):
        time.sleep(0.01)
    (folder / "inventory.json").write_text("{")
    said = call("up", "local", "--yes")
    assert '-/+ terraform_data.machine["router"]' in said and '-/+ terraform_data.machine["sender"]' not in said
    after = machines(folder / "machines")
    assert runs(after["router"]) and after["sender"] == before["sender"]
    assert len(inventory(folder)["hosts"]) == 3

    call("down", "local", "--yes")
    assert not folder.exists()
    assert not any(runs(number) for number in after.values())
    assert "there is no lab local" in call("down", "local", "--yes")


def test_hosts_that_one_has_are_only_noted(labs: Path) -> None:
    def host(role: str, number: int) -> dict[str, Any]:
        nics = {"wire": {"mac": f"52:54:00:00:00:0{number}"}}
        return {"role": role, "ssh": {"address": f"192.0.2.{number}", "host_key": KEY}, "nics": nics}

    folder = labs / "existing"
    folder.mkdir(parents=True)
    variables = {
        "tags": {"study": "any", "owner": "me", "expires": "2099-01-01T00:00:00Z"},
        "hosts": {"a": host("sender", 1), "b": host("receiver", 2)},
        "links": {"wire": {"a": "a", "b": "b"}},
    }
    (folder / "lab.tfvars.json").write_text(json.dumps(variables | {"links": {"wire": {"a": "a", "b": "c"}}}))
    assert "Links and cards do not fit" in call("up", "existing", "--yes", status=3)
    assert not (folder / "terraform.tfstate").exists()

    (folder / "lab.tfvars.json").write_text(json.dumps(variables))
    said = call("up", "existing", "--yes", "--hourly-price", "2", "--currency", "EUR")
    assert "EUR until the expiry" in said
    assert [host["name"] for host in inventory(folder)["hosts"]] == ["a", "b"]
    call("down", "existing", "--yes")
    assert [path.name for path in folder.iterdir()] == ["lab.tfvars.json"]
