# SPDX-License-Identifier: Apache-2.0
"""Settings of the kernel by their dotted names, and the error of a laboratory that cannot be tuned or built."""

from __future__ import annotations

import os
from pathlib import Path

GLOBAL_SYSCTLS = frozenset(
    f"net.core.{limit}" for limit in ("rmem_max", "wmem_max", "rmem_default", "wmem_default", "netdev_max_backlog")
)
"""Limits that Linux 6.12 keeps for the whole machine and does not show in a network namespace of its own."""

ENTROPY_SEED = "kernel.entropy_seed"
"""Of the project's guests: a number written to it starts all random numbers of the kernel anew (kernels/, 0026)."""

READ_BYTES = 1 << 14


class LaboratoryError(Exception):
    """The network could not be built or tuned as the RunSpec says."""


def sysctl_path(name: str) -> Path:
    """The file of a sysctl given by its dotted name."""
    return Path("/proc/sys") / name.replace(".", "/")


def write_sysctl(name: str, value: str) -> None:
    """Set a sysctl in the current network namespace. Raises LaboratoryError when the kernel refuses."""
    try:
        descriptor = os.open(sysctl_path(name), os.O_WRONLY)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        raise LaboratoryError(f"the kernel has no sysctl {name}, which should be {value!r}") from error
    except OSError as error:
        raise LaboratoryError(f"the kernel refuses sysctl {name} = {value!r}: {error.strerror}") from error


def restart_entropy(seed: int) -> None:
    """Let what the kernel draws from now on follow from a seed, where it can: no kernel but a guest's does."""
    if sysctl_path(ENTROPY_SEED).exists():
        write_sysctl(ENTROPY_SEED, str(seed))


def read_sysctl(name: str) -> str:
    """A sysctl of the current network namespace, fields separated by single spaces."""
    return " ".join(read_file(sysctl_path(name)).split())


def read_file(path: str | Path) -> str:
    """A file of the kernel, by the three system calls that this takes at least: there are hundreds of them in a run."""
    descriptor, text = os.open(path, os.O_RDONLY), b""
    try:
        while more := os.read(descriptor, READ_BYTES):
            text += more
    finally:
        os.close(descriptor)
    return text.decode()
