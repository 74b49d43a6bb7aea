# SPDX-License-Identifier: Apache-2.0
"""The work on a lab: it is planned and made, given its inventory, prepared, removed.

Owns the order of the steps, and the files that each leaves in the lab's folder. Must not ask the user: the caller does
so between two steps.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from longfat.builds.kernel import build_kernel
from longfat.builds.kernel_targets import X86_64
from longfat.errors import RigError, StudyError
from longfat.files import write_whole
from longfat.locks import held
from longfat.testbed.provision.environments import INFRA, Environment, find_environment
from longfat.testbed.provision.folder import (
    ANSIBLE_INVENTORY,
    INVENTORY,
    KEY,
    KNOWN_HOSTS,
    PLAN,
    SETTINGS,
    STATE,
    TERRAFORM_DATA,
    VARIABLES,
    lab_folder,
)
from longfat.testbed.provision.local import prepare_local
from longfat.testbed.provision.made import NOTES, OWNERS, made_files
from longfat.testbed.provision.process import attend
from longfat.testbed.provision.state import Standing, read_state
from longfat.testbed.provision.terraform import Terraform, find_program
from longfat.testbed.provision.variables import read_variables

ANSIBLE = INFRA / "ansible"
KERNEL = "kernel_booted_package"
OURS = (PLAN, INVENTORY, ANSIBLE_INVENTORY, KNOWN_HOSTS, STATE, f"{STATE}.backup")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Lab:
    """A lab by its name. ``environment`` is None where neither the user nor the state names it."""

    name: str
    folder: Path
    environment: Environment | None
    standing: Standing | None

    def command(self, verb: str) -> str:
        """How the user starts ``verb`` on this lab."""
        environment = f" {self.environment.name}" if self.environment else ""
        named = self.environment is None or self.name != self.environment.name
        return f"./just lab {verb}{environment}{f' --lab {self.name}' if named else ''}"


def open_lab(environment: str | None, name: str | None) -> Lab:
    """The lab ``name``, which is by default the environment's; it need not exist.

    Raises StudyError when neither is given or the lab is of another environment, RigError when its state is damaged.
    """
    chosen = name or environment
    if not chosen:
        raise StudyError("which lab?", hint="give its environment, or --lab and its name; ./just lab list shows them")
    stated = find_environment(environment) if environment else None
    folder = lab_folder(chosen)
    standing = read_state(folder)
    if standing and stated and standing.environment != stated.name:
        raise StudyError(
            f"the lab {chosen} belongs to environment {standing.environment}, not {stated.name}",
            where=str(folder),
            hint="give a second lab another name with --lab",
        )
    return Lab(chosen, folder, stated or (find_environment(standing.environment) if standing else None), standing)


@contextmanager
def files_of(lab: Lab) -> Iterator[None]:
    """Raise RigError when a file of the lab cannot be written or read, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise RigError(
            f"a file of the lab {lab.name} cannot be used: {error.strerror}",
            where=str(error.filename or lab.folder),
            hint="once that is fixed, the same command continues; Terraform's state is kept",
        ) from error


@contextmanager
def alone(lab: Lab) -> Iterator[None]:
    """Hold the lab for one command. Raises RigError when another one works on it."""
    if not lab.folder.exists():
        yield
        return
    with ExitStack() as own:
        try:
            own.enter_context(held(lab.folder, wait=False, folder=True))
        except BlockingIOError:
            raise RigError(f"another command is working on the lab {lab.name}", hint="wait until it ends") from None
        yield


def ready_terraform(lab: Lab, again: str, say: Say) -> Terraform:
    """Terraform, initialised for the lab, whose environment is known. Raises RigError."""
    assert lab.environment is not None
    terraform = Terraform(find_program(), lab.environment, lab.folder, again)
    say(f"terraform: lab {lab.name} in {lab.folder}")
    terraform.initialise()
    return terraform


def prepare(lab: Lab, say: Say) -> None:
    """Write the lab's missing variables where they can be chosen, and check them.

    Raises StudyError when they are missing or wrong, RigError when a program or the disk is.
    """
    assert lab.environment is not None
    find_program()
    if re.search(r"\s", str(lab.folder)):
        raise StudyError("ssh takes no path with a blank", where=str(lab.folder), hint="name another with LONGFAT_LABS")
    if lab.environment.name == "local":
        prepare_local(lab.folder, say)
    read_variables(lab.folder / VARIABLES, lab.environment)


