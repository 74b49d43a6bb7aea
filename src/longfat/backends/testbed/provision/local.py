# SPDX-License-Identifier: Apache-2.0
"""Default variables of a lab of the environment ``local``: key, ports and disk."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from longfat.backends.testbed.folder import CHOSEN, KEY
from longfat.backends.testbed.inventory import WORKER
from longfat.backends.testbed.provision.variables import owner
from longfat.builds.disk import build_disk
from longfat.builds.packages import require_programs
from longfat.system.errors import RigError, StudyError
from longfat.system.files import write_whole

PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "ssh-keygen": "openssh-client"}  # Debian package of each program
ROLES = ("receiver", "router", "sender")
FIRST_PORT, LAST_PORT = 22201, 32767  # below the ports that Linux assigns by itself
FOLDER_BYTES = 70  # the environment's limit, because of the length of socket names


def choose_variables(folder: Path, workers: int, say: Callable[[str], None]) -> None:
    """Write the variables and the key of a lab into ``folder``, which is created.

    The lab has this number of workers, or with 0 three small machines for paths.

    Raises RigError if a program is missing or the disk cannot be built, StudyError if the folder's path is unsuitable.
    """
    require_programs(PACKAGES, "local machines")
    machines = folder / "machines"
    if len(os.fsencode(machines)) > FOLDER_BYTES or not re.fullmatch(r"/[A-Za-z0-9._/-]+", str(machines)):
        raise StudyError(
            f"the path of the machines' folder is longer than {FOLDER_BYTES} bytes, the limit for sockets, or has"
            " characters other than letters, digits and . _ -",
            where=str(machines),
            hint="choose another folder for labs with LONGFAT_LABS",
        )
    image = build_disk(say=say)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    variables = {
        "tags": {"study": "any", "owner": owner()},
        "folder": str(machines),
        "image": str(image),
        **_machines(workers),
        "ssh_public_key": _public_key(folder / KEY),
        "boot_timeout_s": 900,  # emulation on a busy machine
    }
    write_whole(folder / CHOSEN, json.dumps(variables, indent=2) + "\n", 0o600)


def _machines(workers: int) -> dict[str, Any]:
    names = {f"worker{number + 1}": WORKER for number in range(workers)} or {role: role for role in ROLES}
    size = {"cpus": 1, "memory_mib": 2048 if workers else 512}
    ports = zip(names.items(), free_ports(len(names)), strict=True)
    hosts = {name: {"role": role, "ssh_port": port, **size} for (name, role), port in ports}
    return {"hosts": hosts} | ({"links": {}, "isolated": False} if workers else {})


def free_ports(count: int) -> Iterator[int]:
    """Yield free ports of the loopback address. Raises RigError if there are too few."""
    for port in range(FIRST_PORT, LAST_PORT + 1):
        if count == 0:
            return
        with socket.socket() as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as in QEMU
            try:
                door.bind(("127.0.0.1", port))
            except OSError:
                continue
        count -= 1
        yield port
    if count:
        raise RigError(f"no free port for SSH from {FIRST_PORT} to {LAST_PORT} of 127.0.0.1")


def _public_key(key: Path) -> str:
    """Return the lab's public key, after generating a missing pair."""
    if not key.exists():
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"longfat-{key.parent.name}", "-f", str(key)]
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RigError(f"ssh-keygen made no key: {done.stderr.strip()}")
    try:
        return key.with_suffix(".pub").read_text().strip()
    except OSError as error:
        raise StudyError(f"the public half of the lab's key is unreadable: {error}", where=str(key)) from error
