# SPDX-License-Identifier: Apache-2.0
"""The place of labs, and the content of a lab's folder.

Owns only places and names; makes nothing. infra/terraform/sweep.py, which needs no package, has ``labs_folder`` too.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from longfat.errors import StudyError

VARIABLES = "lab.tfvars.json"  # the environment's variables
SETTINGS = "settings.yml"  # variables of the roles, for all machines
STATE = "terraform.tfstate"
PLAN = "plan"
TERRAFORM_DATA = ".terraform"
INVENTORY = "inventory.json"  # after infra/inventory.schema.json
ANSIBLE_INVENTORY = "hosts.json"
KNOWN_HOSTS = "known_hosts"
KEY = "id_ed25519"

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


def labs_folder() -> Path:
    """The folder of labs: ``$LONGFAT_LABS``, else longfat/labs below ``$XDG_STATE_HOME`` or ~/.local/state; absolute.

    Raises StudyError when there is no home folder to fall back on.
    """
    if chosen := os.environ.get("LONGFAT_LABS"):
        return Path(chosen).absolute()
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if state.is_absolute():
        return state / "longfat/labs"
    try:
        return Path.home() / ".local/state/longfat/labs"
    except RuntimeError:
        raise StudyError("there is no home folder for labs", hint="set LONGFAT_LABS to a folder") from None


def lab_folder(name: str) -> Path:
    """The folder of the lab ``name``, which need not exist. Raises StudyError when that is not a valid name."""
    if not NAME.fullmatch(name):
        raise StudyError(
            f"{name!r} is not a valid name of a lab",
            hint="allowed: a lower-case letter, then lower-case letters, digits and hyphens, 32 in all",
        )
    return labs_folder() / name
