# SPDX-License-Identifier: Apache-2.0
"""Labs with a stub of Terraform: questions, files that stay, and errors."""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from manifests import refused
from rich.console import Console
from typer.testing import CliRunner

from longfat.backends.hosts import open_backend as open_hosts
from longfat.backends.testbed.folder import lab_folder
from longfat.backends.testbed.inventory import read_inventory
from longfat.backends.testbed.provision import lifecycle, terraform, variables
from longfat.backends.testbed.provision.existing import inventory_of
from longfat.backends.testbed.provision.labs import ENVIRONMENTS, use_lab
from longfat.builds.kernel import KernelBuild
from longfat.cli import app
from longfat.cli import lab as verbs
from longfat.execute.cluster.places import Ssh, read_place
from longfat.system.errors import RigError, StudyError
from longfat.system.locks import hold

STUB = Path(__file__).with_name("stub_terraform.py")
TAGS = {"study": "any", "owner": "me"}
PAST = "2001-01-01T00:00:00Z"
VARIABLES = {"tags": TAGS, "image_url": "/nowhere/image.qcow2", "ssh_public_keys": []}


@dataclass
class Labs:
    """A folder of labs, and a folder for PATH."""

    folder: Path
    programs: Path

    @property
    def calls(self) -> list[list[str]]:
        calls = self.programs / "calls"
        return [line.split() for line in calls.read_text().splitlines()] if calls.exists() else []

    @property
    def called(self) -> list[str]:
        return [words[0] for words in self.calls]

    def program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.programs / name).chmod(0o755)

    def lab(self, name: str, variables: object = VARIABLES) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / "lab.yaml").write_text(json.dumps(variables))
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
    monkeypatch.setattr(variables, "build_disk", lambda say: Path("/nowhere/disk.raw"))
    monkeypatch.setattr(variables, "FOLDER_BYTES", 1000)
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


