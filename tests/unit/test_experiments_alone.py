# SPDX-License-Identifier: Apache-2.0
"""Experiments without a TCP flow: UDP traffic alone, and the length of such runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import make_results
from manifests import plan_of, problems_of, study_of

from longfat.metrics.data import RunData
from longfat.plan import estimate

MANIFEST = """\
format: 2
study: alone
title: No TCP flow
profiles: {quick: {duration: 3 s}}
experiments:
  - id: only
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 40 ms}
"""
UDP = "    udp: [{name: camera, from: client1, to: server, rate: 2 Mbit/s, start: 1 s, duration: 5 s}]\n"
FLOW = "    flows: [{name: bulk, from: client1, to: server, algorithm: {cca: reno}, duration: 5 s}]\n"


@pytest.mark.parametrize(("traffic", "end"), [(UDP, "6 s"), (FLOW, "5 s")])
def test_no_run_ends_before_its_traffic(tmp_path: Path, traffic: str, end: str) -> None:
    (found,) = problems_of(tmp_path, MANIFEST + traffic + "    duration: 4 s\n")
    assert f"4 s is over before {'camera' if traffic == UDP else 'bulk'!r} ends at {end}" in found.message
    plan = plan_of(tmp_path, MANIFEST + traffic + "    duration: 9 s\n", backend="fake")
    assert estimate(plan, jobs=1).wall_seconds > 0
    assert plan.runs[0].spec.end_us == 9_000_000


def test_the_bottleneck_of_a_run_without_a_flow_is_that_of_its_routers(tmp_path: Path) -> None:
    """A port of a host, slower or not, is none: a host has one interface."""
    dumbbell = "{kind: dumbbell, rate: 10 Mbit/s, rtt: 40 ms, senders: 2}"
    (tmp_path / "small").mkdir()
    changes = (("{kind: delay, rate: 10 Mbit/s, rtt: 40 ms}", dumbbell), ("study: alone", "study: small"))
    study_of(tmp_path / "small", MANIFEST + UDP, *changes)
    dataset = make_results(tmp_path / "small", tmp_path).dataset
    assert [run.status for run in dataset.runs] == ["ok"]
    assert RunData(dataset, dataset.runs[0]).bottleneck().node == "switch"
