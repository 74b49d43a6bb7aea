# SPDX-License-Identifier: Apache-2.0
"""Rates and delays that change: from the manifest and its traces to the steps of each wire."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from bottleneck import planned, port_of, problem

from longfat.spec.network import TRACED_BITS, Step, capacity_bits, steps
from longfat.spec.runspec import Change, Trace

MBPS = 1_000_000


def test_outages_and_round_trip_times_are_of_both_ways_and_a_rate_of_one(tmp_path: Path) -> None:
    spec = planned(tmp_path, keys="changes: [{at: 500 ms, outage: 200 ms}, {at: 700 ms, rate: 1 Mbit/s, rtt: 40 ms}]")
    there = port_of(spec, "switch", "server").egress.changes
    assert there == (Change(500_000, held=True), Change(700_000, MBPS, 20_000, held=False))
    assert port_of(spec, "server", "switch").egress.changes == tuple(replace(one, rate_bps=None) for one in there)


def test_a_trace_gives_a_full_packet_for_each_line_in_its_millisecond(tmp_path: Path) -> None:
    content = b"0\n1\n1\n5\n"
    (tmp_path / "some.trace").write_bytes(content)
    egress = port_of(planned(tmp_path, keys="trace: some.trace"), "switch", "server").egress
    assert egress.trace == Trace(hashlib.sha256(content).hexdigest(), "3 0*3 1")
    found = steps(egress, 7_000)
    packet_bps = 1000 * TRACED_BITS
    assert found == (
        Step(0, 3 * packet_bps, 50_000_000),
        Step(1_000, 3 * packet_bps, 50_000_000, held=True),
        Step(4_000, packet_bps, 50_000_000),
        Step(5_000, 3 * packet_bps, 50_000_000),
        Step(6_000, 3 * packet_bps, 50_000_000, held=True),
    )
    assert [capacity_bits(found, ms * 1000) // TRACED_BITS for ms in range(8)] == [0, 3, 3, 3, 3, 4, 7, 7]


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ("trace: missing.trace", "trace"),
        ("trace: ../outside.trace", "trace"),
        ("reverse_trace: some.trace", "reverse_trace"),
        ("changes: [{at: 100 ms}]", "changes[0]"),
        ("changes: [{at: 1 s, rate: 1 Mbit/s}]", "changes[0].at"),
        ("changes: [{at: 100 ms, rate: 1 Mbit/s}, {at: 100 ms, rate: 2 Mbit/s}]", "changes[1].at"),
        ("changes: [{at: 100 ms, outage: 200 ms}, {at: 200 ms, rtt: 10 ms}]", "changes[1].at"),
        ("trace: some.trace\n      changes: [{at: 100 ms, rate: 1 Mbit/s}]", "changes[0].rate"),
        ("loss: 1 %\n      changes: [{at: 100 ms, rtt: 10 ms}]", "changes[0].rtt"),
        ("changes: [{at: 100 ms, rtt: 3 us}]", "changes[0].rtt"),
        ("trace: some.csv\n      loss: 1 %", "trace"),
        ("trace: some.csv\n      changes: [{at: 100 ms, outage: 1 s}]", "trace"),
        ("reverse_queue: {limit: 10}\n      reverse_trace: some.csv", "reverse_trace"),
    ],
)
def test_changes_that_cannot_be_are_refused(tmp_path: Path, keys: str, key: str) -> None:
    (tmp_path / "some.trace").write_text("1\n")
    (tmp_path / "some.csv").write_text("rtt (ms),time (s),rate (Mbit/s)\n2,0,3\n")
    assert problem(tmp_path, keys=keys).startswith(f"experiments[0].topology.{key}: ")


def test_a_series_repeats_from_its_first_row_to_the_end_of_the_run(tmp_path: Path) -> None:
    rows = ["1700000000.25,8,21.0011", "1700000000.55,0,21", "1700000000.75,0.5,44"]
    (tmp_path / "leo.csv").write_text("\r\n".join(["time (s),rate (Mbit/s),rtt (ms)", *rows]))
    spec = planned(tmp_path, keys="trace: leo.csv")
    there, back = (port_of(spec, *ends).egress.changes for ends in (("switch", "server"), ("server", "switch")))
    assert [(one.at_us, one.rate_bps, one.held) for one in there] == [
        (0, 8 * MBPS, False),
        (300_000, None, True),
        (500_000, 500_000, False),
        (700_000, 8 * MBPS, False),
    ]
    assert [(one.at_us, one.delay_us, one.rate_bps) for one in back] == [
        (0, 10_500, None),
        (500_000, 22_000, None),
        (700_000, 10_500, None),
    ]


@pytest.mark.parametrize(
    ("kind", "content", "named"),
    [
        ("trace", "5\n3\n", "line 2"),
        ("trace", "1\n2.5\n", "line 2"),
        ("trace", "", "bad.trace"),
        ("csv", "", "line 1"),
        ("csv", "time (s)\n1\n", "line 1"),
        ("csv", "time (s),rate (MB/s)\n0,1\n", "line 1"),
        ("csv", "time (s),rate (Mbit/s),time (ms)\n0,1,1\n", "line 1"),
        ("csv", "time (s),rate (Mbit/s)\n0,1\n1\n", "line 3"),
        ("csv", "time (s),rate (Mbit/s)\n0,1\n1,-2\n2,x\n", "line 4"),
        ("csv", "time (s),rate (Tbit/s)\n0,0.99\n1,0.991\n", "line 3"),
        ("csv", "time (s),rate (Mbit/s)\n3,1\n3,2\n", "line 3"),
        ("csv", "time (s),rate (Mbit/s)\n0,1\n3700,2\n", "line 3"),
        ("csv", "time (s),rate (Mbit/s)\n0,0\n", "line 2"),
        ("csv", "time (s),rate (Mbit/s)\n", "line 2"),
        ("csv", "time (us),rate (Mbit/s)\n0,1\n1,2\n", "steps"),
        ("csv", "time (s),rate (Mbit/s)\n" + "0,1\n" * 40_000, "rows"),
    ],
)
def test_a_trace_or_series_that_cannot_be_read_names_its_line(
    tmp_path: Path, kind: str, content: str, named: str
) -> None:
    (tmp_path / f"bad.{kind}").write_text(content)
    found = problem(tmp_path, keys=f"trace: bad.{kind}")
    assert found.startswith("experiments[0].topology.trace: ") and named in found
