# SPDX-License-Identifier: Apache-2.0
"""The sweeper: which labs have expired according to their state, and what happens to them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from terraform_toolbox import INFRA, Terraform, make_terraform

SWEEP = INFRA / "terraform/sweep.py"
PAST, FUTURE = "2001-01-01T00:00:00Z", "2099-01-01T00:00:00Z"


@pytest.fixture(scope="session")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Terraform:
    return make_terraform(tmp_path_factory.getbasetemp())


def resource(kind: str, name: str, **attributes: Any) -> dict[str, Any]:
    return {"mode": "managed", "type": kind, "name": name, "instances": [{"attributes": attributes}]}


def make_lab(labs: Path, name: str, expires: str | None, environment: str = "existing") -> Path:
    tags = {"study": "smoke", "owner": "lab", "expires": expires}
    said = resource("terraform_data", "lab", input={"value": {"environment": environment, "tags": tags}, "type": "any"})
    folder = labs / name
    folder.mkdir(parents=True)
    (folder / "terraform.tfstate").write_text(json.dumps({"resources": [said, resource("some_server", "this")]}))
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH with a terraform that notes how it was called, and fails to destroy while `stuck` is there."""
    folder = tmp_path / "programs"
    folder.mkdir()
    lines = (
        "#!/bin/sh",
        f'echo "$TF_DATA_DIR $*" >>"{tmp_path}/called"',
        f'case $* in *destroy*) [ ! -e "{tmp_path}/stuck" ] ;; esac',
    )
    (folder / "terraform").write_text("\n".join(lines) + "\n")
    (folder / "terraform").chmod(0o755)
    return folder


def sweep(labs: Path, programs: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SWEEP), *options],
        env={**os.environ, "LONGFAT_LABS": str(labs), "PATH": f"{programs}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def called(tmp_path: Path) -> list[str]:
    notes = tmp_path / "called"
    return notes.read_text().splitlines() if notes.exists() else []


def test_without_labs_there_is_nothing_to_say(tmp_path: Path, programs: Path) -> None:
    done = sweep(tmp_path / "labs", programs)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_lab_is_listed_and_none_is_destroyed_unasked(tmp_path: Path, programs: Path) -> None:
    labs = tmp_path / "labs"
    make_lab(labs, "old", PAST)
    make_lab(labs, "new", FUTURE)
    make_lab(labs, "own", None)
    done = sweep(labs, programs)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("new: existing, study smoke, owner lab, 2 resources, ") and lines[0].endswith(" h left")
    assert lines[1].startswith("old: existing, ") and "expired" in lines[1]
    assert lines[2].endswith("no expiry")
    assert "old: not destroyed, as nobody can confirm it here" in lines[3]
    assert called(tmp_path) == []


def test_a_list_asks_nothing_and_is_no_failure(tmp_path: Path, programs: Path) -> None:
    make_lab(tmp_path / "labs", "old", PAST)
    done = sweep(tmp_path / "labs", programs, "--list")
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 1)


def test_only_what_has_expired_is_destroyed_with_what_it_was_made_from(tmp_path: Path, programs: Path) -> None:
    labs = tmp_path / "labs"
    old = make_lab(labs, "old", PAST)
    (old / "lab.tfvars.json").write_text("{}")
    make_lab(labs, "new", FUTURE)
    assert sweep(labs, programs, "--yes").returncode == 0
    where = f"-chdir={INFRA}/terraform/environments/existing"
    assert called(tmp_path) == [
        f"{old}/.terraform {where} init -input=false -reconfigure -backend-config=path={old}/terraform.tfstate",
        f"{old}/.terraform {where} destroy -auto-approve -input=false -var-file={old}/lab.tfvars.json",
    ]


def test_a_lab_that_cannot_be_destroyed_is_told_with_the_next_command(tmp_path: Path, programs: Path) -> None:
    labs = tmp_path / "labs"
    make_lab(labs, "old", PAST)
    (tmp_path / "stuck").touch()
    done = sweep(labs, programs, "--yes")
    assert done.returncode == 1
    assert "old: not destroyed. State kept. Try again: " in done.stderr
    assert "destroy -auto-approve" in done.stderr


@pytest.mark.parametrize(
    "content",
    ["", "{", '{"resources": [{"mode": "managed", "type": "some_server", "name": "this", "instances": [{}]}]}'],
)
def test_a_state_that_cannot_be_read_is_no_reason_to_be_silent(tmp_path: Path, programs: Path, content: str) -> None:
    labs = tmp_path / "labs"
    (labs / "odd").mkdir(parents=True)
    (labs / "odd/terraform.tfstate").write_text(content)
    done = sweep(labs, programs, "--yes")
    assert done.returncode == 1
    assert done.stderr.startswith("odd: unreadable, look yourself: ")


def test_a_lab_of_which_nothing_is_left_is_not_listed(tmp_path: Path, programs: Path) -> None:
    labs = tmp_path / "labs"
    (labs / "gone").mkdir(parents=True)
    (labs / "gone/terraform.tfstate").write_text('{"resources": []}')
    (labs / "empty").mkdir()
    assert sweep(labs, programs).stdout == ""


@pytest.mark.parametrize(("answer", "destroyed"), [("old", True), ("yes", False), ("", False)])
def test_who_confirms_types_the_name_of_the_lab(tmp_path: Path, programs: Path, answer: str, destroyed: bool) -> None:
    labs = tmp_path / "labs"
    make_lab(labs, "old", PAST)
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = subprocess.run(
        [sys.executable, str(SWEEP)],
        env={**os.environ, "LONGFAT_LABS": str(labs), "PATH": f"{programs}:/usr/bin:/bin"},
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert "Type the name of the lab" in done.stdout
    assert (len(called(tmp_path)) == 2) is destroyed
    assert done.returncode == (0 if destroyed else 1)


@pytest.mark.terraform
def test_a_lab_that_terraform_made_is_read_and_destroyed(terraform: Terraform, tmp_path: Path) -> None:
    folder = tmp_path / "labs/lent"
    folder.mkdir(parents=True)
    nics = {"path": {"mac": "52:54:00:00:00:01"}}, {"path": {"mac": "52:54:00:00:00:02"}}
    given = {
        "tags": {"study": "smoke", "owner": "lab", "expires": PAST},
        "links": {"path": {"a": "here", "b": "there"}},
        "hosts": {
            "here": {"role": "sender", "ssh": {"address": "192.0.2.1"}, "nics": nics[0]},
            "there": {"role": "receiver", "ssh": {"address": "192.0.2.2"}, "nics": nics[1]},
        },
    }
    (folder / "lab.tfvars.json").write_text(json.dumps(given))
    data = {"TF_DATA_DIR": str(folder / ".terraform")}
    existing = "terraform/environments/existing"
    terraform.run(existing, "init", f"-backend-config=path={folder / 'terraform.tfstate'}", **data)
    terraform.run(existing, "apply", "-auto-approve", f"-var-file={folder / 'lab.tfvars.json'}", **data)

    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    path = f"{Path(terraform.program).parent}:/usr/bin:/bin"
    done = subprocess.run(
        [sys.executable, str(terraform.infra / "terraform/sweep.py"), "--yes", "--labs", str(tmp_path / "labs")],
        env={**environment, "PATH": path, "TF_CLI_CONFIG_FILE": str(terraform.settings), "CHECKPOINT_DISABLE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("lent: existing, study smoke, owner lab, 1 resources, expired ")
    assert json.loads((folder / "terraform.tfstate").read_text())["resources"] == []
