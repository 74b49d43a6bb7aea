# SPDX-License-Identifier: Apache-2.0
"""What a kernel offers of congestion controls: the algorithms, the reasons that name missing ones, parameters.

Owns names only: which algorithm is used, and with which values, is read from the sockets.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from longfat.runspec import RunSpec


def offered_ccas() -> list[str]:
    """The algorithms of the running kernel, by its names, sorted."""
    return sorted(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())


def parameter_names(cca: str) -> frozenset[str]:
    """Names of an algorithm's parameters, which are sysctls in a folder of its own; empty for one without."""
    folder = Path(f"/proc/sys/net/ipv4/tcp_{cca}")
    return frozenset(path.name for path in folder.iterdir()) if folder.is_dir() else frozenset()


def refused_ccas(spec: RunSpec, offered: Iterable[str]) -> tuple[str, ...]:
    """One reason for each algorithm of the run that is not among ``offered``, which it lists, with the nearest."""
    there = sorted(offered)
    return tuple(_reason(cca, there) for cca in sorted({traffic.cca for traffic in spec.traffic} - set(there)))


def _reason(cca: str, there: list[str]) -> str:
    # Imported here: the guest loads its modules at each run, and needs this one only when the run fails.
    from difflib import get_close_matches

    near = get_close_matches(cca, there, n=1)
    suggestion = f"; did you mean {near[0]!r}?" if near else ""
    return f"no congestion control {cca!r}, there are {', '.join(there)}{suggestion}"
