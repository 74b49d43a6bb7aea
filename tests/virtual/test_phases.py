# SPDX-License-Identifier: Apache-2.0
"""Flows that meet at a drop-tail queue: no phase lasts for a whole run, and none decides who has how much."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from guests import virtual
from studies import done

from longfat.plan import PlannedRun, build_plan
from longfat.study.load import load_study

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: example
title: Two flows of one algorithm
algorithms: {reno: {cca: reno}, cubic: {cca: cubic}}
defaults: {repetitions: 5, probes: {queues: null}}
experiments:
  - id: feeders
    topology: {kind: dumbbell, rate: 50 Mbit/s, rtt: 0 ms, senders: 2, bottleneck_queue: {limit: 60}}
    flows:
      - {name: a, from: client1, to: server, algorithm: "${cca}", duration: 6 s, start_jitter: 1 ms}
      - {name: b, from: client2, to: server, algorithm: "${cca}", duration: 6 s, start_jitter: 1 ms}
    sweep: {product: {cca: [reno, cubic]}}
    repetitions: 3
  - id: distances
    topology:
      kind: dumbbell
      rate: 10 Mbit/s
      host_rate: 1 Gbit/s
      rtt: 30 ms
      senders: 2
      receivers: 2
      further_delays: [0 ms, "${further}"]
      bottleneck_queue: {limit: 20}
    flows:
      - {name: a, from: client1, to: server1, algorithm: "${cca}", duration: 20 s, start_jitter: 10 ms}
      - {name: b, from: client2, to: server2, algorithm: "${cca}", duration: 20 s, start_jitter: 10 ms}
    sweep: {product: {cca: [reno, cubic], further: [400 us, 800 us]}}
"""
STUDENT = 2.776  # 97.5 % of Student's t with 4 degrees of freedom


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[PlannedRun, ...]:
    path = tmp_path_factory.mktemp("study") / "study.yaml"
    path.write_text(STUDY, encoding="utf-8")
    return build_plan(load_study(path), profile="paper", pins=virtual().pins()).runs


def shares(runs: tuple[PlannedRun, ...], folder: Path, experiment: str, **factors: str | int) -> list[float]:
    """The second flow's share of the bytes in each repetition."""
    found = []
    for run in runs:
        if run.experiment == experiment and run.factors == factors:
            parsed = done(run.spec, folder / run.run_id)
            a, b = (report["bytes_received"] for report in sorted(parsed.reports, key=lambda one: str(one["flow"])))
            found.append(b / (a + b))
    return found


@pytest.mark.parametrize("cca", ["reno", "cubic"])
def test_no_flow_is_locked_out_where_access_links_have_the_rate_of_the_bottleneck(
    cca: str, runs: tuple[PlannedRun, ...], tmp_path: Path
) -> None:
    found = shares(runs, tmp_path, "feeders", cca=cca)
    assert len(set(found)) > 1
    assert min(found) > 0.2 and max(found) < 0.8


@pytest.mark.parametrize("cca", ["reno", "cubic"])
def test_half_a_packets_time_of_distance_makes_no_step(cca: str, runs: tuple[PlannedRun, ...], tmp_path: Path) -> None:
    near, far = (shares(runs, tmp_path, "distances", cca=cca, further=us) for us in (400, 800))
    half_widths = [STUDENT * statistics.stdev(found) / len(found) ** 0.5 for found in (near, far)]
    assert abs(statistics.mean(far) - statistics.mean(near)) < sum(half_widths)
