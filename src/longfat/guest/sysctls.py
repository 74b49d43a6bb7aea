# SPDX-License-Identifier: Apache-2.0
"""Settings of the kernel by their dotted names, and the error of a run that cannot be executed."""

from __future__ import annotations

import os
from pathlib import Path

from longfat.guest.files import read_file

GLOBAL_SYSCTLS = frozenset(
    f"net.core.{limit}" for limit in ("rmem_max", "wmem_max", "rmem_default", "wmem_default", "netdev_max_backlog")
)
"""Limits of the whole machine, which Linux 6.12 does not show in a new network namespace."""

ENTROPY_SEED = "kernel.entropy_seed"
"""Only in the project's guests: a number written to it restarts all random numbers of the kernel (kernels/, 0026)."""


class GuestError(Exception):
    """A run that cannot be built, tuned or completed as the RunSpec declares."""


def sysctl_path(name: str) -> Path:
    """Return the file of a sysctl."""
    return Path("/proc/sys") / name.replace(".", "/")


def write_sysctl(name: str, value: str) -> None:
    """Set a sysctl in the current network namespace. Raises GuestError if the kernel refuses."""
    try:
        descriptor = os.open(sysctl_path(name), os.O_WRONLY)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        raise GuestError(f"the kernel has no sysctl {name}, which should be {value!r}") from error
    except OSError as error:
        raise GuestError(f"the kernel refuses sysctl {name} = {value!r}: {error.strerror}") from error


def restart_entropy(seed: int) -> None:
    """Restart the kernel's random numbers from a seed, if it can: only a guest's kernel can."""
    if sysctl_path(ENTROPY_SEED).exists():
        write_sysctl(ENTROPY_SEED, str(seed))


def read_sysctl(name: str) -> str:
    """Return a sysctl of the current network namespace, with single spaces between its fields."""
    return " ".join(read_file(sysctl_path(name)).split())
