# SPDX-License-Identifier: Apache-2.0
"""Terraform or OpenTofu at work on one lab: its state and everything else it keeps is in the lab's folder.

Owns command lines and the messages of failures. Must not decide what is done, nor ask anybody.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.errors import RigError
from longfat.testbed.provision.environments import Environment
from longfat.testbed.provision.folder import PLAN, STATE, TERRAFORM_DATA, VARIABLES
from longfat.testbed.provision.process import attend_alone
from longfat.tools import environment_without

PROGRAMS = ("terraform", "tofu")
TOLD = {"apply_start", "apply_progress", "apply_complete", "apply_errored", "provision_progress", "change_summary"}
# Where a user's providers come from, and what is logged; all else of TF_ would change what is done, or where.
OWN = ("TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "TF_LOG", "TF_LOG_PATH")
CHANGES = 2  # exit status of plan -detailed-exitcode


def find_program() -> str:
    """The path of terraform, else of tofu. Raises RigError when neither is in PATH."""
    for name in PROGRAMS:
        if found := shutil.which(name):
            return found
    raise RigError(
        "neither terraform nor tofu is in PATH",
        hint="https://developer.hashicorp.com/terraform/install or https://opentofu.org/docs/intro/install",
    )


def said_while_applying(line: str, say: Callable[[str], None]) -> None:
    """Report the essence of one line of ``apply -json``; a line of another form is reported unchanged.

    The form: https://developer.hashicorp.com/terraform/internals/machine-readable-ui
    """
    try:
        event = json.loads(line)
        kind, message = event["type"], str(event["@message"])
    except (ValueError, KeyError, TypeError):
        say(line.rstrip())
        return
    if kind == "diagnostic":
        diagnostic = event["diagnostic"]
        where = f" ({diagnostic['address']})" if diagnostic.get("address") else ""
        say(f"{message}{where}" + (f"\n{diagnostic['detail']}" if diagnostic.get("detail") else ""))
    elif kind in TOLD:
        say(message)


@dataclass(frozen=True)
class Terraform:
    """A program, an environment and a lab's folder. ``again`` names the command to continue after a failed step."""

    program: str
    environment: Environment
    folder: Path
    again: str

    def initialise(self) -> None:
        """Make providers and state ready. Raises RigError with Terraform's own message."""
        self._ask("init", "-input=false", "-no-color", "-reconfigure", f"-backend-config=path={self.folder / STATE}")

    def plan(self, *, destroy: bool = False) -> dict[str, Any] | None:
        """Plan into the lab's folder and give the plan as Terraform shows it; None when there is nothing to do.

        Raises RigError with Terraform's own message.
        """
        options = ["-input=false", "-no-color", "-detailed-exitcode", f"-out={self.folder / PLAN}"]
        options += ["-destroy"] if destroy else []
        if self._ask("plan", *options, *self._variables(), fine=(0, CHANGES)).returncode == 0:
            return None
        return self._json("show", "-json", "-no-color", str(self.folder / PLAN))

    def apply(self, say: Callable[[str], None]) -> None:
        """Carry out the plan in the lab's folder; ``say`` receives Terraform's messages on the way.

        Raises RigError; Terraform has given the reason, and has kept the state.
        """
        argv = self._argv("apply", "-input=false", "-json", str(self.folder / PLAN))
        status = attend_alone(argv, self._environment(), lambda line: said_while_applying(line, say))
        if status != 0:
            raise RigError(
                f"terraform apply ended with exit status {status}; the reason is above. The state has what it made",
                where=str(self.folder / STATE),
                hint=self.again,
            )

    def inventory(self) -> dict[str, Any]:
        """The lab's inventory. Raises RigError."""
        return self._json("output", "-json", "-no-color", "inventory")

    def _variables(self) -> list[str]:
        path = self.folder / VARIABLES
        return [f"-var-file={path}"] if path.exists() else []

    def _json(self, *arguments: str) -> dict[str, Any]:
        return dict(json.loads(self._ask(*arguments).stdout))

    def _ask(self, *arguments: str, fine: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self._argv(*arguments), env=self._environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode not in fine:
            said = f"{done.stdout}\n{done.stderr}" if arguments[0] == "plan" else done.stderr or done.stdout
            raise RigError(
                f"terraform {arguments[0]} ended with exit status {done.returncode}:\n{said.strip()}\n"
                f"this changed nothing; the existing machines are in {self.folder / STATE}",
                hint=self.again,
            )
        return done

    def _argv(self, *arguments: str) -> list[str]:
        return [self.program, f"-chdir={self.environment.folder}", *arguments]

    def _environment(self) -> dict[str, str]:
        return {
            **environment_without("TF_", OWN),
            "TF_DATA_DIR": str(self.folder / TERRAFORM_DATA),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
        }
