# SPDX-License-Identifier: Apache-2.0
"""The fake's numbers are those that can be worked out by hand."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import fake_truth as truth
import pytest
from conftest import delay_spec
from fake_backend import FakeBackend

from longfat.spec.network import base_rtt_us, mss_bytes
from longfat.spec.runspec import Egress, Interface, Link, RunSpec


def with_flows(count: int, streams: int = 1, window_bytes: int | None = None) -> RunSpec:
    """``delay_spec`` with several equal flows."""
    flow = dataclasses.replace(delay_spec().flows[0], streams=streams, window_bytes=window_bytes)
    flows = tuple(dataclasses.replace(flow, name=f"f{number}") for number in range(count))
    return dataclasses.replace(delay_spec(), flows=flows)


def test_a_large_window_leaves_the_rate_less_headers_and_framing() -> None:
    spec = with_flows(1)
    assert truth.goodput_bps(spec, spec.flows[0]) == pytest.approx(1e9 * 8948 / 9038, abs=8)


def test_without_timestamps_a_segment_carries_twelve_bytes_more() -> None:
    spec = delay_spec()
    client = dataclasses.replace(spec.nodes[0], sysctls={"net.ipv4.tcp_timestamps": "0"})
    spec = dataclasses.replace(spec, nodes=(client, *spec.nodes[1:]))
    assert mss_bytes(spec, spec.flows[0]) == 8960


def test_a_small_window_is_doubled_and_sent_once_each_rtt() -> None:
    spec = with_flows(1, window_bytes=750_000)
    assert base_rtt_us(spec, spec.flows[0]) == 30_000
    assert truth.goodput_bps(spec, spec.flows[0]) == pytest.approx(2 * 750_000 * 8 / 0.030, abs=8)


def test_flows_share_the_rate_by_their_streams() -> None:
    spec = with_flows(2)
    wide = dataclasses.replace(spec.flows[1], streams=3)
    spec = dataclasses.replace(spec, flows=(spec.flows[0], wide))
    narrow_bps, wide_bps = (truth.goodput_bps(spec, flow) for flow in spec.flows)
    assert wide_bps == pytest.approx(3 * narrow_bps, rel=1e-6)
    assert narrow_bps + wide_bps == pytest.approx(1e9 * 8948 / 9038, rel=1e-6)


def test_throughput_follows_the_outstanding_data_up_to_the_goodput() -> None:
    spec = delay_spec(window_bytes=1_800_000)
    series = dict(truth.throughput_bytes_per_s(spec, spec.flows[0]))
    full = truth.goodput_bps(spec, spec.flows[0]) / 8
    pipe = truth.pipe_segments(spec, spec.flows[0])
    assert series[480_000] == pytest.approx(full, abs=1)
    assert series[30_000] == pytest.approx(full * 20 / pipe, abs=1)
    assert series[510_000] == pytest.approx(full * (pipe // 2) / pipe, abs=1)


def test_outstanding_data_doubles_to_the_pipe_and_halves_at_the_drop() -> None:
    spec = delay_spec(window_bytes=1_800_000)
    series = dict(truth.outstanding_segments(spec, spec.flows[0]))
    pipe = truth.pipe_segments(spec, spec.flows[0])
    assert [series[t] for t in (0, 30_000, 60_000)] == [10, 20, 40]
    assert series[480_000] == pipe
    assert series[510_000] == pipe // 2
    assert series[540_000] == pipe // 2 + 1


def test_a_flow_without_any_limit_is_refused() -> None:
    free = Link(Interface("client1", Egress()), Interface("server", Egress(delay_us=100)), 1500)
    spec = dataclasses.replace(delay_spec(window_bytes=None), links=(free,))
    assert FakeBackend().refuses(spec) == ("flow 'stream1': neither a rate nor a window over an RTT limits it",)


def test_a_flow_without_a_route_is_refused() -> None:
    spec = dataclasses.replace(delay_spec(), links=delay_spec().links[:1])
    assert FakeBackend().refuses(spec) == ("flow 'stream1': no route from 'client1' to 'server'",)


def test_a_falsified_rate_shows_in_what_was_achieved_and_in_the_pins(tmp_path: Path) -> None:
    backend = FakeBackend(achieved_rate_factor=0.9)
    backend.run(delay_spec(), tmp_path)
    achieved = json.loads((tmp_path / "achieved.json").read_text())
    assert {item["rate_bps"] for item in achieved["interfaces"]} == {None, 900_000_000}
    assert backend.pins()["code"] != FakeBackend().pins()["code"]
