# SPDX-License-Identifier: Apache-2.0
"""Policers: from the manifest to the kernel's filter, and read back."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from bottleneck import problem, study

from longfat.guest.netlink import attribute, attributes
from longfat.guest.policers import TCA_ACT_STATS, read, request
from longfat.guest.queues import TCA_STATS_QUEUE, TCMSG
from longfat.spec.runspec import Policer
from longfat.spec.units import Rate

KEYS = "policer: {rate: 50 Mbit/s, burst: 30 kB}"


def dumped(body: bytes, drops: int) -> bytes:
    """The body of the request for a filter as a dump gives it back, with the statistics of its action."""
    (kind, _), (options, actions) = attributes(body, TCMSG.size)
    ((inner, listed),) = attributes(actions, 0)
    ((place, action),) = attributes(listed, 0)
    statistics = attribute(TCA_ACT_STATS, attribute(TCA_STATS_QUEUE, struct.pack("=IIIII", 0, 0, drops, 0, 0)))
    return (
        body[: TCMSG.size]
        + attribute(kind, b"matchall\0")
        + attribute(options, attribute(inner, attribute(place, action + statistics)))
    )


@pytest.mark.parametrize("policer", [Policer(50_000_000, 30_000), Policer(8_000, 1_514), Policer(40 * 10**9, 10**6)])
def test_a_policer_comes_back_as_the_kernel_was_told(policer: Policer) -> None:
    found = read([b"\0" * TCMSG.size, dumped(request(7, policer).body, drops=5)])
    assert found is not None
    assert (found.drops, found.policer.rate_bps) == (5, policer.rate_bps)
    assert abs(found.policer.burst_bytes - policer.burst_bytes) <= 1 + policer.rate_bps * 64 / 8e9
    assert read([]) is None


@pytest.mark.parametrize(
    ("rate", "burst", "key"),
    [
        ("50 Mbit/s", "1500 B", "burst"),  # less than a frame
        ("24 Mbit/s", "1514 B", "burst"),  # a frame, but the kernel keeps it in ticks
        ("20 Gbit/s", "1590 B", "burst"),
        ("3 bit/s", "30 kB", "rate"),
        ("1001 bit/s", "30 kB", "rate"),
        ("2 Mbit/s", "512 MiB", "burst"),
    ],
)
def test_a_bucket_that_the_kernel_keeps_too_small_or_not_at_all_is_refused(
    tmp_path: Path, rate: str, burst: str, key: str
) -> None:
    said = problem(tmp_path, keys=KEYS.replace("50 Mbit/s", rate).replace("30 kB", burst))
    assert said.startswith(f"experiments[0].topology.policer.{key}: ")


@pytest.mark.parametrize("rate", ["24 Mbit/s", "20 Gbit/s", "80 kbit/s", "999 kbit/s"])
def test_the_least_burst_that_is_offered_passes_a_full_frame(tmp_path: Path, rate: str) -> None:
    bps = Rate.parse(rate).value
    keys = KEYS.replace("50 Mbit/s", rate)
    least = next(burst for burst in range(1514, 3000) if Policer(bps, burst).passes(1514))
    if least > 1514:
        assert "policer.burst" in problem(tmp_path, keys=keys.replace("30 kB", f"{least - 1} B"))
    study(tmp_path, keys=keys.replace("30 kB", f"{least} B"))


def test_segments_of_offloads_need_a_bucket_of_their_length(tmp_path: Path) -> None:
    queue = "{kind: bfifo, limit: 150 kB}"
    study(tmp_path, queue, KEYS.replace("30 kB", "65550 B"), "{offloads: [gso]}")
    assert "65550 B" in problem(tmp_path, queue, KEYS.replace("30 kB", "60 kB"), "{offloads: [tso]}")
