# SPDX-License-Identifier: Apache-2.0
"""Flows on a path that a few packets fill, where the window comes down to a single segment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guests import run, virtual

from longfat.plan import build_plan
from longfat.study.load import load_study

pytestmark = pytest.mark.virtual

STUDY = """
format: 2
study: narrow
title: Ten packets fill the path, and two its queue
stack: linux-2.4
algorithms:
  reno: {cca: reno}
  fast: {cca: fast, alpha: 20}
  compound: {cca: compound}
hosts: {mtu: 1500 B, txqueuelen: 100}
experiments:
  - id: narrow
    topology:
      kind: dumbbell
      rate: 10 Mbit/s
      host_rate: 1 Gbit/s
      rtt: 10 ms
      senders: 1
      bottleneck_queue: {limit: 2}
    flows:
      - {name: stream, from: client1, to: server, algorithm: "${algorithm}", window: 125 kB, duration: 5 s}
    sweep: {product: {algorithm: [reno, fast, compound]}}
"""


@pytest.mark.parametrize("algorithm", ["reno", "fast", "compound"])
def test_a_flow_gets_out_of_a_window_of_one_segment(tmp_path: Path, algorithm: str) -> None:
    # Rate halving goes below half of the window, down to a segment. Each acknowledgment of it leaves nothing in flight:
    # for an algorithm that takes this for a pause no round trip is ever complete, and 0.4 Mb/s are left.
    path = tmp_path / "study.yaml"
    path.write_text(STUDY, encoding="utf-8")
    runs = build_plan(load_study(path), pins=virtual().pins()).runs
    spec = next(planned.spec for planned in runs if planned.factors == {"algorithm": algorithm})
    flows = json.loads((run(spec, tmp_path / "run") / "flows.json").read_text(encoding="utf-8"))
    assert flows[0]["goodput_bps"] > 2_000_000  # five times as much
