# SPDX-License-Identifier: Apache-2.0
"""Location of labs, and the names of the files in a lab's folder. Creates nothing."""

from __future__ import annotations

import re
from pathlib import Path

from longfat.system.cache import user_folder
from longfat.system.errors import StudyError

VARIABLES = "lab.yaml"  # variables of the environment, by the user
CHOSEN = "chosen.json"  # default variables, and the expiry from a ceiling under the name EXPIRES
EXPIRES = "expires"
GIVEN = "given.tfvars.json"  # all variables, for Terraform
SETTINGS = "settings.yml"  # variables of the Ansible roles for all machines, by the user
STATE = "terraform.tfstate"
PLAN = "plan"
TERRAFORM_DATA = ".terraform"
INVENTORY = "inventory.json"  # in the form of infra/inventory.schema.json
ANSIBLE_INVENTORY = "hosts.json"
KNOWN_HOSTS = "known_hosts"
KEY = "id_ed25519"

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


def labs_folder() -> Path:
    """Return the absolute path of the folder of labs, which may be missing. Raises RigError."""
    return user_folder("LONGFAT_LABS", "XDG_STATE_HOME", ".local/state", "longfat/labs")


def lab_folder(name: str) -> Path:
    """Return the folder of the lab ``name``, which need not exist. Raises StudyError on an invalid name."""
    if not NAME.fullmatch(name):
        raise StudyError(
            f"invalid name of a lab: {name!r}",
            hint="allowed: a lower-case letter, then lower-case letters, digits and hyphens, 32 in all",
        )
    return labs_folder() / name
