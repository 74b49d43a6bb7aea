# SPDX-License-Identifier: Apache-2.0
"""What a run in real time could leave on the machine: to be compared before and after.

Owns how it is read. Must not assert anything.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

MARK = "LONGFAT_TEST_SESSION"
LIMITS = ("rmem_max", "wmem_max", "rmem_default", "wmem_default", "netdev_max_backlog")


def mark_descendants() -> None:
    """Give every process that is started from now on, however far down, a mark by which ``descendants`` finds it."""
    os.environ[MARK] = str(os.getpid())


def descendants() -> dict[int, str]:
    """Processes with the mark that still run, orphans included: their command lines by process number.

    Not those that replace their environment, as a guest does, and not Python's own tracker of shared resources, which
    ends with this process.
    """
    wanted = f"{MARK}={os.getpid()}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            marked = wanted in (folder / "environ").read_bytes().split(b"\0")
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it ended meanwhile, or is another user's
        if marked and int(folder.name) != os.getpid() and "multiprocessing.resource_tracker" not in line:
            found[int(folder.name)] = line
    return found


def network_state() -> dict[str, str]:
    """Links, namespaces and qdiscs of the machine, its mounts, and the limits that all namespaces share."""
    commands = (["ip", "netns"], ["tc", "qdisc"])
    told = {
        " ".join(command): subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for command in commands
        if shutil.which(command[0])
    }
    told["links"] = " ".join(name for _, name in socket.if_nameindex())
    mounts = Path("/proc/self/mountinfo").read_text()
    told["mounts"] = "\n".join(line.partition(" - ")[0].split()[4] for line in mounts.splitlines())
    limits = (Path("/proc/sys/net/core") / limit for limit in LIMITS)
    return told | {path.name: path.read_text() for path in limits if path.exists()}
