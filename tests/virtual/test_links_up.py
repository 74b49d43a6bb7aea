# SPDX-License-Identifier: Apache-2.0
"""A run begins when every link passes packets, however many there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import done, planned

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: example
title: Many idle hosts
algorithms: {standard: {cca: reno}}
experiments:
  - id: hosts
    topology: {kind: dumbbell, rate: 100 Mbit/s, rtt: 20 ms, senders: 70, receivers: 3}
    flows: [{name: last, from: client70, to: server3, algorithm: standard, window: 64 KiB, duration: 400 ms}]
    probes: {sockets: 1 ms, queues: null}
"""


def test_the_first_packet_of_the_last_of_many_hosts_gets_through(tmp_path: Path) -> None:
    (spec,) = planned(tmp_path / "study.yaml", STUDY).values()
    connected = [
        row["t_us"] for row in done(spec, tmp_path / "run").tables["sockets"].to_pylist() if row["state"] == "1"
    ]
    # One round trip after its program has started.
    assert connected[0] < 25_000
