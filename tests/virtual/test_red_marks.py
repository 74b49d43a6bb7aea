# SPDX-License-Identifier: Apache-2.0
"""RED in the kernel: read back as declared, marking instead of dropping, every mark seen where it arrives."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import done, planned, samples

from longfat.dataset.parse import ParsedRun
from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: example
title: Two pairs of hosts that meet at a queue that marks
algorithms: {standard: {cca: reno}}
hosts: {sysctls: {net.ipv4.tcp_ecn: 1}}
experiments:
  - id: pairs
    topology:
      kind: dumbbell
      rate: 100 Mbit/s
      host_rate: 1 Gbit/s
      rtt: 20 ms
      senders: 2
      receivers: 2
      bottleneck_queue: {kind: red, limit: 500, min: 20, max: 60, probability: 10 %, ecn: "${ecn}"}
    flows:
      - {name: one, from: client1, to: server1, algorithm: standard, duration: 5 s, streams: 2}
      - {name: two, from: client2, to: server2, algorithm: standard, duration: 5 s, streams: 2}
    probes: {sockets: 100 ms, queues: 50 ms}
    sweep: {product: {ecn: [true, false]}}
"""


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, RunSpec]:
    found = planned(tmp_path_factory.mktemp("study") / "study.yaml", STUDY)
    return {name == "pairs True": spec for name, spec in found.items()}


def sent(parsed: ParsedRun, spec: RunSpec, column: str) -> int:
    """Return the last value of a counter of the bottleneck."""
    return int(samples(parsed, spec, "switch")[-1][column])


def test_with_ecn_nothing_is_dropped_and_every_mark_arrives(specs: dict[bool, RunSpec], tmp_path: Path) -> None:
    spec = specs[True]
    parsed = done(spec, tmp_path / "run")
    marked = sent(parsed, spec, "marked_total")
    arrived = parsed.tables["arrivals"].to_pylist()
    last = {row["node"]: row["marked_packets"] for row in arrived}
    assert marked > 10
    assert sent(parsed, spec, "drops_total") == 0
    assert parsed.tables["flows"]["retrans_segments"].to_pylist() == [0, 0]
    # What is marked in the last moments is still under way.
    assert marked - 10 <= sum(last.values()) <= marked
    assert min(last.values()) > 0


def test_without_ecn_it_drops_and_marks_nothing(specs: dict[bool, RunSpec], tmp_path: Path) -> None:
    spec = specs[False]
    parsed = done(spec, tmp_path / "run")
    assert sent(parsed, spec, "marked_total") == 0
    assert sent(parsed, spec, "drops_total") > 10
    assert sum(parsed.tables["flows"]["retrans_segments"].to_pylist()) >= sent(parsed, spec, "drops_total") - 10
    assert len(parsed.tables.get("arrivals", ())) == 0
