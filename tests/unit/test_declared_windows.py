# SPDX-License-Identifier: Apache-2.0
"""Declared windows: the limits of a run's hosts and the buffers of its sockets follow them."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifests import HEAD, keys_of, spec_of

from longfat.spec.network import buffers_bytes
from longfat.spec.runspec import RunSpec

STUDY = """\
  - id: one
    topology: {{kind: dumbbell, rate: 5 Mbit/s, rtt: 4 ms, senders: 2, receivers: 2}}
    flows:
      - {{name: f, from: client1, to: server1, algorithm: standard, duration: 1 s{first}}}
      - {{name: g, from: client2, to: server2, algorithm: standard, duration: 1 s{second}}}
hosts: {hosts}
"""


def text(hosts: str = "{}", first: str = "", second: str = "") -> str:
    return HEAD + STUDY.format(hosts=hosts, first=first, second=second)


def limits(spec: RunSpec) -> set[tuple[str | None, str | None]]:
    """Return the limits for receiving and sending that the hosts of a run have."""
    hosts = (node.sysctls for node in spec.nodes if node.role != "router")
    return {(one.get("net.core.rmem_max"), one.get("net.core.wmem_max")) for one in hosts}


def test_the_limits_of_all_hosts_are_those_of_the_largest_windows(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, text(first=", window: 2 MiB, send_window: 6 MiB", second=", window: 3 MiB"))
    assert limits(spec) == {(str(3 << 19), str(3 << 20))}
    assert [buffers_bytes(spec, flow) for flow in spec.flows] == [(6 << 20, 2 << 20), (3 << 20, 3 << 20)]


def test_a_limit_of_the_manifest_stays_and_cuts_the_buffer(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, text(hosts="{sysctls: {net.core.rmem_max: 500000}}", second=", window: 2 MB"))
    assert limits(spec) == {("500000", "1000000")}
    assert buffers_bytes(spec, spec.flows[1]) == (2_000_000, 1_000_000)


@pytest.mark.parametrize(
    ("meaning", "first", "key"),
    [
        ("effective", ", window: 2302 B", "window"),
        ("requested", ", window: 1151 B", "window"),
        ("effective", ", window: 8 kB, send_window: 4 kB", "send_window"),
    ],
)
def test_a_window_below_the_least_buffer_is_refused(tmp_path: Path, meaning: str, first: str, key: str) -> None:
    faulty = text(hosts=f"{{window_meaning: {meaning}}}", first=first)
    assert keys_of(tmp_path, faulty) == [f"experiments[0].flows[0].{key}"]
