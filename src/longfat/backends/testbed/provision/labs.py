# SPDX-License-Identifier: Apache-2.0
"""Labs by name: the environment of their machines, and the machines in Terraform's state. Changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from longfat.backends.testbed.folder import INVENTORY, STATE, lab_folder, labs_folder
from longfat.backends.testbed.provision.existing import EXISTING
from longfat.backends.testbed.provision.variables import INFRA
from longfat.study.schema.names import require
from longfat.system.errors import RigError, StudyError
from longfat.system.locks import hold
from longfat.system.store import holder

MODULES = {
    name: INFRA / "terraform/environments" / name for name in ("local", "libvirt", "openstack", "latitude", "aws")
}
ENVIRONMENTS = (*MODULES, EXISTING)
RENTED = frozenset({"openstack", "latitude", "aws"})  # cost money, or an allocation


@dataclass(frozen=True)
class Standing:
    """The existing machines of a lab; ``expires`` is None for machines that may stay."""

    environment: str
    study: str
    owner: str
    expires: datetime | None
    resources: int


@dataclass(frozen=True)
class Lab:
    """A lab, which need not exist. ``environment`` is None if neither the user nor the state names it."""

    name: str
    folder: Path
    environment: str | None
    standing: Standing | None

    def command(self, verb: str) -> str:
        """Return the command for ``verb`` on this lab."""
        unknown = ["ENVIRONMENT"] if verb == "up" else []
        words = ["./just", "lab", verb, *([self.environment] if self.environment else unknown)]
        return " ".join(words + ([] if self.name == self.environment else ["--lab", self.name]))


def open_lab(environment: str | None, name: str | None) -> Lab:
    """Return the lab ``name``, by default the lab with the environment's name.

    Raises StudyError if neither is given or the lab belongs to another environment, RigError if its state is damaged.
    """
    chosen = name or environment
    if not chosen:
        raise StudyError("no lab given", hint="give its environment, or --lab and its name; `./just lab list`")
    if environment and environment not in ENVIRONMENTS and environment in all_labs():
        raise StudyError(f"{environment} is a lab, not an environment", hint=f"--lab {environment}")
    if environment:
        _require_environment(environment)
    folder = lab_folder(chosen)
    standing = read_state(folder)
    if standing and environment and standing.environment != environment:
        raise StudyError(
            f"the lab {chosen} belongs to environment {standing.environment}, not {environment}",
            where=str(folder),
            hint="give a second lab another name with --lab",
        )
    if standing:
        _require_environment(standing.environment)
    return Lab(chosen, folder, environment or (standing.environment if standing else None), standing)


@contextmanager
def use_lab(folder: Path) -> Iterator[None]:
    """Lock the lab in ``folder`` against changes while a study uses it. Raises RigError if a command changes it."""
    with ExitStack() as own:
        try:
            own.enter_context(hold(folder, wait=False, folder=True, shared=True))
        except BlockingIOError:
            raise RigError(f"{holder(folder)} changes the lab {folder.name}", hint="wait until it ends") from None
        except FileNotFoundError:
            raise StudyError(f"unknown lab {folder.name!r}", hint="`./just lab list` shows the labs") from None
        yield


def all_labs() -> list[str]:
    """Return the names of all folders of labs, sorted."""
    folder = labs_folder()
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def read_state(folder: Path) -> Standing | None:
    """Return the existing machines of the lab in ``folder``, or None. Raises RigError if the state is unreadable."""
    path = folder / STATE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        managed = [entry for entry in state["resources"] if entry["mode"] == "managed" and entry["instances"]]
        if not managed:
            return None
        [lab] = [
            entry["instances"][0]["attributes"]["input"]["value"]
            for entry in managed
            if (entry["type"], entry["name"]) == ("terraform_data", "lab") and "module" not in entry
        ]
        tags, count = lab["tags"], sum(len(entry["instances"]) for entry in managed)
        return _standing(lab["environment"], tags, count)
    except FileNotFoundError:
        return _noted(folder / INVENTORY)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RigError(
            f"Terraform's state is unreadable, so the lab's machines are unknown ({type(error).__name__}: {error})",
            where=str(path),
            hint=f"{path.name}.backup is the previous state; the provider's console lists the machines",
        ) from error


def _noted(path: Path) -> Standing | None:
    """Return the machines in the inventory of a lab of existing machines, or None."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["environment"] == EXISTING:
            return _standing(EXISTING, data["tags"], len(data["hosts"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # `up` writes it again
    return None


def _standing(environment: object, tags: Mapping[str, Any], count: int) -> Standing:
    """Return machines by their tags. Raises ValueError, KeyError, TypeError or AttributeError for odd ones."""
    life = datetime.fromisoformat(tags["expires"]) if tags.get("expires") else None
    if life and life.tzinfo is None:
        raise ValueError(f"the expiry {tags['expires']!r} has no time zone")
    return Standing(str(environment), str(tags["study"]), str(tags["owner"]), life, count)


def _require_environment(name: str) -> None:
    require("environment", name, ENVIRONMENTS)
    if not (INFRA / "ansible").is_dir():
        raise RigError("the folder infra is missing", where=str(INFRA), hint="labs need a checkout")
