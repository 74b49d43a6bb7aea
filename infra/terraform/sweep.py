#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the labs that Terraform made on this machine's account, and destroys those past their expiry, once confirmed.

A lab is a folder with `terraform.tfstate`, and `lab.tfvars.json` with what it was made from. Standard library only:
it must work when nothing else does. Exit status: 0 nothing has expired or all of that is destroyed, else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ENVIRONMENTS = Path(__file__).resolve().parent / "environments"


class UnreadableLab(Exception):
    """The state of a lab cannot be read, so nobody knows what it costs."""


@dataclass(frozen=True)
class Lab:
    """What the state of one lab says of it. ``expires`` is None for a lab that costs nothing."""

    folder: Path
    environment: str
    study: str
    owner: str
    expires: datetime | None
    resources: int


def labs_folder() -> Path:
    """Where labs are kept: $LONGFAT_LABS, else longfat/labs below $XDG_STATE_HOME or ~/.local/state."""
    if chosen := os.environ.get("LONGFAT_LABS"):
        return Path(chosen).absolute()
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local/state") / "longfat/labs"


def read_lab(folder: Path) -> Lab | None:
    """The lab in ``folder``; None when nothing of it is left. Raises UnreadableLab."""
    try:
        state = json.loads((folder / "terraform.tfstate").read_text(encoding="utf-8"))
        managed = [entry for entry in state["resources"] if entry["mode"] == "managed"]
        if not managed:
            return None
        [said] = [
            instance["attributes"]["input"]["value"]
            for entry in managed
            if (entry["type"], entry["name"]) == ("terraform_data", "lab") and "module" not in entry
            for instance in entry["instances"]
        ]
        tags = said["tags"]
        expires = tags["expires"] and datetime.fromisoformat(tags["expires"].replace("Z", "+00:00"))
        count = sum(len(entry["instances"]) for entry in managed)
        return Lab(folder, said["environment"], tags["study"], tags["owner"], expires or None, count)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableLab(f"{folder / 'terraform.tfstate'}: {type(error).__name__}: {error}") from error


def remaining(expires: datetime | None, now: datetime) -> str:
    if expires is None:
        return "no expiry"
    hours = round((expires - now).total_seconds() / 3600)
    return f"{hours} h left" if expires > now else f"expired {-hours} h ago"


def destroy(lab: Lab, terraform: str) -> bool:
    """Destroy what the state of ``lab`` holds. False when Terraform failed; the state is kept then."""
    environment = ENVIRONMENTS / lab.environment
    if not environment.is_dir():
        print(f"{lab.folder.name}: there is no environment {lab.environment} in {ENVIRONMENTS}", file=sys.stderr)
        return False
    base = [terraform, f"-chdir={environment}"]
    init = [*base, "init", "-input=false", "-reconfigure", f"-backend-config=path={lab.folder / 'terraform.tfstate'}"]
    command = [*base, "destroy", "-auto-approve", "-input=false"]
    made_from = lab.folder / "lab.tfvars.json"
    if made_from.exists():
        command.append(f"-var-file={made_from}")
    own = ("TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "TF_LOG", "TF_LOG_PATH")  # no other decides what is swept
    kept = {name: value for name, value in os.environ.items() if name in own or not name.startswith("TF_")}
    variables = {**kept, "TF_DATA_DIR": str(lab.folder / ".terraform")}
    for step in (init, command):
        if subprocess.run(step, env=variables, check=False).returncode != 0:
            print(f"{lab.folder.name}: not destroyed. State kept. Try again: {' '.join(step)}", file=sys.stderr)
            return False
    return True


def confirmed(lab: Lab) -> bool:
    if not sys.stdin.isatty():
        print(f"{lab.folder.name}: not destroyed, as nobody can confirm it here (--yes destroys without asking)")
        return False
    return input(f"{lab.folder.name}: destroy {lab.resources} resources? Type the name of the lab: ") == lab.folder.name


def main() -> int:
    parser = argparse.ArgumentParser(description="List labs, and destroy those past their expiry after confirmation.")
    parser.add_argument("--labs", type=Path, default=labs_folder(), help="folder of the labs (%(default)s)")
    parser.add_argument("--yes", action="store_true", help="destroy what has expired without asking")
    parser.add_argument("--list", action="store_true", help="list only: ask nothing, destroy nothing")
    options = parser.parse_args()

    now = datetime.now(UTC)
    left = 0
    expired = []
    for folder in sorted(path for path in options.labs.absolute().glob("*") if path.is_dir()):
        try:
            lab = read_lab(folder)
        except UnreadableLab as error:
            print(f"{folder.name}: unreadable, look yourself: {error}", file=sys.stderr)
            left += 1
            continue
        if lab:
            facts = f"{lab.environment}, study {lab.study}, owner {lab.owner}, {lab.resources} resources"
            print(f"{folder.name}: {facts}, {remaining(lab.expires, now)}")
            if lab.expires and lab.expires <= now:
                expired.append(lab)
    if options.list:
        return 1 if left else 0
    terraform = next((path for name in ("terraform", "tofu") if (path := shutil.which(name))), None)
    for lab in expired:
        if terraform is None:
            print(f"{lab.folder.name}: neither terraform nor tofu is in PATH", file=sys.stderr)
        if terraform is None or not ((options.yes or confirmed(lab)) and destroy(lab, terraform)):
            left += 1
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