@contextmanager
def no_plan_left(lab: Lab) -> Iterator[None]:
    """Remove the plan in the end: it holds the values of all variables, and ages."""
    try:
        yield
    finally:
        (lab.folder / PLAN).unlink(missing_ok=True)


def note_inventory(lab: Lab, inventory: dict[str, Any]) -> None:
    """Write the inventory and, from it, known_hosts. Raises RigError when a host's key is not known."""
    write_whole(lab.folder / INVENTORY, json.dumps(inventory, indent=2) + "\n", OWNERS)
    program = ANSIBLE / "lab_inventory.py"
    done = subprocess.run(
        [sys.executable, program, lab.folder / INVENTORY, lab.folder],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise RigError(
            f"the lab is up, but its hosts cannot be reached yet:\n{done.stderr.strip()}",
            where=str(lab.folder / INVENTORY),
            hint=f"once that is fixed: {lab.command('up')}",
        )


def provision(lab: Lab, options: Sequence[str], say: Say) -> None:
    """Prepare the hosts with the roles of infra/ansible.

    Raises RigError when there is no inventory, the kernel cannot be built or a host could not be prepared, StudyError
    when the lab's settings cannot be read.
    """
    if not (lab.folder / INVENTORY).exists():
        raise RigError(f"the lab {lab.name} is not up", where=str(lab.folder / INVENTORY), hint=lab.command("up"))
    argv: list[str | Path] = [ANSIBLE / "provision", lab.folder / INVENTORY, lab.folder]
    if (lab.folder / KEY).exists():
        argv += ["--private-key", lab.folder / KEY]
    settings = _settings(lab.folder / SETTINGS)
    if settings is not None:
        argv += ["--extra-vars", f"@{lab.folder / SETTINGS}"]
    if KERNEL not in (settings or {}):
        argv += ["--extra-vars", json.dumps({KERNEL: str(build_kernel(X86_64, say=say).path)})]
    with tempfile.TemporaryDirectory(prefix=".provision-", dir=lab.folder) as scratch:
        retry = {"ANSIBLE_RETRY_FILES_ENABLED": "1", "ANSIBLE_RETRY_FILES_SAVE_PATH": scratch}
        status = attend([*argv, *options], {**os.environ, **retry})
        failed = ",".join(line for path in Path(scratch).glob("*.retry") for line in path.read_text().split())
    if failed:
        raise RigError(
            f"not prepared: {failed}; the reason is above",
            hint=f"once that is fixed: {lab.command('provision')} -- --limit {failed}",
        )
    if status != 0:
        raise RigError(
            f"infra/ansible/provision ended with exit status {status}; the reason is above",
            hint=f"if the inventory is damaged, {lab.command('up')} writes it again",
        )


def remove_traces(lab: Lab) -> tuple[str, ...]:
    """Remove what was made in the folder of a lab that is destroyed; returns the names of the files that are kept.

    The key is kept as long as the variables are: they may name it.
    """
    made = made_files(lab.folder)
    if (lab.folder / VARIABLES).exists() and lab.folder / VARIABLES not in made:
        made = tuple(path for path in made if path.stem != KEY)
    for path in [*(lab.folder / name for name in OURS), *made]:
        path.unlink(missing_ok=True)
    shutil.rmtree(lab.folder / TERRAFORM_DATA, ignore_errors=True)
    if not made_files(lab.folder):
        (lab.folder / NOTES).unlink(missing_ok=True)
    kept = tuple(sorted(path.name for path in lab.folder.iterdir() if path.name != NOTES))
    if not kept:
        lab.folder.rmdir()
    return kept


def _settings(path: Path) -> dict[str, Any] | None:
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise StudyError(f"the lab's settings cannot be read: {error}", where=str(path)) from error
    if settings is not None and not isinstance(settings, dict):
        raise StudyError("the lab's settings are not a mapping of names to values", where=str(path))
    return settings or {}
