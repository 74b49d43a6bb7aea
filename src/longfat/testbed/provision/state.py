# SPDX-License-Identifier: Apache-2.0
"""The machines in Terraform's state. Must not change anything."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from longfat.errors import RigError
from longfat.testbed.provision.folder import STATE


@dataclass(frozen=True)
class Standing:
    """A lab of which something is there: its environment, and how many resources."""

    environment: str
    resources: int


def read_state(folder: Path) -> Standing | None:
    """The existing lab in ``folder``, or None. Raises RigError when the state cannot be read."""
    path = folder / STATE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        managed = [entry for entry in state["resources"] if entry["mode"] == "managed" and entry["instances"]]
        if not managed:
            return None
        [said] = [
            entry["instances"][0]["attributes"]["input"]["value"]
            for entry in managed
            if (entry["type"], entry["name"]) == ("terraform_data", "lab") and "module" not in entry
        ]
        return Standing(str(said["environment"]), sum(len(entry["instances"]) for entry in managed))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RigError(
            f"Terraform's state cannot be read, so the lab's machines are unknown ({type(error).__name__}: {error})",
            where=str(path),
            hint=f"{path.name}.backup next to it is the previous state; the provider's console shows what runs",
        ) from error
