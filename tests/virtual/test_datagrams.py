# SPDX-License-Identifier: Apache-2.0
"""UDP traffic and pings in a guest: what arrives is the sine that was asked for, and the RTT that of the path."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from guests import delay_path
from packets import records
from studies import done

from longfat.dataset.parse import ParsedRun
from longfat.spec.runspec import Flow, Probes, Udp

pytestmark = pytest.mark.virtual

RTT_US = 20_000
WAVE = Udp("wave", "client1", "server", 20_000_000, 6_000_000, 15_000_000, 4_000_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("datagrams") / "run"


@pytest.fixture(scope="module")
def parsed(folder: Path) -> ParsedRun:
    """A valid run: UDP traffic and a flow whose window leaves room for it, over 100 Mbit/s and 20 ms."""
    spec = delay_path(
        100_000_000,
        RTT_US,
        1000,
        flows=(Flow("stream", "client1", "server", "reno", 6_000_000, window_bytes=16_384),),
        probes=Probes(capture=("wave",), capture_at=("sender", "bottleneck", "receiver"), ping_interval_us=100_000),
        udp=(WAVE,),
    )
    return done(spec, folder)


def test_what_arrives_is_the_sine_a_one_way_delay_later(parsed: ParsedRun) -> None:
    for row in parsed.tables["datagrams"].to_pylist()[5:]:
        elapsed_s = row["t_us"] / 1e6 - RTT_US / 2e6
        swung = 1 - math.cos(2 * math.pi * elapsed_s / 4)
        sent = (20e6 * elapsed_s + 15e6 * 4 / (2 * math.pi) * swung) / 8
        # The program starts some milliseconds after it is asked to.
        assert row["received_bytes"] == pytest.approx(sent, abs=35e6 / 8 * 0.05)


def test_pings_take_what_the_path_does_and_come_at_their_interval(parsed: ParsedRun) -> None:
    pings = parsed.tables["pings"].to_pylist()
    assert [one["t_us"] for one in pings] == list(range(0, 6_000_000, 100_000))
    # The request and the reply are frames of 98 bytes with 24 of framing, and leave their hosts at 100 Mbit/s.
    assert pings[0]["rtt_us"] == pytest.approx(RTT_US + 2 * 9.76, abs=0.01)


@pytest.mark.parametrize("place", ["", "@bottleneck", "@receiver"])
def test_udp_traffic_is_captured_at_each_place_packet_by_packet_and_without_its_payload(
    parsed: ParsedRun, folder: Path, place: str
) -> None:
    count = parsed.achieved["capture"][f"wave{place}"]["captured"]
    found = [(len(kept), length) for _, length, kept in records(folder / f"captures/wave{place}.pcap")]
    assert found == [(20 + 8, 1514)] * count
    assert count > 9000
