# SPDX-License-Identifier: Apache-2.0
"""The script ./just, run in a small copy of the checkout on a machine made of stub programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What the script itself calls, and what Debian's essential packages always bring.
ESSENTIAL = ["basename", "cat", "dirname", "env", "flock", "id", "mv", "chmod", "readlink", "sh", "sha256sum"]
STUB = '#!/bin/sh\necho "$(basename "$0")" "$@" >>{log}\n{body}\n'
PRESENT = "python3-venv module:json # the tests never make an environment\n"


@dataclass
class Machine:
    """A checkout in a folder of its own and the only programs that are on its PATH."""

    checkout: Path
    programs: Path
    log: Path

    def needs(self, packages: str) -> None:
        (self.checkout / "packages.txt").write_text(packages)

    def install(self, name: str, body: str = "") -> None:
        path = self.programs / name
        path.unlink(missing_ok=True)
        path.write_text(STUB.format(log=self.log, body=body))
        path.chmod(0o755)

    def set_up(self) -> None:
        """Put a stub of just and its stamp where a finished set-up leaves them."""
        binaries = self.checkout / ".venv/bin"
        binaries.mkdir(parents=True)
        (binaries / "python").symlink_to("/bin/sh")
        summary = 'case "$*" in *--summary) echo check test; exit ;; esac\n'
        for name, first in (("just", summary), ("longfat", "")):
            (binaries / name).write_text(f'#!/bin/sh\n{first}printf "%s\\n" {name} "$@"\n')
            (binaries / name).chmod(0o755)
        sums = subprocess.run(
            ["sha256sum", "just", "packages.txt", "requirements.lock"],
            cwd=self.checkout,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        python = (binaries / "python").resolve()
        (self.checkout / ".venv/stamp").write_text(f"{sums}{self.checkout} {python}\n")

    def start(self, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.checkout / "just", *arguments],
            cwd=folder,
            env={"PATH": str(self.programs), "HOME": str(self.checkout)},
            capture_output=True,
            text=True,
        )

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A Debian machine whose normal user has neither root nor sudo."""
    machine = Machine((tmp_path / "checkout").resolve(), tmp_path / "programs", tmp_path / "log")
    machine.checkout.mkdir()
    machine.programs.mkdir()
    shutil.copy(ROOT / "just", machine.checkout)
    (machine.checkout / "requirements.lock").write_text("")
    machine.needs(PRESENT)
    for name in ESSENTIAL:
        found = shutil.which(name)
        assert found is not None
        (machine.programs / name).symlink_to(found)
    (machine.programs / "python3").symlink_to(os.path.realpath(sys.executable))
    machine.install("id", "case $1 in -u) echo 1000 ;; *) echo somebody ;; esac")
    machine.install("apt-get")
    machine.install("apt-cache", "exit 100")
    return machine


@pytest.mark.parametrize(
    ("given", "received"),
    [
        (("plan", "a study", "--only", ""), ["longfat", "plan", "a study", "--only", ""]),
        (("test", "-k", "a b"), ["just", "--justfile", "CHECKOUT/Justfile", "test", "-k", "a b"]),
        (("--list",), ["just", "--justfile", "CHECKOUT/Justfile", "--list"]),
        ((), ["longfat", "--help"]),
    ],
)
def test_recipes_go_to_just_and_all_other_names_to_longfat(
    machine: Machine, given: tuple[str, ...], received: list[str]
) -> None:
    machine.set_up()
    done = machine.start(*given)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [text.replace("CHECKOUT", str(machine.checkout)) for text in received]
    assert machine.calls() == []


def test_a_command_keeps_the_folder_of_the_user_and_knows_the_checkout(machine: Machine, tmp_path: Path) -> None:
    machine.set_up()
    (machine.checkout / ".venv/bin/longfat").write_text('#!/bin/sh\necho "$(pwd -P)|$LONGFAT_ROOT|$*"\n')
    here = tmp_path / "a b"
    here.mkdir()
    done = machine.start("plan", "./mine", "--results", "here", folder=here)
    assert done.stdout == f"{here}|{machine.checkout}|plan ./mine --results here\n"


def test_the_version_is_that_of_longfat_too(machine: Machine) -> None:
    machine.set_up()
    done = machine.start("--version")
    assert done.stdout.splitlines()[:3] == ["longfat", "--version", "just"]


def test_a_second_start_takes_less_than_half_a_second(machine: Machine) -> None:
    machine.set_up()
    before = os.times()
    machine.start("--version")
    after = os.times()
    assert sum(after[2:4]) - sum(before[2:4]) < 0.5  # of the CPU: others may keep it from us


@pytest.mark.parametrize("name", ["packages.txt", "requirements.lock"])
def test_a_change_of_what_is_needed_sets_the_machine_up_again(machine: Machine, name: str) -> None:
    stop_before_environment(machine)
    machine.set_up()
    with (machine.checkout / name).open("a") as file:
        file.write("nonesuch nonesuch-program # only in this test\n")
    assert "--help" not in machine.start().stdout


def test_a_moved_checkout_sets_the_machine_up_again(machine: Machine) -> None:
    machine.set_up()
    machine.needs("nonesuch nonesuch-program # only in this test\n")
    moved = machine.checkout.rename(machine.checkout.with_name("moved"))
    assert "--help" not in Machine(moved, machine.programs, machine.log).start().stdout


