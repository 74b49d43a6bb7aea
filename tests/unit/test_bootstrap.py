# SPDX-License-Identifier: Apache-2.0
"""The script ./just, run in a small copy of the checkout on a machine made of stub programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
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
        command = ["sha256sum", "just", "packages.txt", "requirements.lock"]
        sums = subprocess.run(command, cwd=self.checkout, capture_output=True, text=True, check=True).stdout
        python = (binaries / "python").resolve()
        (self.checkout / ".venv/stamp").write_text(f"{sums}{self.checkout} {python}\n")

    def start(self, *arguments: str, folder: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.checkout / "just", *arguments],
            cwd=folder,
            env={"PATH": str(self.programs), "HOME": str(self.checkout), **variables},
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


@pytest.mark.parametrize("name", ["packages.txt", "requirements.lock"])
def test_a_change_of_what_is_needed_sets_the_machine_up_again(machine: Machine, name: str) -> None:
    machine.needs("nonesuch nonesuch-program # ends a set-up before it makes the environment\n")
    machine.set_up()
    assert machine.start().returncode == 0
    with (machine.checkout / name).open("a") as file:
        file.write("# changed\n")
    assert machine.start().returncode == 3


def with_an_old_python(machine: Machine) -> None:
    script = machine.checkout / "just"
    script.write_text(script.read_text().replace("oldest=3.11", "oldest=3.99"))
    machine.install("python3", "case $1 in --version) echo Python 3.9.2 ;; *) exit 1 ;; esac")


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda machine: None, "apt-get update && apt-get install --no-install-recommends one two"),
        (lambda machine: machine.install("sudo"), "were installed, but their programs are still missing: one two"),
        (lambda machine: machine.install("sudo", "exit 1"), "./just: this command failed: sudo apt-get update"),
        (lambda machine: (machine.programs / "apt-get").unlink(), "(or their equivalents) are missing: one two"),
        (with_an_old_python, "python3 is Python 3.9.2, but Python 3.99 or newer is needed"),
    ],
)
def test_a_set_up_that_cannot_go_on_says_what_to_do(
    machine: Machine, prepare: Callable[[Machine], object], message: str
) -> None:
    machine.needs("one /nonesuch/one # reason\ntwo nonesuch-two # reason\nthree sh # reason\n")
    prepare(machine)
    done = machine.start("test")
    assert (done.returncode, done.stdout, message in done.stderr) == (3, "", True), done.stderr


@pytest.mark.parametrize("kind", ["Linux aarch64", "Darwin arm64", "Darwin x86_64", "FreeBSD amd64"])
def test_another_kind_of_machine_gets_three_lines_with_the_ways_that_work(machine: Machine, kind: str) -> None:
    machine.install("uname", f"echo {kind}")
    first, why, ways = machine.start("reproduce", "_smoke").stderr.splitlines()
    assert first.startswith(f"./just: this is {kind}, ") and "ptrace" in why
    assert all(way in ways for way in ("limactl", "Codespaces", "SSH"))
    assert machine.calls() == ["uname -sm"]


def test_sudo_is_used_only_after_saying_so(machine: Machine) -> None:
    machine.needs("one nonesuch-one # reason\nextra ?/nonesuch/extra # reason\n")
    machine.install("sudo")
    machine.install("apt-cache", "exit 0")
    done = machine.start("test")
    install = "env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends one extra"
    said = [line.partition("running: ")[2] for line in done.stderr.splitlines() if "running: " in line]
    assert said == ["sudo apt-get update", f"sudo {install}"]
    assert [call for call in machine.calls() if call.startswith("sudo")] == said


@pytest.mark.slow
def test_an_environment_that_is_a_link_is_refused_and_what_it_leads_to_is_left_alone(machine: Machine) -> None:
    other = machine.checkout.parent / "other"
    other.mkdir()
    (other / "kept").write_text("")
    (machine.checkout / ".venv").symlink_to(other)
    assert machine.start().returncode == 3
    assert [path.name for path in other.iterdir()] == ["kept"]


def test_the_checkout_is_executed_and_no_file_of_the_current_folder(machine: Machine, tmp_path: Path) -> None:
    source = machine.checkout / "src/longfat"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("")
    (source / "__main__.py").write_text("import json, random, sys\nprint(random.__file__, sys.argv[1:])\n")
    machine.start()
    assert (machine.checkout / ".venv/stamp").exists()
    here = tmp_path / "here"
    here.mkdir()
    for name in ("random", "json", "longfat"):
        (here / f"{name}.py").write_text("raise SystemExit('code of the current folder')\n")
    program = machine.checkout / ".venv/bin/longfat"
    done = subprocess.run([program, "a b"], cwd=here, env={}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(here) not in done.stdout and done.stdout.endswith("['a b']\n")
