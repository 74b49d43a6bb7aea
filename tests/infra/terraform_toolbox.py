# SPDX-License-Identifier: Apache-2.0
"""Terraform on a copy of infra/, with the schema-only provider in the place of the real ones.

Owns how it is started: which program, which settings, which providers. Must not assert anything.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from needs import refuse

from longfat.backends.testbed.connect.placement import place
from longfat.backends.testbed.inventory import read_inventory
from longfat.cli.study import Choices, find_study, resolve
from longfat.system.cache import cache_folder
from longfat.system.errors import RigError

INFRA = Path(__file__).resolve().parents[2] / "infra"
QEMU_STUB = Path(__file__).with_name("qemu_stub.py")
SCHEMA_PROVIDER = INFRA / "terraform/schema-provider"
MODULES = sorted(str(path.parent.relative_to(INFRA)) for path in INFRA.rglob("versions.tf"))
ENVIRONMENTS = [name for name in MODULES if "/environments/" in name]
# Terraform looks for a provider under the registry of its own project.
REGISTRIES = ("registry.terraform.io", "registry.opentofu.org")


def terraform_program() -> str:
    """The program that $LONGFAT_TERRAFORM names, else terraform, else tofu; without any, the test is skipped."""
    for name in filter(None, (os.environ.get("LONGFAT_TERRAFORM"), "terraform", "tofu")):
        if found := shutil.which(name):
            return found
    refuse("terraform", "neither terraform nor tofu is in PATH")


def surroundings() -> dict[str, str]:
    """This process's environment without settings of Terraform's: OpenTofu prints warnings about them before JSON."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TF_")}


def schema_provider() -> Path:
    """The program that serves the schemas, from the cache folder or built now; without Go, the test is skipped."""
    digest = hashlib.sha256()
    for path in sorted(SCHEMA_PROVIDER.rglob("*")):
        if path.suffix in {".go", ".mod", ".sum", ".json"}:
            digest.update(f"{path.relative_to(SCHEMA_PROVIDER)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    folder = cache_folder() / "terraform"
    folder.mkdir(parents=True, exist_ok=True)
    built = folder / f"schema-provider-{digest.hexdigest()[:16]}"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            if not shutil.which("go"):
                refuse("terraform", "go, which builds the schema-only provider, is not in PATH")
            new = built.with_suffix(".new")
            subprocess.run(
                ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(new), "."],
                cwd=SCHEMA_PROVIDER,
                env={**os.environ, "CGO_ENABLED": "0"},
                check=True,
            )
            new.rename(built)
    return built


@dataclass(frozen=True)
class Terraform:
    """One program with settings of its own, and a copy of infra/ that it may write to."""

    program: str
    settings: Path
    infra: Path
    untested: frozenset[str] = frozenset()  # modules whose own tests this program cannot read

    def run(
        self, module: str, *arguments: str, check: bool = True, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder of ``module``; ``variables`` are added to the environment."""
        done = subprocess.run(
            [self.program, *arguments],
            cwd=self.infra / module,
            env={
                **surroundings(),
                "TF_CLI_CONFIG_FILE": str(self.settings),
                "TF_IN_AUTOMATION": "1",
                "TF_INPUT": "0",
                "CHECKPOINT_DISABLE": "1",
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            pytest.fail(
                f"{' '.join(arguments)} in {module}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def messages(self, module: str, *arguments: str) -> list[dict[str, Any]]:
        """What a command says with -json, line by line, whatever its exit status."""
        return [json.loads(line) for line in self.run(module, *arguments, check=False).stdout.splitlines()]


def remove_unreadable_tests(program: str, infra: Path) -> frozenset[str]:
    """The modules whose tests override single instances of a resource, which OpenTofu 1.12 refuses before it does
    anything in their folder: with it, those tests are removed from the copy ``infra``."""
    version = subprocess.run([program, "version"], env=surroundings(), capture_output=True, text=True, check=True)
    if "OpenTofu" not in version.stdout:
        return frozenset()
    unreadable = [path for path in infra.rglob("*.tftest.hcl") if re.search(r'target\s*=.*\["', path.read_text())]
    for path in unreadable:
        path.unlink()
    return frozenset(path.parent.parent.relative_to(infra).as_posix() for path in unreadable)


@functools.cache
def make_terraform(session: Path) -> Terraform:
    """A copy of infra/ with every module initialised from a mirror of the schemas only: one for the whole session."""
    folder = session / "terraform"
    program = terraform_program()
    provider = schema_provider()
    asked = subprocess.run([program, "version", "-json"], env=surroundings(), stdout=subprocess.PIPE, check=True)
    said = json.loads(asked.stdout)
    mirror = folder / "mirror"
    for path in SCHEMA_PROVIDER.glob("schemas/*.json"):
        known = json.loads(path.read_text())
        address = known["source"].partition("/")[2]
        for registry in REGISTRIES:
            place = mirror / registry / address / known["version"] / said["platform"]
            place.mkdir(parents=True)
            (place / f"terraform-provider-{path.stem}_v{known['version']}").symlink_to(provider)
    settings = folder / "settings.tfrc"
    settings.write_text(f'provider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n')
    infra = folder / "infra"
    shutil.copytree(INFRA, infra, ignore=shutil.ignore_patterns(".terraform*"))
    terraform = Terraform(program, settings, infra, remove_unreadable_tests(program, infra))
    for module in MODULES:
        terraform.run(module, "init", "-backend=false", "-no-color")
    return terraform


@pytest.fixture(scope="session")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Terraform:
    """The one of the session."""
    return make_terraform(tmp_path_factory.getbasetemp())


def inventory_schema() -> dict[str, Any]:
    return dict(json.loads((INFRA / "inventory.schema.json").read_text()))


def refusals_of_smoke(inventory: dict[str, Any], folder: Path) -> set[str]:
    """The reasons why runs of the smoke study have no place on the hosts and links of an inventory."""
    (folder / "inventory.json").write_text(json.dumps(inventory))
    hosts, reasons = read_inventory(folder), set()
    for run in resolve(find_study("_smoke"), Choices(), {"backend": "hosts"}).runs:
        try:
            place(run.spec, hosts)
        except RigError as error:
            reasons.add(str(error))
    return reasons


def write_qemu_stub(program: Path, scratch: Path) -> None:
    """Write a program that replaces QEMU by a stub, whose behaviour is set by files in ``scratch``."""
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{QEMU_STUB}" "{scratch}" "$@"\n')
    program.chmod(0o755)


def machines(folder: Path) -> dict[str, int]:
    """Return the process of each machine in a lab's folder of machines."""
    return {path.stem: int(path.read_text()) for path in folder.glob("*.pid")}


def runs(number: int) -> bool:
    """Return whether a process is a running machine."""
    try:
        return QEMU_STUB.name in Path(f"/proc/{number}/cmdline").read_text()
    except FileNotFoundError:
        return False


def end_machines(folder: Path) -> None:
    """Kill the machines that still run."""
    for number in filter(runs, machines(folder).values()):
        os.kill(number, signal.SIGKILL)
