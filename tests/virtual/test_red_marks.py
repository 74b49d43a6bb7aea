# SPDX-License-Identifier: Apache-2.0
"""RED in the kernel: read back as declared, marking instead of dropping, every mark seen where it arrives."""

from __future__ import annotations

from pathlib import Path

import pytest
from guests import run, virtual

from longfat.dataset.parse import ParsedRun, parse_run
from longfat.plan import build_plan
from longfat.spec.gates import Evidence
from longfat.spec.network import lay_out
from longfat.spec.runspec import RunSpec
from longfat.study.load import load_study
from longfat.study.traffic import misses

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
    path = tmp_path_factory.mktemp("study") / "study.yaml"
    path.write_text(STUDY, encoding="utf-8")
    plan = build_plan(load_study(path), pins=virtual().pins())
    return {bool(entry.factors["ecn"]): entry.spec for entry in plan.runs}


def done(spec: RunSpec, folder: Path) -> ParsedRun:
    """A run that is valid by every gate."""
    parsed = parse_run(run(spec, folder), "id", spec)
    assert misses(Evidence(spec, parsed.achieved, parsed.reports)) == ()
    return parsed


def sent(parsed: ParsedRun, spec: RunSpec, column: str) -> int:
    """The last value of a counter of the bottleneck."""
    (port,) = (port for port in lay_out(spec).all_ports() if port.egress.queue.kind == "red")
    rows = zip(
        parsed.tables["queues"]["interface"].to_pylist(), parsed.tables["queues"][column].to_pylist(), strict=True
    )
    return int([value for name, value in rows if name == port.name][-1])


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
    assert parsed.tables["arrivals"].num_rows == 0
