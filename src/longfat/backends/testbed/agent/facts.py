# SPDX-License-Identifier: Apache-2.0
"""Facts about a host: kernel, programs, network cards. Changes nothing."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from longfat.guest.host_kernel import ask_kernel
from longfat.guest.sysctls import GuestError

NICS = "/usr/local/sbin/longfat-nics"  # infra/ansible/roles/data_plane
PROGRAMS = {
    "ethtool": ("ethtool", "--version"),
    "iperf": ("iperf", "--version"),
    "nginx": ("nginx", "-v"),
    "tc": ("tc", "-Version"),
    "tcpdump": ("tcpdump", "--version"),
    "tcptrace": ("tcptrace", "-v"),
}
"""Programs that runs need on a host, and the command that prints the version of each."""


def look() -> dict[str, Any]:
    """Return all facts that determine whether a host can execute a run."""
    kernel = dataclasses.asdict(ask_kernel(Path("/")))
    return {
        "kernel": {key: sorted(value) if isinstance(value, frozenset) else value for key, value in kernel.items()},
        "build": build(),
        "programs": {
            **{name: version(command) for name, command in PROGRAMS.items()},
            "mininet": module_version("mininet.net", "VERSION"),
            "pycurl": module_version("pycurl", "version"),
        },
        "sysctls": sysctl_names(),
        "cards": cards(),
    }


def build() -> str:
    """Return a digest of the running kernel's release and build."""
    return hashlib.sha256(Path("/proc/version").read_bytes()).hexdigest()[:16]


def version(command: tuple[str, ...]) -> str | None:
    """Return the first line with a digit in the output of a version command, or None without the program."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    lines = (done.stdout + done.stderr).splitlines()
    return next((line.strip() for line in lines if any(letter.isdigit() for letter in line)), "")


def module_version(module: str, name: str) -> str | None:
    """Return the version of a Python module, which it has as ``name``, or None without the module."""
    try:
        return str(getattr(import_module(module), name))
    except ImportError:
        return None


def sysctl_names() -> list[str]:
    """Return the dotted names of the sysctls below net.ipv4 and net.core."""
    root = Path("/proc/sys")
    files = (path for tree in ("net/ipv4", "net/core") for path in (root / tree).rglob("*") if path.is_file())
    names = (".".join(path.relative_to(root).parts) for path in files)
    return sorted(name for name in names if ".conf." not in name and ".neigh." not in name)


def cards() -> dict[str, dict[str, Any]]:
    """Return the cards of the data plane by link; empty on an unprepared host. Raises GuestError if one is missing."""
    if not Path(NICS).exists():
        return {}
    found = json.loads(_output([NICS, "find"]))
    return {link: card(name) for link, name in found.items()}


def card(name: str) -> dict[str, Any]:
    """Return name, hardware address, limits and pause frames of a card.

    ``speed_bps`` is None if its driver does not report it, and ``base`` None unless it is a VLAN of that card. Raises
    GuestError if there is no such card.
    """
    (facts,) = json.loads(_output(["ip", "-json", "-details", "link", "show", "dev", name]))
    base = facts["link"] if facts.get("linkinfo", {}).get("info_kind") == "vlan" else None
    return {
        "card": name,
        "address": facts["address"],
        "max_mtu_bytes": facts.get("max_mtu") or 65535,
        "speed_bps": speed_bps(Path("/sys/class/net") / name / "speed"),
        "base": base,
        "pause": has_pause(base or name),
    }


def has_pause(name: str) -> bool:
    """Return whether a card sends pause frames or obeys them (IEEE 802.3x); False if its driver does not say."""
    done = subprocess.run(["ethtool", "--show-pause", name], capture_output=True, text=True, check=False)
    return re.search(r"^(RX|TX):\s+on$", done.stdout, re.MULTILINE) is not None


def lost_packets(name: str) -> int:
    """Return the number of packets that a card received and lost: damaged, or without room in its ring.

    Packets that no protocol wants are not lost. Raises GuestError if there is no such card.
    """
    (facts,) = json.loads(_output(["ip", "-json", "-stats", "-stats", "link", "show", "dev", name]))
    received = facts["stats64"]["rx"]
    return sum(int(received[kind]) for kind in ("errors", "fifo_errors", "missed_errors"))


def require_no_loss(before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Raise GuestError if a card has lost more packets than ``before``; both have the numbers by its name."""
    if lost := [f"{name} {after[name] - count}" for name, count in before.items() if after[name] != count]:
        raise GuestError(f"cards lost packets outside of the queues of the run: {', '.join(lost)} (ip -s -s link)")


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GuestError(done.stderr.strip() or f"{command[0]} ended with status {done.returncode}")
    return done.stdout


def speed_bps(file: Path) -> int | None:
    """Return the speed of a card in bit/s as its driver reports it, or None."""
    try:
        mbps = int(file.read_text())
    except (OSError, ValueError):
        return None
    return mbps * 1_000_000 if mbps > 0 else None
