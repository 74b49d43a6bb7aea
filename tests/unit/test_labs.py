# SPDX-License-Identifier: Apache-2.0
"""Labs with a stub in the place of Terraform: what is asked, what is kept, and what is said when something is wrong."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console
from stubbed_labs import EXISTING, TAGS, Labs, call, names, stubbed_labs

from longfat.cli import lab as verbs
from longfat.errors import RigError, StudyError
from longfat.testbed.provision import local, work
from longfat.testbed.provision.changes import Changes, Price, describe, read_changes
from longfat.testbed.provision.environments import KNOWN, variables_of
from longfat.testbed.provision.folder import lab_folder, labs_folder
from longfat.testbed.provision.made import made_files, make_file
from longfat.testbed.provision.process import attend_alone
from longfat.testbed.provision.terraform import said_while_applying

TOMORROW = "2030-01-02T00:00:00Z"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Labs:
    return stubbed_labs(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", ["", "Big", "9lives", "a/b", "..", "x" * 33, "a b"])
def test_what_is_no_name_of_a_lab_is_refused(name: str) -> None:
    with pytest.raises(StudyError, match="is not a valid name of a lab"):
        lab_folder(name)


def test_labs_are_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGFAT_LABS", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert labs_folder() == Path("/state/longfat/labs")
    monkeypatch.setenv("LONGFAT_LABS", "/elsewhere")
    assert lab_folder("mine") == Path("/elsewhere/mine")


@pytest.mark.parametrize(
    ("environment", "required"),
    [
        ("existing", {"tags", "hosts", "links"}),
        ("local", {"tags", "folder", "image", "ssh_public_key"}),
        (
            "latitude",
            {"tags", "project", "site", "plan", "data_interface", "ssh_public_key", "ssh_prefixes"},
        ),
    ],
)
def test_what_an_environment_must_be_given_is_read_from_its_module(environment: str, required: set[str]) -> None:
    assert {variable.name for variable in variables_of(KNOWN[environment]) if variable.required} == required


def test_every_variable_has_a_description() -> None:
    declared = [variable for environment in KNOWN.values() for variable in variables_of(environment)]
    assert [variable.name for variable in declared if not variable.description] == []


def test_variables_that_are_missing_are_named_with_where_to_read_and_nothing_is_made(labs: Labs) -> None:
    said = call("up", "latitude", "--yes", status=2)
    assert f"{labs.folder}/latitude/lab.tfvars.json" in said
    assert "infra/terraform/environments/latitude/README.md" in said
    assert "ssh_prefixes: " in said and "tags: " in said
    assert "infra/terraform/environments/latitude/variables.tf the form of each value" in said
    assert not labs.folder.exists() and labs.called == []


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ('{"tags": {},\n "hosts" {}}', ["lab.tfvars.json:2: not JSON"]),
        ("[]", ["not a JSON object"]),
        ('{"tags": {}, "hosts": {}, "link": {}}', ["links: missing", "link: environment", "did you mean links?"]),
    ],
)
def test_variables_that_are_wrong_are_all_named(labs: Labs, text: str, complaints: list[str]) -> None:
    (labs.lab("existing") / "lab.tfvars.json").write_text(text)
    said = call("up", "existing", "--yes", status=2)
    assert [complaint for complaint in complaints if complaint not in said] == []
    assert labs.called == []


def test_without_a_terminal_nothing_is_made_unless_told(labs: Labs) -> None:
    folder = labs.lab("existing")
    said = call("up", "existing", status=2)
    assert "machine sender: sender, big" in said and '+ some_machine.this["sender"]' in said
    assert "--yes does not ask" in said
    assert "apply" not in labs.called
    assert names(folder) == {"lab.tfvars.json", ".terraform"}


def test_only_the_name_of_the_lab_confirms(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    labs.lab("existing")
    for typed in ("yes\n", ""):
        monkeypatch.setattr(sys, "stdin", Terminal(typed))
        with pytest.raises(StudyError, match="nothing was changed"):
            verbs.up(Console(), "existing")
    assert "apply" not in labs.called
    monkeypatch.setattr(sys, "stdin", Terminal("existing\n"))
    verbs.up(Console(), "existing")
    assert "apply" in labs.called


def test_a_lab_comes_up_once_and_its_inventory_is_written_again(labs: Labs) -> None:
    folder = labs.lab("existing")
    said = call("up", "existing", "--yes")
    assert "complete" in said and "Outputs" not in said
    assert "next: ./just lab provision existing" in said
    assert labs.called == ["init", "plan", "show", "apply", "output"]
    assert (folder / "known_hosts").read_text() == "192.0.2.1 ssh-ed25519 AAAA\n"
    assert "plan" not in names(folder)

    (folder / "inventory.json").write_text("{damaged")
    said = call("up", "existing", "--yes")
    assert "nothing to do" in said
    assert labs.called[5:] == ["init", "plan", "output"]
    assert json.loads((folder / "inventory.json").read_text())["environment"] == "existing"


@pytest.mark.parametrize("verb", ["init", "plan"])
def test_what_terraform_says_is_passed_on_before_anything_is_made(labs: Labs, verb: str) -> None:
    labs.lab("existing")
    (labs.programs / f"{verb}.fails").write_text("wrong credentials")
    said = call("up", "existing", "--yes", status=3)
    assert "Error: wrong credentials" in said and "./just lab up existing goes on from there" in said
    assert "apply" not in labs.called


def test_a_lab_that_failed_half_way_keeps_its_state_and_goes_on(labs: Labs) -> None:
    folder = labs.lab("mine")
    (labs.programs / "apply.fails").write_text("quota exceeded")
    said = call("up", "existing", "--lab", "mine", "--yes", status=3)
    assert 'Error: refused (some_machine.this["sender"])\nquota exceeded' in said
    assert f"{folder}/terraform.tfstate" in said
    assert "./just lab up existing --lab mine goes on from there; ./just lab down existing --lab mine removes" in said
    assert not (folder / "inventory.json").exists()
    (labs.programs / "apply.fails").unlink()
    call("up", "existing", "--lab", "mine", "--yes")
    assert (folder / "inventory.json").exists()
    (labs.programs / "apply.fails").write_text("not yours")
    assert "./just lab down existing --lab mine goes on" in call("down", "--lab", "mine", "--yes", status=3)
    (labs.programs / "apply.fails").unlink()
    call("down", "--lab", "mine", "--yes")
    assert names(folder) == {"lab.tfvars.json"}


def test_a_lab_past_its_expiry_is_not_made(labs: Labs) -> None:
    labs.lab("existing", EXISTING | {"tags": TAGS | {"expires": "2001-01-01T00:00:00Z"}})
    assert "2001-01-01T00:00:00Z, has passed" in call("up", "existing", "--yes", status=2)
    assert "apply" not in labs.called


@pytest.mark.parametrize(
    ("environment", "expires", "hourly", "line"),
    [
        ("local", None, None, "costs nothing"),
        ("latitude", TOMORROW, None, "price unknown, see the provider's list"),
        ("latitude", TOMORROW, 2.5, "costs 60.00 EUR until the expiry (24.0 h at 2.5 EUR an hour, as you stated)"),
        ("existing", None, 1.0, "costs 1 EUR an hour, as you stated; without an expiry the cost is unlimited"),
    ],
)  # fmt: skip
def test_the_cost_is_said_beforehand(environment: str, expires: str | None, hourly: float | None, line: str) -> None:
    changes = Changes((), (), datetime.fromisoformat(expires) if expires else None)
    assert line in list(describe(changes, KNOWN[environment], Price(hourly, "EUR"), NOW))


def test_a_plan_is_read_by_what_it_does() -> None:
    def change(address: str, *actions: str) -> dict[str, object]:
        return {"address": address, "change": {"actions": list(actions)}}

    plan = {
        "resource_changes": [
            change("a", "no-op"), change("b", "create"), change("c", "delete", "create"),
            change("d", "create", "delete"),
            change("e", "update"), change("f", "delete"), change("g", "read"),
        ]
    }  # fmt: skip
    changes = read_changes(plan)
    assert changes.resources == (("+", "b"), ("-/+", "c"), ("-/+", "d"), ("~", "e"), ("-", "f"))
    assert "make anew 2:" in list(describe(changes, KNOWN["local"], Price(None, ""), NOW))


def test_a_local_lab_needs_no_variables_and_leaves_nothing(labs: Labs) -> None:
    call("up", "local", "--yes")
    folder = labs.folder / "local"
    variables = json.loads((folder / "lab.tfvars.json").read_text())
    assert variables["ssh_public_key"] == "ssh-ed25519 AAAA"
    assert len({host["ssh_port"] for host in variables["hosts"].values()}) == 3
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert oct((folder / "id_ed25519").stat().st_mode & 0o777) == "0o600"
    assert names(folder) >= {"settings.yml", "inventory.json", "known_hosts", "id_ed25519"}
    assert "lab local is down" in call("down", "local", "--yes")
    assert names(labs.folder) == set()
    assert "nothing to do" in call("down", "local", "--yes")


def test_what_the_user_has_changed_is_kept_and_with_it_the_key_that_it_names(labs: Labs) -> None:
    call("up", "local", "--yes")
    folder = labs.folder / "local"
    variables = json.loads((folder / "lab.tfvars.json").read_text())
    (folder / "lab.tfvars.json").write_text(json.dumps(variables | {"accelerator": "kvm"}))
    assert "kept in" in call("down", "local", "--yes")
    assert names(folder) == {"lab.tfvars.json", "id_ed25519", "id_ed25519.pub", "made.json"}
    call("up", "local", "--yes")
    assert json.loads((folder / "lab.tfvars.json").read_text())["accelerator"] == "kvm"


def test_variables_age_until_something_is_made_from_them(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk() -> str:
        return str(json.loads((labs.folder / "local/lab.tfvars.json").read_text())["image"])

    call("up", "local", status=2)
    monkeypatch.setattr(local, "build_disk", lambda say: Path("/nowhere/newer.raw"))
    call("up", "local", "--yes")
    assert disk() == "/nowhere/newer.raw"
    monkeypatch.setattr(local, "build_disk", lambda say: Path("/nowhere/newest.raw"))
    call("up", "local", "--yes")
    assert disk() == "/nowhere/newer.raw"


def test_a_full_disk_is_an_error_and_not_a_trace(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes, mode: int = 0) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    folder = labs.lab("existing")
    monkeypatch.setattr(work, "write_whole", full)
    said = call("up", "existing", "--yes", status=3)
    assert f"{folder}/inventory.json" in said and "No space left on device" in said
    assert "the same command continues" in said


def test_without_a_confirmation_nothing_is_destroyed(labs: Labs) -> None:
    folder = labs.lab("existing")
    call("up", "existing", "--yes")
    said = call("down", "existing", status=2)
    assert '- some_machine.this["sender"]' in said and "--yes" in said
    assert names(folder) >= {"inventory.json", "known_hosts", "terraform.tfstate"}


def test_a_lab_of_another_environment_is_left_alone(labs: Labs) -> None:
    labs.lab("existing")
    call("up", "existing", "--yes")
    assert "belongs to environment existing, not local" in call("up", "local", "--lab", "existing", status=2)
    assert "belongs to environment existing, not local" in call("down", "local", "--lab", "existing", status=2)


def test_a_damaged_state_stops_everything(labs: Labs) -> None:
    (labs.lab("existing") / "terraform.tfstate").write_text('{"resources": [')
    for verb in ("up", "down"):
        assert "the lab's machines are unknown" in call(verb, "existing", "--yes", status=3)
    assert labs.called == []


def test_neither_terraform_nor_tofu_is_named(labs: Labs) -> None:
    labs.lab("existing")
    (labs.programs / "terraform").rename(labs.programs / "tofu")
    call("up", "existing", "--yes")
    (labs.programs / "tofu").unlink()
    assert "neither terraform nor tofu is in PATH" in call("up", "existing", "--yes", status=3)


def test_two_commands_do_not_work_on_one_lab(labs: Labs) -> None:
    handle = os.open(labs.lab("existing"), os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert "another command is working on the lab existing" in call("up", "existing", "--yes", status=3)
    os.close(handle)


def test_an_unknown_environment_is_answered_with_the_nearest(labs: Labs) -> None:
    assert "did you mean openstack?" in call("up", "opnstack", status=2)
    assert "which lab?" in call("down", status=2)


def test_an_interrupt_is_passed_on_once_and_the_end_awaited(tmp_path: Path) -> None:
    heard = []

    def hear(line: str) -> None:
        heard.append(line.strip())
        if line == "ready\n":
            os.kill(os.getpid(), signal.SIGINT)

    script = 'trap "echo interrupted; exit 7" INT; echo ready; while :; do sleep 0.02; done'
    with pytest.raises(KeyboardInterrupt):
        attend_alone(["/bin/sh", "-c", script], os.environ, hear)
    assert heard == ["ready", "interrupted"]


def test_only_what_matters_of_an_apply_is_told() -> None:
    told: list[str] = []
    for line in ('{"type": "version", "@message": "v"}', '{"type": "apply_start", "@message": "a"}', "panic: oh\n"):
        said_while_applying(line, told.append)
    assert told == ["a", "panic: oh"]


def test_a_made_file_is_known_until_it_is_changed(tmp_path: Path) -> None:
    make_file(tmp_path / "a", b"1")
    make_file(tmp_path / "b", b"2")
    (tmp_path / "b").write_text("3")
    assert made_files(tmp_path) == (tmp_path / "a",)


def test_a_path_too_long_for_sockets_is_refused_before_anything_is_built(
    labs: Labs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "FOLDER_BYTES", 5)
    assert "name another folder for labs with LONGFAT_LABS" in call("up", "local", "--yes", status=2)
    assert not labs.folder.exists()


def test_ports_that_are_taken_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = list(local.free_ports(2))
    assert len(set(ports)) == 2
    monkeypatch.setattr(local, "LAST_PORT", local.FIRST_PORT - 1)
    with pytest.raises(RigError, match="no free port"):
        list(local.free_ports(1))
