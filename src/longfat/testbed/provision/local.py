# SPDX-License-Identifier: Apache-2.0
"""The inputs of a lab of the environment ``local`` that the user does not state: key, ports, disk, settings.

Owns these choices. An existing file is never touched.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from longfat.builds.disk import build_disk
from longfat.builds.packages import is_there
from longfat.errors import RigError, StudyError
from longfat.testbed.provision.folder import KEY, SETTINGS, VARIABLES
from longfat.testbed.provision.made import made_files, make_file
from longfat.testbed.provision.state import read_state

# Debian package by program.
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "ssh-keygen": "openssh-client"}
ROLES = ("receiver", "router", "sender")
FIRST_PORT, LAST_PORT = 22201, 32767  # below those that Linux gives to connections by itself
FOLDER_BYTES = 70  # the environment's limit: sockets with long names have to fit
OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._-]{0,62}")
SETTINGS_TEXT = """\
# SPDX-License-Identifier: Apache-2.0
# Settings of the roles for all machines of this lab (docs/provisioning.md).
# The machines reach only this host and cannot look up names: this is an address that never answers.
time_synchronised_servers: [192.168.127.1]
time_synchronised_allow: [10.0.0.0/16]
"""


def prepare_local(folder: Path, say: Callable[[str], None]) -> None:
    """Write missing variables, key and settings into ``folder``, which is created.

    Variables that were written here are written again as long as nothing is made from them: ports and disk age.
    Raises RigError when a program is missing or the disk cannot be built, StudyError when the folder's path does not
    suit the machines' sockets.
    """
    missing = [package for program, package in NEEDED.items() if not is_there(program)]
    if missing:
        raise RigError(
            f"packages for local machines are missing: {' '.join(missing)}",
            hint=f"as root: apt-get install --no-install-recommends {' '.join(missing)}",
        )
    variables = folder / VARIABLES
    if not variables.exists() or (variables in made_files(folder) and read_state(folder) is None):
        machines = _machines_folder(folder)
        image = build_disk(say=say)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = default_variables(machines, image, _public_key(folder), list(free_ports(len(ROLES))))
        make_file(variables, (json.dumps(content, indent=2) + "\n").encode())
        say(f"wrote {variables}")
    if not (folder / SETTINGS).exists():
        make_file(folder / SETTINGS, SETTINGS_TEXT.encode())


def default_variables(machines: Path, image: Path, public_key: str, ports: list[int]) -> dict[str, Any]:
    """Variables of the environment ``local`` with three small machines."""
    return {
        "tags": {"study": "any", "owner": _owner()},
        "folder": str(machines),
        "image": str(image),
        "hosts": {
            role: {"role": role, "ssh_port": port, "cpus": 1, "memory_mib": 512}
            for role, port in zip(ROLES, ports, strict=True)
        },
        "ssh_public_key": public_key,
        "boot_timeout_s": 900,  # emulation on a busy machine
    }


def free_ports(count: int) -> Iterator[int]:
    """Ports of the loopback address that nobody listens on now. Raises RigError when there are too few."""
    for port in range(FIRST_PORT, LAST_PORT + 1):
        if count == 0:
            return
        with socket.socket() as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as QEMU does it
            try:
                door.bind(("127.0.0.1", port))
            except OSError:
                continue
        count -= 1
        yield port
    if count:
        raise RigError(f"no free port for SSH from {FIRST_PORT} to {LAST_PORT} of 127.0.0.1")


def _machines_folder(folder: Path) -> Path:
    machines = folder / "machines"
    if len(os.fsencode(machines)) > FOLDER_BYTES or not re.fullmatch(r"/[A-Za-z0-9._/-]+", str(machines)):
        raise StudyError(
            f"the path of the machines' folder is longer than {FOLDER_BYTES} bytes, too long for the names of"
            " sockets, or has characters other than letters, digits and . _ -",
            where=str(machines),
            hint="name another folder for labs with LONGFAT_LABS",
        )
    return machines


def _public_key(folder: Path) -> str:
    """The lab's own public key, of a pair made now unless it is there."""
    key = folder / KEY
    if not key.exists():
        with tempfile.TemporaryDirectory(prefix=".key-", dir=folder) as scratch:
            new = Path(scratch) / KEY
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"longfat-{folder.name}", "-f", str(new)]
            done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                raise RigError(f"ssh-keygen made no key: {done.stderr.strip()}")
            make_file(key.with_suffix(".pub"), new.with_suffix(".pub").read_bytes())
            make_file(key, new.read_bytes())
    try:
        return key.with_suffix(".pub").read_text().strip()
    except OSError as error:
        raise StudyError(f"the public half of the lab's key cannot be read: {error}", where=str(key)) from error


def _owner() -> str:
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = ""
    return name if OWNER.fullmatch(name) else f"uid-{os.geteuid()}"
