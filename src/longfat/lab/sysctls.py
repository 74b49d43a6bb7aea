# SPDX-License-Identifier: Apache-2.0
"""Settings of the kernel by their dotted names, and the error of a laboratory that cannot be tuned or built."""

from __future__ import annotations

from pathlib import Path

GLOBAL_SYSCTLS = frozenset(
    f"net.core.{limit}" for limit in ("rmem_max", "wmem_max", "rmem_default", "wmem_default", "netdev_max_backlog")
)
"""Limits that Linux 6.12 keeps for the whole machine and does not show in a network namespace of its own."""


class LaboratoryError(Exception):
    """The network could not be built or tuned as the RunSpec says."""


def sysctl_path(name: str) -> Path:
    """The file of a sysctl given by its dotted name."""
    return Path("/proc/sys") / name.replace(".", "/")


def write_sysctl(name: str, value: str) -> None:
    """Set a sysctl in the current network namespace. Raises LaboratoryError when the kernel refuses."""
    try:
        sysctl_path(name).write_text(value)
    except FileNotFoundError as error:
        raise LaboratoryError(f"the kernel has no sysctl {name}, which should be {value!r}") from error
    except OSError as error:
        raise LaboratoryError(f"the kernel refuses sysctl {name} = {value!r}: {error.strerror}") from error


def read_sysctl(name: str) -> str:
    """A sysctl of the current network namespace, fields separated by single spaces."""
    return " ".join(sysctl_path(name).read_text().split())
