# SPDX-License-Identifier: Apache-2.0
"""What a transfer has in buffers at its flow's end arrives later and is no goodput."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from guests import one_flow, run

pytestmark = pytest.mark.virtual


def test_no_flow_of_transfers_exceeds_its_path(tmp_path: Path) -> None:
    spec = one_flow(duration_us=500_000, mtu_bytes=1500)
    ends = [
        dataclasses.replace(end, egress=dataclasses.replace(end.egress, rate_bps=end.egress.rate_bps and 10_000_000))
        for link in spec.links
        for end in (link.a, link.b)
    ]
    links = tuple(
        dataclasses.replace(link, a=ends[2 * number], b=ends[2 * number + 1]) for number, link in enumerate(spec.links)
    )
    flow = dataclasses.replace(spec.flows[0], transfer_bytes=400_000, window_bytes=None)
    folder = run(dataclasses.replace(spec, links=links, flows=(flow,)), tmp_path / "run")
    (report,) = json.loads((folder / "flows.json").read_text())
    under_way = json.loads((folder / "iperf" / "flow1.end.json").read_text())
    assert len(under_way) == 1
    assert 6_000_000 < report["goodput_bps"] <= 10_000_000 * 1448 / 1538
    assert report["bytes_sent"] > report["bytes_received"]