@pytest.mark.parametrize(
    ("sudo", "apt", "message"),
    [
        (None, True, "apt-get update && apt-get install --no-install-recommends one two"),
        ("", True, "were installed, but their programs are still missing: one two"),
        ("exit 1", True, "./just: this command failed: sudo apt-get update"),
        (None, False, "these Debian packages (or their equivalents) are missing: one two"),
    ],
)
def test_a_set_up_that_cannot_go_on_says_what_to_do(
    machine: Machine, sudo: str | None, apt: bool, message: str
) -> None:
    machine.needs("one /nonesuch/one # reason\ntwo nonesuch-two # reason\nthree sh # reason\n")
    if sudo is not None:
        machine.install("sudo", sudo)
    if not apt:
        (machine.programs / "apt-get").unlink()
    done = machine.start("test")
    assert (done.returncode, message in done.stderr) == (3, True), done.stderr


def test_sudo_is_used_only_after_saying_so(machine: Machine) -> None:
    machine.needs("one nonesuch-one # reason\nextra ?/nonesuch/extra # reason\n")
    machine.install("sudo")
    machine.install("apt-cache", "exit 0")
    done = machine.start("test")
    install = "env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends one extra"
    said = [line.partition("running: ")[2] for line in done.stderr.splitlines() if "running: " in line]
    assert said == ["sudo apt-get update", f"sudo {install}"]
    assert [call for call in machine.calls() if call.startswith("sudo")] == said


def test_what_is_only_wanted_does_not_ask_a_normal_user_for_root(machine: Machine) -> None:
    machine.needs(f"{PRESENT}extra ?/nonesuch/extra # reason\n")
    machine.install("sudo")
    stop_before_environment(machine)
    assert "making the virtual environment" in machine.start().stderr
    assert "sudo" not in " ".join(machine.calls())


def test_root_goes_on_without_a_wanted_package_that_the_archives_lack(machine: Machine) -> None:
    machine.needs(f"{PRESENT}extra ?/nonesuch/extra # reason\n")
    machine.install("id", "echo 0")
    stop_before_environment(machine)
    done = machine.start()
    assert "./just: extra is not in this machine's archives: going on without it" in done.stderr
    assert "making the virtual environment" in done.stderr
    assert not any("install" in call for call in machine.calls())


def test_a_python_that_is_too_old_is_named_with_what_is_needed(machine: Machine) -> None:
    script = machine.checkout / "just"
    script.write_text(script.read_text().replace("oldest=3.11", "oldest=3.99"))
    machine.install("python3", "case $1 in --version) echo Python 3.9.2 ;; *) exit 1 ;; esac")
    done = machine.start("test")
    assert done.returncode == 3
    assert "python3 is Python 3.9.2, but Python 3.99 or newer is needed" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_checkout_that_is_not_ones_own_and_not_set_up_is_refused(machine: Machine) -> None:
    machine.checkout.chmod(0o555)
    done = machine.start("test")
    machine.checkout.chmod(0o755)
    assert done.returncode == 3
    assert "is not set up, and somebody may not write there" in done.stderr


@pytest.mark.slow
def test_an_environment_that_is_a_link_is_refused_and_what_it_leads_to_is_left_alone(machine: Machine) -> None:
    other = machine.checkout.parent / "other"
    other.mkdir()
    (other / "kept").write_text("")
    (machine.checkout / ".venv").symlink_to(other)
    done = machine.start()
    assert done.returncode == 3
    assert ".venv is a link, and making the environment would empty its target" in done.stderr
    assert [path.name for path in other.iterdir()] == ["kept"]


def test_an_environment_uses_the_package_from_the_checkout(machine: Machine) -> None:
    source = machine.checkout / "src/longfat"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("")
    (source / "__main__.py").write_text("import sys\nprint('longfat got', sys.argv[1:])\n")
    machine.start()
    done = subprocess.run(
        [machine.checkout / ".venv/bin/longfat", "a b", "c"],
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "longfat got ['a b', 'c']\n"
    assert (machine.checkout / ".venv/stamp").exists()


def test_no_file_of_the_current_folder_is_executed(machine: Machine, tmp_path: Path) -> None:
    source = machine.checkout / "src/longfat"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("")
    (source / "__main__.py").write_text("import json, random, sys\nprint(random.__file__)\n")
    machine.start()
    here = tmp_path / "here"
    here.mkdir()
    for name in ("random", "json", "longfat"):
        (here / f"{name}.py").write_text("raise SystemExit('code of the current folder')\n")
    program = machine.checkout / ".venv/bin/longfat"
    done = subprocess.run([program], cwd=here, env={}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(here) not in done.stdout


def test_the_tools_of_developers_come_with_the_first_recipe_that_needs_them(machine: Machine) -> None:
    just = shutil.which("just")
    assert just is not None
    shutil.copy(ROOT / "Justfile", machine.checkout)
    lock = machine.checkout / "requirements-dev.lock"
    lock.write_text("one==1\n")
    machine.set_up()
    machine.install("python")
    environment = {"PATH": str(machine.programs)}
    (machine.checkout / ".venv/bin/python").unlink()

    def installs() -> int:
        command = [just, "--justfile", machine.checkout / "Justfile", "development"]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return sum(call.endswith("--require-hashes --requirement requirements-dev.lock") for call in machine.calls())

    assert installs() == 1
    assert installs() == 1
    lock.write_text("one==2\n")
    assert installs() == 2


def stop_before_environment(machine: Machine) -> None:
    """Let the script end where it would make the environment."""
    script = machine.checkout / "just"
    text = script.read_text()
    assert '    "$python" -m venv --clear "$venv" ||' in text
    script.write_text(text.replace('    "$python" -m venv --clear "$venv" ||', "    exit 9\n    true ||"))
