# SPDX-License-Identifier: Apache-2.0
"""What a run in real time could leave on the machine: to be compared before and after.

Owns how it is read. Must not assert anything.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
LIMITS = ("rmem_max", "wmem_max", "rmem_default", "wmem_default", "netdev_max_backlog")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that ``children`` finds it."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def children(parent: int) -> dict[int, str]:
    """Processes that ``parent`` is the parent of and that still run: their command lines by process number."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, ppid = stat.read_text().rpartition(")")[2].split()[:2]
            if int(ppid) == parent and state != "Z":
                words = (stat.parent / "cmdline").read_bytes().split(b"\0")
                found[int(stat.parent.name)] = b" ".join(words).decode(errors="replace").strip()
        except OSError:
            continue  # it ended meanwhile
    return found


def network_state() -> dict[str, str]:
    """Links, namespaces and qdiscs of the machine, its mounts, and the limits that all namespaces share."""
    commands = (["ip", "-o", "link"], ["ip", "netns"], ["tc", "qdisc"])
    told = {" ".join(command): _said(command) for command in commands if shutil.which(command[0])}
    told["mounts"] = "\n".join(line.partition(" - ")[0].split()[4] for line in _lines("/proc/self/mountinfo"))
    limits = (Path("/proc/sys/net/core") / limit for limit in LIMITS)
    return told | {path.name: path.read_text() for path in limits if path.exists()}


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
