# SPDX-License-Identifier: Apache-2.0
"""The text of ``--on``: the machines that execute the runs. Imports nothing of Dask."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from longfat.backends.testbed.connect.connection import ssh_options
from longfat.backends.testbed.folder import NAME, labs_folder
from longfat.backends.testbed.inventory import WORKER, read_inventory
from longfat.system.cache import HOME
from longfat.system.errors import StudyError

ALLOWED = (
    "the name of a lab (`./just lab list`), slurm, ssh:HOST[:CHECKOUT],..., kubernetes:image=IMAGE[,namespace=NAME],"
    " or tls://HOST:PORT of a Dask scheduler"
)
CHECKOUT = HOME
LAB_CHECKOUT = "longfat"  # on a lab's workers, below the home of the login user
_KEYS = ("image", "namespace")


@dataclass(frozen=True)
class Slurm:
    """The Slurm cluster whose sbatch(1) is installed here."""


@dataclass(frozen=True)
class Host:
    """A host for ssh(1), with the folder of its checkout.

    ``login`` is the command line of ssh up to the command there; if empty, the user's own ssh and the name are used.
    """

    name: str
    checkout: str = str(CHECKOUT)
    login: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ssh:
    """Hosts that ssh(1) reaches without a password, of a ``lab`` or named by the user."""

    hosts: tuple[Host, ...]
    lab: Path | None = None


@dataclass(frozen=True)
class Kubernetes:
    """The cluster of kubectl's current context; pods run the container ``image``."""

    image: str
    namespace: str = ""


@dataclass(frozen=True)
class Scheduler:
    """A Dask scheduler that the user has started, at an address with TLS."""

    address: str


Place = Slurm | Ssh | Kubernetes | Scheduler


def read_place(text: str) -> Place:
    """Read the value of ``--on``. Raises StudyError with the allowed values."""
    kind, _, rest = text.partition(":")
    if text == "slurm":
        return Slurm()
    if kind == "ssh":
        hosts = tuple(_host(part) for part in rest.split(",") if part)
        names = [host.name for host in hosts]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise StudyError(f"{', '.join(twice)} is named twice", where="--on", hint="name each host once")
        if hosts:
            return Ssh(hosts)
    if kind == "kubernetes":
        given = dict(part.partition("=")[::2] for part in rest.split(","))
        if given.get("image") and all(given.get(key) for key in given) and given.keys() <= {*_KEYS}:
            return Kubernetes(**given)
    if re.fullmatch(r"tls://[^/]+:\d+", text):
        return Scheduler(text)
    if NAME.fullmatch(text) and (labs_folder() / text).is_dir():
        return _lab(labs_folder() / text)
    raise StudyError(f"unknown place {text!r}", where="--on", hint=f"allowed: {ALLOWED}")


def _lab(folder: Path) -> Ssh:
    workers = [host for host in read_inventory(folder).hosts if host.role == WORKER]
    if not workers:
        hint = "`--backend hosts` uses its hosts; `./just lab up ENVIRONMENT --workers N` makes workers"
        raise StudyError(f"the lab {folder.name} has no workers", where="--on", hint=hint)
    return Ssh(tuple(Host(host.name, LAB_CHECKOUT, tuple(ssh_options(host, folder))) for host in workers), folder)


def _host(text: str) -> Host:
    name, _, checkout = text.partition(":")
    if not name or name.startswith("-"):
        raise StudyError(f"{name!r} is not a host", where="--on", hint=f"allowed: {ALLOWED}")
    if checkout.startswith("~"):
        raise StudyError(f"{checkout!r} is not a path", where="--on", hint="a path below the home folder has no ~")
    return Host(name, checkout) if checkout else Host(name)
