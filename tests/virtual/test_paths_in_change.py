# SPDX-License-Identifier: Apache-2.0
"""Rates, delays and outages that change: a path carries what its steps or its trace list."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from studies import done, planned, samples

from longfat.spec.network import capacity_bits, lay_out, steps
from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

SERIES = """\
time (s),rate (Mbit/s),rtt (ms)
0.1,17,30
0.5,0,30
0.62,6.5,61
1.3,9,24
"""
STUDY = """\
algorithms: {standard: {cca: cubic}}
defaults: {flow: {from: client1, to: server, duration: 6 s}}
paths:
  line:
    kind: dumbbell
    rate: 20 Mbit/s
    host_rate: 1 Gbit/s
    rtt: 20 ms
    senders: 1
    bottleneck_queue: {limit: 200}
experiments:
  - id: trace
    path: line
    topology: {trace: radio.trace}
    flows: [{name: flow, algorithm: standard, duration: 3 s}]
    probes: {queues: 20 ms}
  - id: handover
    path: line
    topology:
      changes:
        - {at: 2 s, rate: 5 Mbit/s}
        - {at: 3 s, outage: 500 ms}
        - {at: 4 s, rate: 20 Mbit/s, rtt: 80 ms}
    flows: [{name: flow, algorithm: standard}]
    probes: {queues: 20 ms}
  - id: series
    path: line
    topology: {trace: satellite.csv}
    flows: [{name: flow, algorithm: standard, duration: 4 s}]
    probes: {queues: 20 ms}
  - id: seldom
    path: line
    topology: {trace: seldom.trace}
    flows: [{name: flow, algorithm: standard, duration: 2 s}]
"""


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunSpec]:
    folder = tmp_path_factory.mktemp("study")
    # None to three packets in a millisecond, 1.4 of them on average, and a tenth of each second none at all.
    lines = [ms for ms in range(1, 1001) for _ in range((ms * 7919 + ms // 13) % 4) if not 500 <= ms < 600]
    (folder / "radio.trace").write_text("\n".join(map(str, lines)) + "\n")
    (folder / "satellite.csv").write_text(SERIES)
    (folder / "seldom.trace").write_text("4\n9\n")
    return {name.split()[0]: spec for name, spec in planned(folder / "study.yaml", STUDY).items()}


def carried(rows: list[dict[str, Any]]) -> Iterator[tuple[int, int, int]]:
    """Between samples of a queue that was not empty at either: since when, until when, and how many bytes left."""
    for row, then in pairwise(rows):
        if row["backlog_packets"] and then["backlog_packets"]:
            yield row["t_us"], then["t_us"], then["sent_bytes"] - row["sent_bytes"]


@pytest.mark.parametrize("name", ["trace", "series", "handover"])
def test_a_path_carries_what_its_trace_or_steps_list(specs: dict[str, RunSpec], tmp_path: Path, name: str) -> None:
    spec = specs[name]
    parsed = done(spec, tmp_path / "run")
    (port,) = (port for port in lay_out(spec).ports["switch"] if port.egress.trace or port.egress.changes)
    ways = steps(port.egress, spec.end_us)
    found = list(carried(samples(parsed, spec, "switch")))
    assert len(found) > 50
    for since_us, until_us, size in found:
        assert abs(size - capacity_bits(ways, until_us, since_us) / 8) <= port.frame_bytes, since_us
    received = sum(report["goodput_bps"] for report in parsed.reports) * spec.end_us / 8e6
    assert 0 < received < capacity_bits(ways, parsed.end_us or spec.end_us) / 8


def test_after_the_measurement_nothing_leaves_faster_than_the_trace_lets_it(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    parsed = done(specs["seldom"], tmp_path / "run")
    assert parsed.end_us and parsed.end_us > 2_200_000  # the queue's packets take 0.9 s
    most_bps = 2 * 1448 * 8 / 0.009
    assert 0.9 * most_bps < parsed.reports[0]["goodput_bps"] < 1.005 * most_bps
