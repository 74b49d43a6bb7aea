# SPDX-License-Identifier: Apache-2.0
"""Protocol counters of a node's namespace, before and after a run."""

from __future__ import annotations

from longfat.guest.network import Network
from longfat.guest.sysctls import read_file


def read_counters(network: Network, node: str) -> dict[str, int]:
    """Protocol counters of a node's namespace: ``Group.Name`` to value."""
    counters: dict[str, int] = {}
    with network.inside(node):
        for table in ("snmp", "netstat"):
            lines = read_file(f"/proc/self/net/{table}").splitlines()
            for names, values in zip(lines[::2], lines[1::2], strict=True):
                group, *keys = names.split()
                counters.update(
                    (f"{group[:-1]}.{key}", int(value)) for key, value in zip(keys, values.split()[1:], strict=True)
                )
    return counters


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What changed of the counters."""
    return {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
