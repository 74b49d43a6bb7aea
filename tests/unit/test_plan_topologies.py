# SPDX-License-Identifier: Apache-2.0
"""Topologies become explicit links: where rate, queue, delay and drops stand."""

from pathlib import Path

import pytest
from manifests import HEAD, spec_of

from longfat.spec.network import route
from longfat.spec.runspec import Egress, RunSpec

STUDY = """\
  - id: first
    topology: {topology}
    hosts: {{mtu: 9000 B, txqueuelen: 50}}
    flows: [{{name: f1, from: client1, to: {to}, algorithm: standard, duration: 10 s}}]
    drops: {drops}
"""


def spec(tmp_path: Path, topology: str, *, to: str = "server", drops: str = "[]", backend: str = "virtual") -> RunSpec:
    return spec_of(tmp_path, HEAD + STUDY.format(topology=topology, to=to, drops=drops), backend=backend)


def egresses(found: RunSpec) -> dict[tuple[str, str], Egress]:
    """Return the egress of each node towards each other."""
    towards = {}
    for link in found.links:
        towards[link.a.node, link.b.node] = link.a.egress
        towards[link.b.node, link.a.node] = link.b.egress
    return towards


@pytest.mark.parametrize(
    ("backend", "there", "back"), [("virtual", "client1", "server"), ("mininet", "delay", "delay")]
)
@pytest.mark.parametrize(
    ("placement", "us"), [("split", (15_000, 15_000)), ("forward", (30_000, 0)), ("reverse", (0, 30_000))]
)
def test_a_delay_and_drops_stand_on_the_wire_or_on_a_router(
    tmp_path: Path, backend: str, there: str, back: str, placement: str, us: tuple[int, int]
) -> None:
    topology = f"{{kind: delay, rate: 1 Gbit/s, rtt: 30 ms, delay_placement: {placement}}}"
    found = spec(tmp_path, topology, drops="[{at: 3 s}]", backend=backend)
    sent = egresses(found)
    assert (sent[there, "server"].delay_us, sent[back, "client1"].delay_us) == us
    assert [drop.at_us for drop in sent[there, "server"].drops] == [3_000_000]
    assert not sent[back, "client1"].drops
    first_hop = "server" if backend == "virtual" else "delay"
    assert sent["client1", first_hop].rate_bps == 10**9


SLOW_BACK = "dumbbell, senders: 1, receivers: 2, reverse_queue: {limit: 60}"


@pytest.mark.parametrize(
    "kind", ["direct", "delay", "dumbbell, senders: 1", "dumbbell, senders: 1, receivers: 2", SLOW_BACK]
)
def test_both_layouts_have_the_declared_round_trip_time(tmp_path: Path, kind: str) -> None:
    to = "server2" if "receivers" in kind else "server"
    for backend in ("virtual", "mininet"):
        found = spec(tmp_path, f"{{kind: {kind}, rate: 1 Gbit/s, rtt: 30 ms}}", to=to, backend=backend)
        there, back = route(found, "client1", to), route(found, to, "client1")
        assert sum(port.egress.delay_us for port in (*there, *back)) == 30_000


@pytest.mark.parametrize("kind", ["direct", "delay", "dumbbell, senders: 3", SLOW_BACK])
def test_no_interface_has_both_a_rate_and_a_delay_where_a_node_delays(tmp_path: Path, kind: str) -> None:
    to = "server2" if "receivers" in kind else "server"
    found = egresses(spec(tmp_path, f"{{kind: {kind}, rate: 1 Gbit/s, rtt: 30 ms}}", to=to, backend="mininet"))
    assert all(egress.rate_bps is None or egress.delay_us == 0 for egress in found.values())
    assert any(egress.delay_us for egress in found.values())
