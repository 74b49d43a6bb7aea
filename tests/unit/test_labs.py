# SPDX-License-Identifier: Apache-2.0
"""Labs with a stub of Terraform: questions, files that stay, and errors."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from longfat.backends.testbed.folder import lab_folder, labs_folder
from longfat.backends.testbed.provision import lifecycle, local
from longfat.backends.testbed.provision.changes import Changes, Price, describe, read_changes
from longfat.backends.testbed.provision.labs import ENVIRONMENTS
from longfat.backends.testbed.provision.terraform import interrupts_for_child
from longfat.builds.kernel import KernelBuild
from longfat.cli import app
from longfat.cli import lab as verbs
from longfat.system.errors import RigError, StudyError

STUB = Path(__file__).with_name("stub_terraform.py")
TAGS = {"study": "any", "owner": "me"}
EXISTING = {"tags": TAGS, "hosts": {}, "links": {}}
PAST, TOMORROW = "2001-01-01T00:00:00Z", "2030-01-02T00:00:00Z"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class Labs:
    """A folder of labs, and a folder for PATH."""

    folder: Path
    programs: Path

    @property
    def called(self) -> list[str]:
        calls = self.programs / "calls"
        return calls.read_text().split() if calls.exists() else []

    def program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.programs / name).chmod(0o755)

    def lab(self, name: str, variables: object = EXISTING) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / "lab.tfvars.json").write_text(json.dumps(variables))
        return folder


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Labs:
    """Labs below ``tmp_path``, with stubs of Terraform, QEMU and ssh-keygen, and no disk."""
    made = Labs(tmp_path / "labs", tmp_path / "programs")
    made.programs.mkdir()
    made.program("terraform", f'exec "{sys.executable}" -I -S "{STUB}" "{made.programs}" "$@"')
    made.program("qemu-system-x86_64", "exit 1")
    key = 'while [ "$1" != -f ]; do shift; done\necho private >"$2"; chmod 600 "$2"\necho ssh-ed25519 AAAA >"$2.pub"'
    made.program("ssh-keygen", key)
    monkeypatch.setenv("LONGFAT_LABS", str(made.folder))
    monkeypatch.setenv("PATH", f"{made.programs}:/usr/bin:/bin")
    monkeypatch.setattr(local, "build_disk", lambda say: Path("/nowhere/disk.raw"))
    monkeypatch.setattr(local, "FOLDER_BYTES", 1000)
    return made


def call(*arguments: str, status: int = 0) -> str:
    """Return the output of `longfat lab`, which ends with ``status``."""
    done = CliRunner().invoke(app, ["lab", *arguments], env={"COLUMNS": "300"})
    assert done.exit_code == status, done.output
    return done.output


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["", "Big", "9lives", "a/b", "..", "x" * 33, "a b"])
def test_an_invalid_name_of_a_lab_is_refused(name: str) -> None:
    with pytest.raises(StudyError):
        lab_folder(name)


def test_labs_are_where_the_environment_variables_place_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGFAT_LABS", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert labs_folder() == Path("/state/longfat/labs")
    monkeypatch.setenv("LONGFAT_LABS", "/elsewhere")
    assert lab_folder("mine") == Path("/elsewhere/mine")


@pytest.mark.parametrize(
    ("environment", "text", "complaints"),
    [
        ("existing", '{"tags": {},\n "hosts" {}}', ["lab.tfvars.json:2:"]),
        ("existing", "[]", ["lab.tfvars.json"]),
        (
            "existing",
            '{"tags": {}, "hosts": {}, "link": {}}',
            ["links: missing", "link: unknown", "did you mean 'links'"],
        ),
        ("latitude", None, [f"{name}: missing" for name in ("tags", "project", "site", "plan", "ssh_prefixes")]),
    ],
)
def test_all_wrong_variables_are_named_and_nothing_is_made(
    labs: Labs, environment: str, text: str | None, complaints: list[str]
) -> None:
    if text is not None:
        (labs.lab(environment) / "lab.tfvars.json").write_text(text)
    output = call("up", environment, "--yes", status=2)
    assert [complaint for complaint in complaints if complaint not in output] == []
    assert labs.called == []


@pytest.mark.parametrize("module", ENVIRONMENTS.values(), ids=lambda path: path.name)
def test_every_variable_has_a_description(module: Path) -> None:
    blocks = "\n".join(path.read_text() for path in module.glob("*.tf")).split('\nvariable "')[1:]
    assert blocks
    assert [block.partition('"')[0] for block in blocks if "\n  description = " not in block] == []


def test_without_a_terminal_nothing_is_made_unless_told(labs: Labs) -> None:
    folder = labs.lab("existing")
    output = call("up", "existing", status=2)
    assert "machine sender: sender, big" in output and '+ some_machine.this["sender"]' in output
    assert "apply" not in labs.called
    assert names(folder) == {"lab.tfvars.json", ".terraform"}


def test_only_the_name_of_the_lab_confirms(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    labs.lab("existing")
    for typed in ("yes\n", ""):
        monkeypatch.setattr(sys, "stdin", Terminal(typed))
        with pytest.raises(StudyError):
            verbs.up(Console(), "existing")
    assert "apply" not in labs.called
    monkeypatch.setattr(sys, "stdin", Terminal("existing\n"))
    verbs.up(Console(), "existing")
    assert "apply" in labs.called


def test_a_lab_comes_up_once_and_its_inventory_is_written_again(labs: Labs) -> None:
    folder = labs.lab("existing")
    assert "next: longfat lab provision existing" in call("up", "existing", "--yes")
    assert labs.called == ["init", "plan", "show", "apply", "output"]
    assert (folder / "known_hosts").read_text() == "192.0.2.1 ssh-ed25519 AAAA\n192.0.2.2 ssh-ed25519 AAAA\n"
    assert "plan" not in names(folder)

    (folder / "inventory.json").write_text("{damaged")
    assert "nothing to do" in call("up", "existing", "--yes")
    assert labs.called[5:] == ["init", "plan", "output"]
    assert json.loads((folder / "inventory.json").read_text())["environment"] == "existing"


@pytest.mark.parametrize("verb", ["init", "plan"])
def test_an_error_of_terraform_is_passed_on_before_anything_is_made(labs: Labs, verb: str) -> None:
    labs.lab("existing")
    (labs.programs / f"{verb}.fails").write_text("wrong credentials")
    output = call("up", "existing", "--yes", status=3)
    assert "Error: wrong credentials" in output and "longfat lab up existing continues" in output
    assert "apply" not in labs.called


def test_a_lab_that_failed_half_way_keeps_its_state_and_continues(
    labs: Labs, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = labs.lab("mine")
    failing = labs.programs / "apply.fails"
    failing.write_text("quota exceeded")
    output = call("up", "existing", "--lab", "mine", "--yes", status=3)
    assert "Error: quota exceeded" in capfd.readouterr().err
    assert f"{folder}/terraform.tfstate" in output and "longfat lab up existing --lab mine" in output
    assert not (folder / "inventory.json").exists()
    failing.unlink()
    call("up", "existing", "--lab", "mine", "--yes")
    assert (folder / "inventory.json").exists()
    failing.write_text("not yours")
    assert "longfat lab down existing --lab mine" in call("down", "--lab", "mine", "--yes", status=3)
    failing.unlink()
    call("down", "--lab", "mine", "--yes")
    assert names(folder) == {"lab.tfvars.json"}


def test_labs_are_listed_and_those_past_their_expiry_swept(labs: Labs, capfd: pytest.CaptureFixture[str]) -> None:
    for name, expires in (("old", "2099-01-01T00:00:00Z"), ("own", None)):
        labs.lab(name, EXISTING | {"tags": TAGS | {"expires": expires}})
        call("up", "existing", "--lab", name, "--yes")
    state = labs.folder / "old/terraform.tfstate"
    state.write_text(state.read_text().replace("2099", "2001"))
    assert "old: existing, study any, owner me, 2 resources, expired" in call("list")
    assert "own: existing, study any, owner me, 2 resources, no expiry" in call("list")
    call("sweep", status=3)
    assert state.exists()
    call("sweep", "--yes")
    assert call("list").startswith("own:")

    odd = labs.lab("odd") / "terraform.tfstate"
    for damaged in ("", '{"resources": [{"mode": "managed", "type": "server", "name": "this", "instances": [{}]}]}'):
        odd.write_text(damaged)
        assert "odd: unreadable" in call("list", status=3)
        assert "odd" in call("sweep", "--yes", status=3)


def test_a_lab_past_its_expiry_is_not_made(labs: Labs) -> None:
    labs.lab("existing", EXISTING | {"tags": TAGS | {"expires": PAST}})
    assert PAST in call("up", "existing", "--yes", status=2)
    assert "apply" not in labs.called


@pytest.mark.parametrize(
    ("rented", "expires", "hourly", "line"),
    [
        (False, None, None, "costs nothing"),
        (True, TOMORROW, None, "price unknown, see the provider's list"),
        (True, TOMORROW, 2.5, "costs 60.00 EUR until the expiry (24.0 h at 2.5 EUR an hour, as you stated)"),
        (False, None, 1.0, "costs 1 EUR an hour, as you stated; without an expiry the cost is unlimited"),
    ],
)
def test_the_cost_is_shown_beforehand(rented: bool, expires: str | None, hourly: float | None, line: str) -> None:
    changes = Changes((), (), datetime.fromisoformat(expires) if expires else None)
    assert line in list(describe(changes, Price(hourly, "EUR"), NOW, rented=rented))


def test_a_plan_is_read_by_its_actions() -> None:
    actions = {"a": "no-op", "b": "create", "c": "delete create", "d": "create delete", "e": "update", "f": "delete"}
    plan = {"resource_changes": [{"address": a, "change": {"actions": how.split()}} for a, how in actions.items()]}
    changes = read_changes(plan)
    assert changes.resources == (("+", "b"), ("-/+", "c"), ("-/+", "d"), ("~", "e"), ("-", "f"))
    assert "replace 2:" in list(describe(changes, Price(None, ""), NOW, rented=False))


def test_a_local_lab_needs_no_variables_and_leaves_nothing(labs: Labs) -> None:
    call("up", "local", "--yes")
    folder = labs.folder / "local"
    variables = json.loads((folder / "chosen.tfvars.json").read_text())
    assert variables["ssh_public_key"] == "ssh-ed25519 AAAA"
    assert len({host["ssh_port"] for host in variables["hosts"].values()}) == 3
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert oct((folder / "id_ed25519").stat().st_mode & 0o777) == "0o600"
    assert "lab local is down" in call("down", "local", "--yes")
    assert names(labs.folder) == set()
    assert "nothing to do" in call("down", "local", "--yes")


def test_variables_of_the_user_stay_and_are_added_to_the_chosen_ones(labs: Labs) -> None:
    folder = labs.lab("local", {"accelerator": "kvm"})
    call("up", "local", "--yes")
    assert names(folder) >= {"chosen.tfvars.json", "id_ed25519"}
    assert "kept in" in call("down", "local", "--yes")
    assert names(folder) == {"lab.tfvars.json"}


def test_chosen_variables_are_renewed_until_machines_exist(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk() -> str:
        return str(json.loads((labs.folder / "local/chosen.tfvars.json").read_text())["image"])

    call("up", "local", status=2)
    monkeypatch.setattr(local, "build_disk", lambda say: Path("/nowhere/newer.raw"))
    call("up", "local", "--yes")
    assert disk() == "/nowhere/newer.raw"
    monkeypatch.setattr(local, "build_disk", lambda say: Path("/nowhere/newest.raw"))
    call("up", "local", "--yes")
    assert disk() == "/nowhere/newer.raw"


def test_a_full_disk_is_an_error_and_not_a_traceback(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes, mode: int = 0) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    folder = labs.lab("existing")
    monkeypatch.setattr(lifecycle, "write_whole", full)
    output = call("up", "existing", "--yes", status=3)
    assert f"{folder}/inventory.json" in output and "No space left on device" in output


def test_without_a_confirmation_nothing_is_destroyed(labs: Labs) -> None:
    folder = labs.lab("existing")
    call("up", "existing", "--yes")
    assert '- some_machine.this["sender"]' in call("down", "existing", status=2)
    assert names(folder) >= {"inventory.json", "known_hosts", "terraform.tfstate"}


def test_a_lab_of_another_environment_is_left_alone(labs: Labs) -> None:
    labs.lab("existing")
    call("up", "existing", "--yes")
    for verb in ("up", "down"):
        assert "belongs to environment existing, not local" in call(verb, "local", "--lab", "existing", status=2)


def test_a_damaged_state_stops_everything(labs: Labs) -> None:
    (labs.lab("existing") / "terraform.tfstate").write_text('{"resources": [')
    for verb in ("up", "down"):
        assert "terraform.tfstate" in call(verb, "existing", "--yes", status=3)
    assert labs.called == []


def test_opentofu_will_do_and_without_both_programs_they_are_named(labs: Labs) -> None:
    labs.lab("existing")
    (labs.programs / "terraform").rename(labs.programs / "tofu")
    call("up", "existing", "--yes")
    (labs.programs / "tofu").unlink()
    assert "neither terraform nor tofu" in call("up", "existing", "--yes", status=3)


def test_two_commands_do_not_work_on_one_lab(labs: Labs) -> None:
    handle = os.open(labs.lab("existing"), os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert "another command" in call("up", "existing", "--yes", status=3)
    os.close(handle)


def test_an_unknown_environment_is_answered_with_the_nearest(labs: Labs) -> None:
    assert "did you mean 'openstack'?" in call("up", "opnstack", status=2)
    assert "no lab given" in call("down", status=2)


def test_an_interrupt_ends_the_program_in_the_foreground_and_its_end_is_awaited(tmp_path: Path) -> None:
    script = f'trap "touch {tmp_path}/ended; exit 7" INT; kill -INT $PPID; kill -INT $$; sleep 5'
    with interrupts_for_child():
        assert subprocess.run(["/bin/sh", "-c", script], check=False).returncode == 7
    assert (tmp_path / "ended").exists()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_unsuitable_folders_are_refused_before_anything_is_made(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "FOLDER_BYTES", 5)
    assert "LONGFAT_LABS" in call("up", "local", "--yes", status=2)
    assert not labs.folder.exists()
    monkeypatch.setenv("LONGFAT_LABS", str(labs.folder / "my labs"))
    assert "LONGFAT_LABS" in call("up", "existing", "--yes", status=2)


def test_ports_in_use_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(set(local.free_ports(2))) == 2
    monkeypatch.setattr(local, "LAST_PORT", local.FIRST_PORT - 1)
    with pytest.raises(RigError):
        list(local.free_ports(1))


@pytest.fixture
def playbook(labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab that is up, and a script in place of infra/ansible/provision that notes its arguments."""
    folder = labs.lab("existing")
    call("up", "existing", "--yes")
    labs.program("provision", f'printf "%s\\n" "$@" >"{tmp_path}/arguments"; . {tmp_path}/then')
    (tmp_path / "then").touch()
    monkeypatch.setattr(lifecycle, "ANSIBLE", labs.programs)
    built = KernelBuild(Path("/cache/linux-image.deb"), "", "", True)
    monkeypatch.setattr(lifecycle, "build_kernel", lambda target, say: built)
    return folder


