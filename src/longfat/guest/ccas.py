# SPDX-License-Identifier: Apache-2.0
"""Congestion controls of a kernel: names of algorithms and parameters, and reasons for missing algorithms.

The algorithm in use and its values are read from the sockets.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from longfat.spec.runspec import RunSpec


def offered_ccas() -> list[str]:
    """Return the algorithms of the running kernel, sorted."""
    return sorted(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())


def parameter_names(cca: str) -> frozenset[str]:
    """Return the names of an algorithm's parameters, which are sysctls in its folder."""
    folder = Path(f"/proc/sys/net/ipv4/tcp_{cca}")
    return frozenset(path.name for path in folder.iterdir()) if folder.is_dir() else frozenset()


def refused_ccas(spec: RunSpec, offered: Iterable[str]) -> tuple[str, ...]:
    """Return a reason for each algorithm of the run that is not among ``offered``, with the nearest name."""
    there = sorted(offered)
    return tuple(_reason(cca, there) for cca in sorted({traffic.cca for traffic in spec.traffic} - set(there)))


def _reason(cca: str, there: list[str]) -> str:
    # Imported here: the guest loads its modules at each run, and needs this one only if the run fails.
    from difflib import get_close_matches

    near = get_close_matches(cca, there, n=1)
    suggestion = f"; did you mean {near[0]!r}?" if near else ""
    return f"no congestion control {cca!r}, there are {', '.join(there)}{suggestion}"
