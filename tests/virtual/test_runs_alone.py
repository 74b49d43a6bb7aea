# SPDX-License-Identifier: Apache-2.0
"""Experiments without a TCP flow in a guest: UDP traffic alone, and pings alone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from studies import done, planned

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: alone
title: No TCP flow
experiments:
  - id: camera
    topology: {kind: dumbbell, rate: 10 Mbit/s, host_rate: 1 Gbit/s, rtt: 40 ms, senders: 1}
    udp: [{name: camera, from: client1, to: server, rate: 6 Mbit/s, duration: 2 s}]
  - id: pings
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 40 ms}
    duration: 2 s
    probes: {ping: 100 ms}
"""


def test_udp_alone_keeps_its_rate(tmp_path: Path) -> None:
    spec = planned(tmp_path / "study.yaml", STUDY)["camera"]
    parsed = done(spec, tmp_path / "run")
    (report,) = parsed.told["udp"]
    assert report["sent_packets"] == report["arrived_packets"] == 2 * 6_000_000 // (8 * 1500)
    times, counts = (parsed.tables["datagrams"][name].to_pylist() for name in ("t_us", "received_packets"))
    rates = [12e9 * (after - before) / 100_000 for before, after in pairwise(counts[1:])]
    assert len(times) == 19
    assert all(abs(rate - 6e6) < 0.2e6 for rate in rates)


def test_pings_alone_last_as_long_as_asked(tmp_path: Path) -> None:
    spec = planned(tmp_path / "study.yaml", STUDY)["pings"]
    parsed = done(spec, tmp_path / "run")
    times = parsed.tables["pings"]["t_us"].to_pylist()
    assert parsed.end_us == pytest.approx(2_000_000, abs=10_000)
    assert max(times) == pytest.approx(1_900_000, abs=100_000)