def test_a_lab_is_prepared_with_its_key_its_settings_and_the_kernel(playbook: Path, tmp_path: Path) -> None:
    (playbook / "id_ed25519").touch()
    (playbook / "settings.yml").write_text("data_plane_mtu: 9000\n")
    call("provision", "existing", "--", "--check", "--diff")
    assert (tmp_path / "arguments").read_text().splitlines() == [
        *(f"{playbook}/inventory.json", str(playbook)),
        *("--private-key", f"{playbook}/id_ed25519"),
        *("--extra-vars", f"@{playbook}/settings.yml"),
        *("--extra-vars", '{"kernel_booted_package": "/cache/linux-image.deb"}'),
        *("--check", "--diff"),
    ]
    call("provision", "--lab", "existing", "--", "--check")
    assert (tmp_path / "arguments").read_text().splitlines()[-1] == "--check"
    (playbook / "settings.yml").write_text("kernel_booted_package: ''\n")
    call("provision", "existing")
    assert "linux-image" not in (tmp_path / "arguments").read_text()


def test_hosts_that_failed_are_named_with_the_next_command(playbook: Path, tmp_path: Path) -> None:
    (tmp_path / "then").write_text('printf "router\\nsender\\n" >"$ANSIBLE_RETRY_FILES_SAVE_PATH/site.retry"; exit 2')
    assert "longfat lab provision existing -- --limit router,sender" in call("provision", "existing", status=3)
    assert not [name for name in names(playbook) if name.startswith(".provision")]
    (tmp_path / "then").write_text("exit 1")
    assert "longfat lab up existing" in call("provision", "existing", status=3)


def test_a_lab_that_is_not_up_cannot_be_prepared(labs: Labs) -> None:
    assert "the lab local is not up" in call("provision", "local", status=3)


@pytest.mark.parametrize("text", ["{", "- a\n- list\n"])
def test_unreadable_settings_are_refused(playbook: Path, text: str) -> None:
    (playbook / "settings.yml").write_text(text)
    assert "settings.yml" in call("provision", "existing", status=2)
