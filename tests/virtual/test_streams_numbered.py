# SPDX-License-Identifier: Apache-2.0
"""The numbers of parallel streams: in the order in which they were made, whatever ports the kernel drew for them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from guests import one_flow, run

from longfat.spec.runspec import Probes, RunSpec

pytestmark = pytest.mark.virtual


def eight_streams(seed: int) -> RunSpec:
    spec = one_flow(seed=seed, duration_us=300_000)
    flow = dataclasses.replace(spec.flows[0], streams=8, window_bytes=64 << 10)
    return dataclasses.replace(spec, flows=(flow,), probes=Probes(socket_interval_us=50_000))


def test_runs_that_differ_in_ports_alone_have_the_same_samples_of_each_stream(tmp_path: Path) -> None:
    first, second = (run(eight_streams(seed), tmp_path / str(seed)) for seed in (1, 2))
    samples = (first / "sockets.csv").read_text()
    assert samples == (second / "sockets.csv").read_text()
    rows = [line.split(",") for line in samples.splitlines()[1:]]
    assert {row[2] for row in rows} == {str(number) for number in range(8)}