@pytest.mark.parametrize("environment", ["libvirt", "openstack", "local"])
def test_a_folder_of_labs_that_ssh_cannot_name_is_refused_before_anything_is_made(
    labs: Labs, environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGFAT_LABS", f"{labs.folder}/my labs")
    assert "my labs" in call("up", environment, "--yes", status=2)
    assert not labs.called


@pytest.mark.parametrize(
    ("environment", "text", "keys"),
    [
        ("libvirt", '{"tags": {},\n "hosts" {}}', ["lab.yaml:2:"]),
        ("libvirt", "[]", ["lab.yaml"]),
        ("libvirt", '{"tags": {}, "hosts": {}, "link": {}}', ["image_url: ", "link: "]),
        ("existing", '{"tags": {},\n "hosts" {}}', ["lab.yaml:2:"]),
        ("existing", '{"tag": {}, "hosts": {"a": {"roles": "sender"}, "b": 7}}', ["tag: ", "tags: ", "roles: ", "b: "]),
        ("existing", '{"tags": {}, "hosts": {"a": {"ssh": {"address": [7]}, "b": 1}}}', ["a.b: ", "address: [7]"]),
        ("libvirt", json.dumps(VARIABLES | {"tags": TAGS | {"expires": PAST}}), [PAST]),
        *(
            ("libvirt", json.dumps(VARIABLES | {"tags": TAGS | {"expires": end}}), [f"yaml:1: tags.expires: {end!r}"])
            for end in ("2099-04-05T06:07:08+09:00", "2099-04-05T06:07:08.25Z", "tomorrow", 20990405)
        ),
        ("latitude", "{}", [f"{name}: " for name in ("tags", "project", "site", "plan", "ssh_prefixes")]),
    ],
)
def test_all_wrong_variables_are_named_and_nothing_is_made(
    labs: Labs, environment: str, text: str, keys: list[str]
) -> None:
    (labs.lab(environment) / "lab.yaml").write_text(text)
    output = call("up", environment, "--yes", status=2)
    assert [key for key in keys if key not in output] == []
    assert "apply" not in labs.called


def test_without_a_terminal_nothing_is_made_or_destroyed_unless_told(labs: Labs) -> None:
    folder = labs.lab("libvirt")
    assert '+ some_machine.this["sender"]' in call("up", "libvirt", status=2)
    assert "apply" not in labs.called
    assert names(folder) == {"lab.yaml", "given.tfvars.json", ".terraform"}
    call("up", "libvirt", "--yes")
    assert '- some_machine.this["sender"]' in call("down", "libvirt", status=2)
    assert names(folder) >= {"inventory.json", "known_hosts", "terraform.tfstate"}


def test_only_the_name_of_the_lab_confirms(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    labs.lab("libvirt")
    for typed in ("yes\n", ""):
        monkeypatch.setattr(sys, "stdin", Terminal(typed))
        with pytest.raises(StudyError):
            verbs.up(Console(), "libvirt")
    assert "apply" not in labs.called
    monkeypatch.setattr(sys, "stdin", Terminal("libvirt\n"))
    verbs.up(Console(), "libvirt")
    assert "apply" in labs.called


def test_a_lab_comes_up_once_and_its_inventory_is_written_again(labs: Labs) -> None:
    folder = labs.lab("libvirt")
    assert "next: ./just lab provision libvirt" in call("up", "libvirt", "--yes")
    assert labs.called == ["init", "plan", "show", "apply", "output"]
    assert (folder / "known_hosts").read_text() == "192.0.2.1 ssh-ed25519 AAAA\n192.0.2.2 ssh-ed25519 AAAA\n"
    assert "plan" not in names(folder)
    private = ("terraform.tfstate", "given.tfvars.json", "inventory.json")
    assert {oct((folder / name).stat().st_mode & 0o777) for name in private} == {"0o600"}

    (folder / "inventory.json").write_text("{damaged")
    assert "nothing to do" in call("up", "libvirt", "--yes")
    assert labs.called[5:] == ["init", "plan", "output"]
    assert json.loads((folder / "inventory.json").read_text())["environment"] == "libvirt"
    for other in ("7", "[]", "[" * 100_000):
        (folder / "chosen.json").write_text(other)
        assert "chosen.json: a generated file is damaged" in call("up", "libvirt", "--yes", status=3)


def test_terraform_prints_colours_on_a_terminal_only(labs: Labs, monkeypatch: pytest.MonkeyPatch) -> None:
    labs.lab("libvirt")
    call("up", "libvirt", "--yes")
    monkeypatch.setattr(terraform, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    call("down", "libvirt", "--yes")
    assert [words[0] for words in labs.calls if "-no-color" not in words] == ["apply"]
    assert labs.calls[-1][0] == "apply"


def test_a_lab_that_failed_half_way_keeps_its_state_and_continues(
    labs: Labs, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = labs.lab("mine")
    failing = labs.programs / "apply.fails"
    failing.write_text("quota exceeded")
    assert f"{folder}/terraform.tfstate" in call("up", "libvirt", "--lab", "mine", "--yes", status=3)
    assert "Error: quota exceeded" in capfd.readouterr().err
    assert not (folder / "inventory.json").exists()
    failing.unlink()
    call("up", "libvirt", "--lab", "mine", "--yes")
    assert (folder / "inventory.json").exists()
    failing.write_text("not yours")
    call("down", "--lab", "mine", "--yes", status=3)
    failing.unlink()
    call("down", "--lab", "mine", "--yes")
    assert names(folder) == {"lab.yaml"}


def test_labs_are_listed_and_those_past_their_expiry_swept(labs: Labs, capfd: pytest.CaptureFixture[str]) -> None:
    for name, expires in (("old", "2099-01-01T00:00:00Z"), ("own", None)):
        labs.lab(name, VARIABLES | {"tags": TAGS | {"expires": expires}})
        call("up", "libvirt", "--lab", name, "--yes")
    state = labs.folder / "old/terraform.tfstate"
    state.write_text(state.read_text().replace("2099", "2001"))
    found = re.findall(r"^(old|own): .*(expired|no expiry)", call("list"), re.M)
    assert found == [("old", "expired"), ("own", "no expiry")]
    call("sweep", status=3)
    assert state.exists()
    call("sweep", "--yes")
    assert call("list").startswith("old: not up\nown:")

    labs.lab("late")
    call("up", "libvirt", "--lab", "late", "--yes")
    sound = (labs.folder / "late/terraform.tfstate").read_text()
    (labs.folder / "late/terraform.tfstate").write_text(sound.replace('"me"', '"m\\u001b[7me"'))
    assert "owner m\\x1b[7me" in call("list")
    odd = labs.lab("odd") / "terraform.tfstate"
    odd_tags = '"a study"', json.dumps(TAGS | {"expires": "2031-04-05T06:07:08"})
    for damaged in ("", "{}", "[" * 100_000, sound[:-1], *(sound.replace(json.dumps(TAGS), one) for one in odd_tags)):
        assert damaged != sound
        odd.write_text(damaged)
        for verb in ("up", "down"):
            assert "terraform.tfstate" in call(verb, "libvirt", "--lab", "odd", "--yes", status=3)
        assert "odd: unreadable" in call("list", status=3)
        assert "odd" in call("sweep", "--yes", status=3)


def test_a_local_lab_needs_no_variables_and_leaves_nothing(labs: Labs) -> None:
    call("up", "local", "--yes")
    folder = labs.folder / "local"
    variables = json.loads((folder / "chosen.json").read_text())
    assert (variables["ssh_public_key"], len({host["ssh_port"] for host in variables["hosts"].values()})) == (KEY, 3)
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert oct((folder / "id_ed25519").stat().st_mode & 0o777) == "0o600"
    call("down", "local", "--yes")
    assert names(labs.folder) == set()
    call("down", "local", "--yes")
    folder = labs.lab("local", {"accelerator": "kvm"})
    call("up", "local", "--yes")
    call("down", "local", "--yes")
    assert names(folder) == {"lab.yaml"}, "variables of the user stay"


def test_a_lab_of_another_environment_is_left_alone(labs: Labs) -> None:
    labs.lab("libvirt")
    call("up", "libvirt", "--yes")
    for verb in ("up", "down"):
        call(verb, "local", "--lab", "libvirt", status=2)
    assert labs.called[-1] == "output"


KEY = "ssh-ed25519 AAAA"
WORKERS = {"one": "192.0.2.7", "two": "192.0.2.8"}


@pytest.fixture
def farm(labs: Labs) -> Path:
    """A lab of two machines that exist already, as workers, without Terraform."""
    (labs.programs / "terraform").unlink()
    hosts = {name: {"role": "worker", "ssh": {"address": at, "host_key": KEY}} for name, at in WORKERS.items()}
    folder = labs.lab("farm", {"tags": TAGS, "hosts": hosts})
    call("up", "existing", "--lab", "farm")
    return folder


def test_machines_that_exist_already_become_a_lab_without_terraform_and_are_left_alone(farm: Path) -> None:
    assert [host.role for host in read_inventory(farm).hosts] == ["worker", "worker"]
    assert "farm: existing, study any, owner me, 2 resources, no expiry" in call("list")
    call("down", "--lab", "farm")
    assert names(farm) == {"lab.yaml"}


def test_the_workers_of_a_lab_execute_runs_through_its_own_ssh(farm: Path) -> None:
    place = read_place("farm")
    assert isinstance(place, Ssh) and place.lab == farm
    assert [(host.name, host.login[-1]) for host in place.hosts] == list(WORKERS.items())
    assert all(f"UserKnownHostsFile={farm}/known_hosts" in host.login for host in place.hosts)


def test_a_lab_without_workers_executes_no_runs_in_virtual_time(labs: Labs) -> None:
    labs.lab("libvirt")
    call("up", "libvirt", "--yes")
    with pytest.raises(StudyError, match="no workers"):
        read_place("libvirt")


def test_a_lab_in_use_by_a_study_or_another_command_is_not_destroyed(farm: Path) -> None:
    with use_lab(farm), use_lab(farm):
        call("down", "--lab", "farm", status=3)
    with hold(farm, folder=True):
        call("down", "--lab", "farm", status=3)
        with pytest.raises(RigError), use_lab(farm):
            pass
    assert (farm / "inventory.json").exists()


@pytest.fixture
def playbook(labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab that is up, and a script in place of infra/ansible/provision that notes its arguments."""
    folder = labs.lab("libvirt")
    call("up", "libvirt", "--yes")
    labs.program("provision", f'printf "%s\\n" "$@" >>"{tmp_path}/arguments"; printf "\\0" >>"{tmp_path}/arguments"')
    monkeypatch.setattr(lifecycle, "ANSIBLE", labs.programs)
    built = KernelBuild(Path("/cache/linux-image.deb"), "", "", True)
    monkeypatch.setattr(lifecycle, "build_kernel", lambda target, say: built)
    return folder


def starts(folder: Path) -> list[list[str]]:
    """Return the arguments of every start of the playbook."""
    return [text.split("\n")[:-1] for text in (folder / "arguments").read_text().split("\0")[:-1]]


def test_a_lab_is_prepared_with_its_key_its_settings_and_the_kernel(playbook: Path, tmp_path: Path) -> None:
    (playbook / "id_ed25519").touch()
    (playbook / "settings.yml").write_text("data_plane_mtu: 9000\n")
    call("provision", "libvirt", "--", "-vC", "--diff")
    assert starts(tmp_path) == [
        [
            *(f"{playbook}/inventory.json", str(playbook)),
            *("--private-key", f"{playbook}/id_ed25519"),
            *("--extra-vars", f"@{playbook}/settings.yml"),
            *("--extra-vars", '{"kernel_booted_package": "/cache/linux-image.deb"}'),
            *("-vC", "--diff"),
        ]
    ]
    (playbook / "settings.yml").write_text("kernel_booted_package: ''\n")
    call("provision", "libvirt")
    assert "linux-image" not in str(starts(tmp_path)[1:])


@pytest.mark.usefixtures("playbook")
def test_machines_are_looked_at_before_the_question_and_restart_only_after_it(tmp_path: Path) -> None:
    assert call("provision", "libvirt", status=2).startswith("2 machines restart")
    assert [words[-2:] for words in starts(tmp_path)] == [["--tags", "preflight"]]
    assert "--tags" in call("provision", "libvirt", "--yes", "--", "-Dt", "all", status=2)
    assert "up to 2 machines" in call("provision", "libvirt", "--yes", "--", "--lim", "sender")
    assert [words[-2:] for words in starts(tmp_path)[1:]] == [["--tags", "preflight"], ["--skip-tags", "preflight"]]


def hours_of(folder: Path) -> float:
    """Return the hours from now to the expiry that Terraform was given."""
    end = datetime.fromisoformat(json.loads((folder / "given.tfvars.json").read_text())["tags"]["expires"])
    return (end - datetime.now(UTC)).total_seconds() / 3600


@pytest.mark.parametrize(
    ("words", "hours"),
    [
        (["--max-hours", "5"], 5),
        (["--max-cost", "3", "--hourly-price", "0.5"], 6),
        (["--max-cost", "3", "--hourly-price", "0.5", "--max-hours", "2"], 2),
        (["--max-hours", "8000"], None),
    ],
)
def test_a_ceiling_before_the_expiry_replaces_it_and_stays_until_another_is_stated(
    labs: Labs, words: list[str], hours: float | None
) -> None:
    own = datetime.now(UTC).replace(microsecond=0) + timedelta(days=200)
    folder = labs.lab("libvirt", VARIABLES | {"tags": TAGS | {"expires": f"{own:%FT%TZ}"}})
    hours = hours or (own - datetime.now(UTC)).total_seconds() / 3600
    call("up", "libvirt", "--yes", *words)
    assert hours_of(folder) == pytest.approx(hours, abs=0.1)
    call("up", "libvirt", "--yes")
    assert hours_of(folder) == pytest.approx(hours, abs=0.1)
    call("up", "libvirt", "--yes", "--max-hours", "9")
    assert hours_of(folder) == pytest.approx(9, abs=0.1)


@pytest.mark.parametrize("hours", ["0", "nan", "inf", "8760.1", "1e300"])
def test_a_ceiling_is_more_than_nothing_and_at_most_a_year(labs: Labs, hours: str) -> None:
    labs.lab("libvirt", VARIABLES)
    assert "--max-hours" in call("up", "libvirt", "--yes", "--max-hours", hours, status=2)


@pytest.mark.parametrize("words", [["--max-cost", "3"], []])
def test_a_rented_lab_has_an_end_and_a_highest_cost_a_price(labs: Labs, words: list[str]) -> None:
    call("init", "aws")
    folder = labs.folder / "aws"
    text = (folder / "lab.yaml").read_text()
    (folder / "lab.yaml").write_text(re.sub("  expires.*\n", "", text))
    assert "--max-" in call("up", "aws", "--yes", *words, status=2)
    assert labs.called == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_example_of_each_environment_is_accepted_and_kept(labs: Labs, environment: str) -> None:
    call("init", environment, "--lab", "new")
    folder = labs.folder / "new"
    assert (folder / "lab.yaml").read_text().startswith("# ")
    call("init", environment, "--lab", "new", status=2)
    if environment == "existing":
        assert [host["role"] for host in inventory_of(folder)["hosts"]] == ["worker", "worker"]
    else:
        assert "create 1:" in call("up", environment, "--lab", "new", status=2)


def test_workers_are_written_by_their_addresses(labs: Labs) -> None:
    call("init", "existing", "--lab", "new", "--host", "ann@192.0.2.9:2222", "--host", "192.0.2.8")
    first, second = inventory_of(labs.folder / "new")["hosts"]
    assert first["ssh"] == {"address": "192.0.2.9", "port": 2222, "user": "ann", "host_key": None}
    assert second["ssh"]["address"] == "192.0.2.8"
    assert "--host" in call("init", "existing", "--lab", "b", "--host", "a b", status=2)
    call("init", "existing", "--lab", "same", "--host", "192.0.2.8", "--host", "192.0.2.8:22")
    assert "hosts.worker2.ssh: worker1 has the same" in call("up", "existing", "--lab", "same", status=2)
    assert "--host" in call("init", "libvirt", "--lab", "b", "--host", "a", status=2)


def tunnelled(**links: object) -> dict[str, Any]:
    hosts = {
        name: {"role": name, "ssh": {"address": address, "host_key": KEY}, "nics": {"direct": {}}}
        for name, address in (("sender", "192.0.2.1"), ("receiver", "192.0.2.2"))
    }
    return {"tags": TAGS, "hosts": hosts, "links": links}


def test_a_tunnel_has_two_ends_between_the_addresses_of_ssh(labs: Labs) -> None:
    folder = labs.lab("existing", tunnelled(direct={"tunnel": "vxlan", "round_trip_us": 900}))
    made = inventory_of(folder)
    receiver, sender = (host["nics"][0] for host in made["hosts"])
    assert sender["tunnel"] == {"vni": 4700, "local": "192.0.2.1", "remote": "192.0.2.2"}
    assert receiver["tunnel"] == {"vni": 4700, "local": "192.0.2.2", "remote": "192.0.2.1"}
    assert sender["mac"] != receiver["mac"]
    assert made["paths"] == {"direct": {"round_trip_us": 900}}
    call("up", "existing", "--lab", folder.name, "--yes")
    assert read_inventory(folder).tunnels == {"direct"}


def test_a_tunnel_without_addresses_or_with_a_card_is_refused_with_every_key(labs: Labs) -> None:
    variables = tunnelled(direct={"tunnel": "gre"}, other=7, third={"round_trip_us": 9})
    variables["hosts"]["sender"] |= {"ssh": {"address": "sender.example"}, "nics": {"direct": {"pci": "0000:01:00.0"}}}
    labs.lab("existing", variables)
    output = call("up", "existing", "--yes", status=2)
    keys = "links.direct.tunnel", "links.other", "links.third", "hosts.sender.ssh.address", "hosts.sender.nics.direct"
    assert [key for key in keys if f"{key}: " not in output] == []
    variables = tunnelled(direct={"tunnel": "vxlan"})
    variables["hosts"]["sender"]["ssh"] = {"address": "192.0.2.2", "port": 2222}
    keys = tuple(str(one.key) for one in refused(lambda: inventory_of(labs.lab("same", variables))))
    assert keys == ("hosts.receiver.nics.direct", "hosts.sender.nics.direct")


@pytest.mark.parametrize("environment", ["local", "libvirt"])
def test_workers_are_machines_of_one_kind_without_links(labs: Labs, environment: str) -> None:
    if environment == "libvirt":
        labs.lab(environment)
    call("up", environment, "--workers", "3", "--yes")
    chosen = json.loads((labs.folder / environment / "chosen.json").read_text())
    assert {host["role"] for host in chosen["hosts"].values()} == {"worker"}
    assert len(chosen["hosts"]) == 3 and chosen["links"] == {}
    call("up", environment, "--workers", "3", "--yes")
    assert json.loads((labs.folder / environment / "chosen.json").read_text()) == chosen


def test_another_number_of_workers_needs_another_lab_where_machines_have_ports(labs: Labs) -> None:
    call("up", "local", "--workers", "2", "--yes")
    chosen = (labs.folder / "local/chosen.json").read_text()
    assert "./just lab down local" in call("up", "local", "--workers", "3", "--yes", status=2)
    assert (labs.folder / "local/chosen.json").read_text() == chosen


def test_workers_do_not_end_a_ceiling_and_hosts_are_stated_once(labs: Labs) -> None:
    folder = labs.lab("libvirt")
    call("up", "libvirt", "--workers", "2", "--yes", "--max-hours", "5")
    call("up", "libvirt", "--workers", "4", "--yes")
    assert hours_of(folder) == pytest.approx(5, abs=0.1)
    (folder / "lab.yaml").write_text(json.dumps(VARIABLES | {"hosts": {"one": {"role": "worker"}}}))
    assert "--workers" in call("up", "libvirt", "--workers", "2", "--yes", status=2)


def test_no_lab_is_said_and_an_example_is_no_machine(labs: Labs) -> None:
    assert str(labs.folder) in call("list")
    call("init", "aws")
    assert call("list") == "aws: not up\n"


@pytest.mark.usefixtures("farm")
def test_the_name_of_a_lab_belongs_behind_its_option() -> None:
    assert "hint: --lab farm" in call("down", "farm", status=2)
    assert "./just lab up ENVIRONMENT --lab nonesuch" in call("provision", "--lab", "nonesuch", status=3)


def test_a_lab_of_workers_is_no_lab_of_hosts(farm: Path) -> None:
    with pytest.raises(StudyError, match="has workers"):
        open_hosts("hosts", lambda line: None, farm)


def test_a_lab_without_a_known_key_is_up_and_the_error_begins_with_that(labs: Labs) -> None:
    labs.program("ssh-keygen", "exit 1")
    labs.lab("existing", {"tags": TAGS, "hosts": {"one": {"role": "worker", "ssh": {"address": "192.0.2.7"}}}})
    output = call("up", "existing", status=3)
    assert "inventory.json: the lab is up, but its hosts cannot be reached yet" in output
    assert "one: unknown host key" in output and "then: ./just lab up existing" in output
