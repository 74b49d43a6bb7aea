# SPDX-License-Identifier: Apache-2.0
"""Flows on a path that a few packets fill, where the window comes down to a single segment."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import done, specs_of

from longfat.guest.sockets import TCP_CLOSE
from longfat.spec.runspec import RunSpec

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
specs = specs_of(STUDY)


@pytest.mark.parametrize("algorithm", ["reno", "fast", "compound"])
def test_a_flow_gets_out_of_a_window_of_one_segment_and_only_compound_has_a_delay_window(
    specs: dict[str, RunSpec], tmp_path: Path, algorithm: str
) -> None:
    # Rate halving goes below half of the window, down to a segment. Each acknowledgment of it leaves nothing in flight:
    # for an algorithm that takes this for a pause no round trip is ever complete, and 0.4 Mb/s are left.
    parsed = done(specs[f"narrow {algorithm}"], tmp_path / "run")
    assert parsed.reports[0]["goodput_bps"] > 2_000_000  # five times as much
    sampled = [row for row in parsed.tables["sockets"].to_pylist() if row["state"] != str(TCP_CLOSE)]
    assert len(sampled) > 40
    assert {row["dwnd_segments"] is not None for row in sampled} == {algorithm == "compound"}
