# SPDX-License-Identifier: Apache-2.0
"""Egress as ``tc`` commands, and ``tc``'s answers as what was achieved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longfat.guest.qdisc import Hook, achieved_egress, egress_commands, looks_us, queue_commands
from longfat.guest.wire import UsedWire, Wire
from longfat.spec.runspec import DeliberateDrop, Egress, Interface, Link, Queue

DATA = Path(__file__).parents[1] / "data"
NOTHING = {
    "rate_bps": None,
    "queue_kind": None,
    "limit_packets": None,
    "limit_bytes": None,
    "delay_us": 0,
    "drops": 0,
}


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


@pytest.mark.parametrize(("mtu_bytes", "framing_bytes"), [(576, 24), (1500, 24), (9000, 24), (1500, 0)])
def test_the_bucket_holds_one_frame_and_not_two(mtu_bytes: int, framing_bytes: int) -> None:
    line = egress_commands("c-eth0", Egress(rate_bps=10**9, framing_bytes=framing_bytes), mtu_bytes)[0]
    burst, frame = int(line.split()[-3]), mtu_bytes + 14 + framing_bytes
    assert line == SHAPED.format(framing_bytes, burst) + f" limit {burst}"
    assert frame < burst < 2 * frame


def test_a_delay_element_has_room_for_all_packets_in_flight() -> None:
    (line,) = egress_commands("r-eth0", Egress(delay_us=15_000), 9000)
    assert line == "qdisc add dev r-eth0 root handle 1: netem delay 15000us limit 1000000"
    assert egress_commands("r-eth0", Egress(), 9000) == []


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


def test_a_deliberate_drop_is_a_filter_that_is_removed_by_the_same_preference() -> None:
    hook = Hook("r", "r-eth1", "ingress")
    assert hook.drop_filter(57).startswith("filter add dev r-eth1 ingress pref 1 protocol ip matchall ")
    assert hook.drop_filter(57).endswith("action pass random determ drop 57")
    assert hook.removal() == "filter del dev r-eth1 ingress pref 1"


RATE, QUEUED = {"rate_bps": 1_000_000_000}, {"queue_kind": "pfifo", "limit_packets": 100}


@pytest.mark.parametrize(
    ("case", "interface", "found"),
    [
        ("shaped", "client1-eth0", RATE | QUEUED),
        ("delay", "delay-eth0", {"delay_us": 15_000}),
        ("delay", "delay-eth1", {"delay_us": 15_000}),
        ("shaped", "lo", {}),  # missing parts are None, so that a gate sees them
        ("shaped", "client1-eth7", {}),
    ],
)
def test_an_interface_is_read_back(case: str, interface: str, found: dict[str, object]) -> None:
    assert achieved_egress(shown(case), interface) == NOTHING | found


def test_a_wire_is_read_back_with_the_queue_in_front_of_it() -> None:
    queue = {"kind": "pfifo", "handle": "10:", "dev": "c-eth0", "root": True, "options": {"limit": 100}, "drops": 7}
    used = UsedWire(
        Wire(1_000_000_000, 15_000_000, 24, jitter_ns=700), sent_bytes=1538, busy_ns=12_304, offered_bits=12_304
    )
    assert achieved_egress([queue], "c-eth0", used) == {
        **NOTHING,
        "rate_bps": 1_000_000_000,
        "queue_kind": "pfifo",
        "limit_packets": 100,
        "delay_us": 15_000,
        "delay_ns": 15_000_000,
        "processing_ns": 700,
        "drops": 7,
        "sent_bytes": 1538,
        "busy_ns": 12_304,
    }


def test_a_wire_that_only_delays_has_no_rate() -> None:
    assert achieved_egress([], "r-eth0", UsedWire(Wire(0, 15_000_000, 24), 1538, 0, 0)) == {
        **NOTHING,
        "delay_us": 15_000,
        "delay_ns": 15_000_000,
        "processing_ns": 0,
    }


def test_a_drop_of_the_queue_is_counted_once() -> None:
    qdiscs = shown("drops")
    assert [qdisc["drops"] for qdisc in qdiscs if qdisc["dev"] == "client1-eth0"] == [24, 24]
    assert achieved_egress(qdiscs, "client1-eth0")["drops"] == 24


@pytest.mark.parametrize(
    ("case", "interface", "limit_bytes"), [("bfifo", "server-eth0", 150_000), ("red", "client1-eth0", 400_000)]
)
def test_a_limit_in_bytes_is_read_back_as_bytes(case: str, interface: str, limit_bytes: int) -> None:
    found = achieved_egress(shown(case), interface)
    assert (found["queue_kind"], found["limit_packets"], found["limit_bytes"]) == (case, None, limit_bytes)


def test_an_interface_whose_inner_queue_is_gone_has_no_queue_kind() -> None:
    qdiscs = [qdisc for qdisc in shown("shaped") if qdisc["kind"] != "pfifo"]
    found = achieved_egress(qdiscs, "client1-eth0")
    assert (found["rate_bps"], found["queue_kind"], found["limit_packets"]) == (1_000_000_000, None, None)
