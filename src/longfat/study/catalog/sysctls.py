# SPDX-License-Identifier: Apache-2.0
"""Network sysctls of a host under the project's kernel, without the parameters of algorithms."""

from __future__ import annotations

import re
from pathlib import Path

_OF_INTERFACE = re.compile(r"(net\.ipv[46]\.(?:conf|neigh))\.[^.]+\.")
SYSCTLS = frozenset(
    line for line in Path(__file__).with_suffix(".txt").read_text(encoding="ascii").splitlines() if line[0] != "#"
)

MACHINE_SYSCTLS = frozenset(
    f"net.core.{limit}" for limit in ("rmem_max", "wmem_max", "rmem_default", "wmem_default", "netdev_max_backlog")
)
"""Sysctls of the whole machine instead of a network namespace (guest/sysctls.py)."""


def any_interface(name: str) -> str:
    """Return the name with ``*`` instead of an interface, as in ``SYSCTLS``."""
    return _OF_INTERFACE.sub(r"\1.*.", name)
