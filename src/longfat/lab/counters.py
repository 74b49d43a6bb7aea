# SPDX-License-Identifier: Apache-2.0
"""Protocol counters of a node's namespace, before and after a run."""

from __future__ import annotations

from pathlib import Path

from longfat.lab.namespaces import inside
from longfat.lab.network import Network


def read_counters(network: Network, node: str) -> dict[str, int]:
    """Protocol counters of a node's namespace: ``Group.Name`` to value."""
    counters: dict[str, int] = {}
    with inside(network.pid(node)):
        for table in ("snmp", "netstat"):
            lines = Path("/proc/self/net", table).read_text().splitlines()
            for names, values in zip(lines[::2], lines[1::2], strict=True):
                group, *keys = names.split()
                counters.update(
                    (f"{group[:-1]}.{key}", int(value)) for key, value in zip(keys, values.split()[1:], strict=True)
                )
    return counters


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What changed of the counters."""
    return {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
