# SPDX-License-Identifier: Apache-2.0
"""Short flows, video and incast in a guest, over the kernel's own TCP: what they take against what the path allows."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from guests import run, virtual

from longfat.dataset.parse import parse_run
from longfat.gates import Evidence
from longfat.runspec import Egress, Incast, Interface, Link, Node, Probes, Queue, RunSpec, ShortFlows, Video
from longfat.traffic import misses

pytestmark = pytest.mark.virtual

RATE_BPS = 20_000_000
RTT_US = 40_000
SEGMENT_BYTES = 1448
INITIAL_WINDOW = 10  # segments (RFC 6928)
FRAME_US = (1500 + 14 + 24) * 8e6 / RATE_BPS

ALONE = ShortFlows("alone", "client1", "server", "reno", 9_000_000, 900_000, 100_000, arrivals="fixed")
MICE = ShortFlows("mice", "client1", "server", "reno", 20_000_000, 40_000, 3_000, sizes="exponential")
FILM = Video("film", "client1", "server", "cubic", 60_000_000, (1_000_000, 4_000_000, 50_000_000), buffer_us=20_000_000)
SENDERS, BLOCK_BYTES = 4, 100_000
BURST = tuple(
    Incast(f"burst.{k}", "burst", f"client{k}", "server", "reno", 4_000_000, BLOCK_BYTES, 100_000)
    for k in range(1, SENDERS + 1)
)


def spec_of(senders: int = 1, **traffic: Any) -> RunSpec:
    """Hosts at a switch that sends at 20 Mbit/s, 40 ms from the receiver, with a queue that nothing overflows."""
    fast, slow = Egress(100_000_000), Egress(RATE_BPS, queue=Queue(limit_packets=2000))
    forward, delayed = {"net.ipv4.ip_forward": "1"}, Egress(delay_us=RTT_US // 2)
    clients = [f"client{k}" for k in range(1, senders + 1)]
    return RunSpec(
        nodes=(
            *(Node(name, "sender") for name in clients),
            Node("switch", "router", forward),
            Node("delay", "router", forward),
            Node("server", "receiver"),
        ),
        links=(
            *(Link(Interface(name, fast), Interface("switch")) for name in clients),
            Link(Interface("switch", slow), Interface("delay", delayed)),
            Link(Interface("delay", delayed), Interface("server", fast)),
        ),
        flows=(),
        probes=Probes(),
        seed=1,
        pins=virtual().pins(),
        **traffic,
    )


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    with (folder / table).open(newline="") as lines:
        return [{key: int(v) if v.isdigit() else v for key, v in row.items()} for row in csv.DictReader(lines)]


def valid(spec: RunSpec, folder: Path) -> None:
    parsed = parse_run(folder, "id", spec)
    assert misses(Evidence(spec, parsed.achieved, parsed.reports, parsed.told, parsed.end_us)) == ()


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with flows of 100 kB one after the other, and of one with small ones at random times."""
    folder = tmp_path_factory.mktemp("short")
    run(spec_of(short_flows=(ALONE,)), folder / "alone")
    run(spec_of(short_flows=(MICE,)), folder / "mice")
    return folder


def test_a_flow_alone_takes_its_rounds_of_slow_start(short: Path) -> None:
    valid(spec_of(short_flows=(ALONE,)), short / "alone")
    times = [row["completion_us"] for row in rows(short / "alone", "completions.csv")]
    segments, sent, rounds = math.ceil(ALONE.size_bytes / SEGMENT_BYTES), 0, 0
    while sent + (INITIAL_WINDOW << rounds) < segments:
        sent += INITIAL_WINDOW << rounds
        rounds += 1
    expected = (2 + rounds) * RTT_US + (segments - sent) * FRAME_US
    assert len(times) == 9
    assert times == pytest.approx([expected] * 9, rel=0.05)


def test_the_ideal_is_two_round_trips_and_the_bytes_at_the_path_s_rate(short: Path) -> None:
    (ideal,) = {row["ideal_us"] for row in rows(short / "alone", "completions.csv")}
    bits = 8 * (ALONE.size_bytes + math.ceil(ALONE.size_bytes / SEGMENT_BYTES) * (52 + 38))
    assert ideal == pytest.approx(2 * RTT_US + 1e6 * bits / RATE_BPS, abs=1)


def test_flows_begin_as_often_as_a_poisson_process_lets_them(short: Path) -> None:
    valid(spec_of(short_flows=(MICE,)), short / "mice")
    times = [row["t_us"] for row in rows(short / "mice", "completions.csv")]
    expected = MICE.duration_us / MICE.every_us
    assert abs(len(times) - expected) < 3 * math.sqrt(expected)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    spread = math.sqrt(fmean((gap - fmean(gaps)) ** 2 for gap in gaps))
    assert spread == pytest.approx(fmean(gaps), rel=0.15)  # of an exponential law they are alike


def test_a_flow_within_the_initial_window_takes_two_round_trips(short: Path) -> None:
    found = rows(short / "mice", "completions.csv")
    small = [row["completion_us"] for row in found if row["size_bytes"] <= SEGMENT_BYTES]
    assert min(small) == pytest.approx(2 * RTT_US + FRAME_US, rel=0.02)
    assert fmean(row["size_bytes"] for row in found) == pytest.approx(MICE.size_bytes, rel=0.15)


def test_a_viewer_fills_its_buffer_and_never_waits_where_the_path_has_more_than_it_needs(tmp_path: Path) -> None:
    spec = spec_of(video=(FILM,))
    folder = run(spec, tmp_path / "run")
    valid(spec, folder)
    (report,) = json.loads((folder / "video.json").read_text())
    segments = rows(folder, "video_segments.csv")
    assert report["stalled_us"] == 0
    assert report["startup_us"] == pytest.approx(RTT_US + segments[0]["taken_us"], rel=0.01)
    assert [row["bitrate_bps"] for row in segments[:2]] == [1_000_000, 1_000_000]  # below a quarter of the buffer
    assert max(row["buffer_us"] for row in segments) <= FILM.buffer_us
    assert report["segments"] * FILM.segment_us <= FILM.duration_us + FILM.buffer_us


def test_a_video_faster_than_the_path_stands_still_for_what_is_missing(tmp_path: Path) -> None:
    heavy = dataclasses.replace(FILM, ladder_bps=(2 * RATE_BPS,))
    spec = spec_of(video=(heavy,))
    folder = run(spec, tmp_path / "run")
    (report,) = json.loads((folder / "video.json").read_text())
    played = report["segments"] * heavy.segment_us
    watched = heavy.duration_us - report["startup_us"]
    assert report["stalled_us"] == pytest.approx(watched - played, abs=1.5 * heavy.segment_us)
    assert report["switches"] == 0


def test_a_round_of_incast_takes_the_blocks_of_all_senders_at_the_path_s_rate(tmp_path: Path) -> None:
    spec = spec_of(SENDERS, incast=BURST)
    folder = run(spec, tmp_path / "run")
    valid(spec, folder)
    found = rows(folder, "incast_rounds.csv")
    wire_us = SENDERS * math.ceil(BLOCK_BYTES / SEGMENT_BYTES) * FRAME_US
    assert len(found) > 5
    assert {row["senders"] for row in found} == {SENDERS}
    assert all(row["completion_us"] > wire_us for row in found)
    later = fmean(row["completion_us"] for row in found[2:])
    assert later < RTT_US + 1.5 * wire_us + RTT_US
    assert all(row["fastest_us"] <= row["completion_us"] for row in found)
