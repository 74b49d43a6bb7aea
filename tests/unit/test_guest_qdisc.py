# SPDX-License-Identifier: Apache-2.0
"""Egress as ``tc`` commands, and ``tc``'s answers as what was achieved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longfat.guest.qdisc import achieved_egress, egress_commands, looks_us, queue_commands
from longfat.spec.runspec import DeliberateDrop, Egress, Interface, Link, Queue

DATA = Path(__file__).parents[1] / "data"
NOTHING = {"rate_bps": None, "queue_kind": None, "limit_packets": None, "limit_bytes": None, "delay_us": 0, "drops": 0}


def shown(case: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = json.loads((DATA / f"tc-6.1.0-{case}.json").read_text())
    return answer


SHAPED = "qdisc add dev c-eth0 root handle 1: stab overhead {} linklayer ethernet tbf rate 1000000000bit burst {}"
QUEUE = "qdisc add dev c-eth0 parent 1:1 handle 10: {}"


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (Queue(limit_packets=100), "pfifo limit 100"),
        (Queue("bfifo", None, 150_000), "bfifo limit 150000"),
        (
            Queue("red", None, 400_000, {"min": 30_000, "ecn": True, "avpkt": 1500}),
            "red limit 400000 avpkt 1500 ecn min 30000",
        ),
    ],
)
def test_a_shaped_interface_is_a_bucket_of_one_frame_around_its_queue(queue: Queue, words: str) -> None:
    assert egress_commands("c-eth0", Egress(rate_bps=10**9, queue=queue), 1500) == [
        SHAPED.format(24, 1602) + " limit 1602",
        QUEUE.format(words),
    ]


def test_in_front_of_a_wire_stands_the_queue_alone() -> None:
    egress = Egress(rate_bps=1_000_000_000, queue=Queue(limit_packets=100), delay_us=15_000)
    assert queue_commands("c-eth0", egress) == [
        "qdisc add dev c-eth0 root handle 10: stab overhead 24 linklayer ethernet pfifo limit 100"
    ]
    assert queue_commands("r-eth0", Egress(delay_us=15_000)) == []


def test_a_deliberate_drop_is_looked_for_more_often_where_a_link_is_so_fast_that_it_would_come_twice() -> None:
    def looks(rate_bps: int, mtu_bytes: int, packet: int = 100) -> int:
        egress = Egress(rate_bps, drops=(DeliberateDrop(0), DeliberateDrop(1, packet)))
        return looks_us([Link(Interface("c", egress), Interface("r"), mtu_bytes)])

    assert looks(1_000_000_000, 1500) == looks(1_000_000_000, 9000) == 1000
    assert looks(10_000_000_000, 1500) == looks(1_000_000_000, 1500, packet=3) == 50
    assert looks(1_000_000, 1500, packet=1) == 1000


RATE, QUEUED = {"rate_bps": 1_000_000_000}, {"queue_kind": "pfifo", "limit_packets": 100}


@pytest.mark.parametrize(
    ("case", "interface", "found"),
    [
        ("shaped", "client1-eth0", RATE | QUEUED),
        ("drops", "client1-eth0", RATE | QUEUED | {"limit_packets": 5, "drops": 24}),  # the shaper includes its queue
        ("delay", "delay-eth0", {"delay_us": 15_000}),
        ("delay", "delay-eth1", {"delay_us": 15_000}),
        ("shaped", "lo", {}),  # missing parts are None, so that a gate sees them
        ("shaped", "client1-eth7", {}),
    ],
)
def test_an_interface_is_read_back(case: str, interface: str, found: dict[str, object]) -> None:
    assert achieved_egress(shown(case), interface) == NOTHING | found
