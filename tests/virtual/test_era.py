# SPDX-License-Identifier: Apache-2.0
"""What each switch of an older stack does to a flow, against the same flow without it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from guests import one_flow
from studies import done

from longfat.spec.runspec import DeliberateDrop, Egress, Interface, Link, Probes, Queue, RunSpec

pytestmark = pytest.mark.virtual

LOSS_US = 120_000  # in slow start, with some 160 segments in flight
WINDOW_BYTES = 2 << 20
SCALABLE_B = 1 / 8
MSS_BYTES = 9000 - 52  # IP, TCP, timestamps
SSTHRESH_UNSET = 0x7FFFFFFF
Samples = list[dict[str, Any]]


def samples(spec: RunSpec, folder: Path) -> Samples:
    """Return the samples of the sender's socket in a valid run: microseconds, and windows in segments."""
    return list(done(spec, folder).tables["sockets"].to_pylist())


def scalable_flow(sender: dict[str, str]) -> RunSpec:
    """A flow of Scalable TCP, which gives up an eighth of its window, sampled every 5 ms."""
    each_sack = {"net.ipv4.tcp_comp_sack_nr": "0"}  # rate halving counts ACKs
    spec = one_flow(sender=sender, receiver=each_sack, duration_us=1_200_000)
    flow = dataclasses.replace(spec.flows[0], cca="scalable")
    return dataclasses.replace(spec, flows=(flow,), probes=Probes(socket_interval_us=5_000))


def with_one_loss(spec: RunSpec) -> RunSpec:
    """The same run with a queue that nothing overflows, and one data packet lost on its way out of the router."""
    first, second = spec.links
    roomy = Egress(rate_bps=1_000_000_000, queue=Queue(limit_packets=5000))
    lossy = dataclasses.replace(second.a.egress, drops=(DeliberateDrop(LOSS_US),))
    links = (
        Link(dataclasses.replace(first.a, egress=roomy), first.b, first.mtu_bytes),
        Link(Interface(second.a.node, lossy), second.b, second.mtu_bytes),
    )
    return dataclasses.replace(spec, links=links)


def thresholds(seen: Samples) -> list[int]:
    return [one["ssthresh_segments"] for one in seen if one["ssthresh_segments"] < SSTHRESH_UNSET]


def windows_after_the_loss(seen: Samples) -> tuple[float, float]:
    """The smallest window of the 100 ms after it came down, and the threshold, as shares of the window before."""
    cut = next(one for one in seen if one["ssthresh_segments"] < SSTHRESH_UNSET)
    before = cut["ssthresh_segments"] / (1 - SCALABLE_B)
    end_of_recovery = cut["t_us"] + 28_000  # a round trip, less the time since the window came down
    after = [one["cwnd_segments"] for one in seen if end_of_recovery < one["t_us"] < end_of_recovery + 100_000]
    return min(after) / before, cut["ssthresh_segments"] / before


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """A run of today's stack with one loss."""
    return samples(with_one_loss(scalable_flow({})), tmp_path_factory.mktemp("plain") / "run")


def test_proportional_rate_reduction_ends_at_the_share_that_the_algorithm_keeps(plain: Samples) -> None:
    lowest, threshold = windows_after_the_loss(plain)
    assert lowest == pytest.approx(threshold)


def test_rate_halving_takes_an_algorithm_that_keeps_seven_eighths_down_to_half(tmp_path: Path) -> None:
    seen = samples(with_one_loss(scalable_flow({"net.ipv4.tcp_rate_halving": "1"})), tmp_path / "run")
    lowest, threshold = windows_after_the_loss(seen)
    assert threshold / 2 - 0.05 <= lowest <= 0.55
    # Slow start brings it back to the threshold: later it is above it again.
    assert seen[-1]["cwnd_segments"] >= seen[-1]["ssthresh_segments"]


@pytest.mark.parametrize(("percent", "divisor"), [("100", 2**3), ("0", 1)])
def test_a_loss_halves_the_threshold_again_and_again(
    plain: Samples, tmp_path: Path, percent: str, divisor: int
) -> None:
    halvings = {"net.ipv4.tcp_loss_halvings": "3", "net.ipv4.tcp_loss_halvings_percent": percent}
    repeated = samples(with_one_loss(scalable_flow(halvings)), tmp_path / "repeated")
    assert min(thresholds(repeated)) == min(thresholds(plain)) // divisor


@pytest.mark.parametrize(("reaction", "kept"), [("0", 1 - SCALABLE_B), ("1", 0.5), ("2", None)])
def test_a_full_local_queue_takes_the_share_of_the_algorithm_or_half_or_nothing(
    tmp_path: Path, reaction: str, kept: float | None
) -> None:
    spec = scalable_flow({"net.ipv4.tcp_small_queues": "0", "net.ipv4.tcp_local_congestion": reaction})
    parsed = done(spec, tmp_path / "run")
    refused = [row["drops_total"] for row in parsed.tables["queues"].to_pylist() if row["interface"] == "client1-eth0"]
    assert refused[-1] > 0
    seen = parsed.tables["sockets"].to_pylist()
    if kept is None:
        assert thresholds(seen) == []
        return
    cut = next(k for k, one in enumerate(seen) if one["ssthresh_segments"] < SSTHRESH_UNSET)
    # The window grew for up to one more sample before the cut: in slow start, by up to what 5 ms acknowledge.
    grown = 1 + 5_000 / 30_000
    assert kept - 0.01 <= seen[cut]["ssthresh_segments"] / seen[cut - 1]["cwnd_segments"] <= kept * grown + 0.01


FIXED = {"net.ipv4.tcp_fixed_win_scale": "1", "net.ipv4.tcp_adv_win_scale": "2"}


@pytest.mark.parametrize(
    ("receiver", "part"),
    [
        ({}, 3 / 4),
        ({"net.ipv4.tcp_adv_win_scale": "-2"}, 1 / 4),
        ({"net.ipv4.tcp_rcv_truesize": str(16 << 10)}, 3 / 8),  # segments that take more memory than their data
    ],
)
def test_the_window_can_be_a_fixed_part_of_the_receive_buffer(
    tmp_path: Path, receiver: dict[str, str], part: float
) -> None:
    counting = {"net.ipv4.tcp_slow_start_ack_counting": "1"}
    spec = one_flow(receiver=FIXED | receiver, sender=counting, duration_us=600_000)
    flow = dataclasses.replace(spec.flows[0], window_bytes=WINDOW_BYTES, send_window_bytes=32 << 20)
    limited = dataclasses.replace(spec, flows=(flow,), probes=Probes(socket_interval_us=5_000))
    most = max(one["inflight_segments"] for one in samples(limited, tmp_path / "run"))
    buffer_bytes = 2 * WINDOW_BYTES  # socket(7): SO_RCVBUF is doubled
    assert most * MSS_BYTES / buffer_bytes == pytest.approx(part, rel=0.02)
