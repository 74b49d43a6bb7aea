# SPDX-License-Identifier: Apache-2.0
"""The validity gates, each met and missed."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import delay_spec
from fake_backend import FakeBackend

from longfat.spec.gates import GATES, Evidence
from longfat.spec.runspec import Node, Udp
from longfat.study.traffic import misses

SCALABLE = {"net.ipv4.tcp_scalable.a_ppm": "20000", "net.ipv4.tcp_scalable.b_ppm": "125000"}
SYSCTLS = {"net.ipv4.tcp_rmem": "4096 87380 4194304", **SCALABLE}
PLAIN = delay_spec(cca="scalable", window_bytes=1 << 21)
SPEC = dataclasses.replace(PLAIN, nodes=(Node("client1", "sender", SYSCTLS, offloads=("tso",)), *PLAIN.nodes[1:]))


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("run")
    FakeBackend().run(SPEC, folder)
    return _json(folder / "achieved.json"), _json(folder / "flows.json")


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


Truth = tuple[dict[str, Any], list[dict[str, Any]]]
Bend = Callable[[dict[str, Any]], object]


def test_a_run_that_achieved_what_was_declared_has_no_miss(truth: Truth) -> None:
    assert misses(Evidence(SPEC, *truth)) == ()


def _node(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data["nodes"]["client1"]
    return found


def _port(place: int, **values: object) -> Bend:
    return lambda achieved: achieved["interfaces"][place].update(values)


def _flow(**values: object) -> Bend:
    return lambda achieved: achieved["flows"][0].update(values)


@pytest.mark.parametrize(
    ("bend", "said"),
    [
        (lambda a: _node(a)["sysctls"].update({"net.ipv4.tcp_rmem": "4096 1 2"}), "tcp_rmem of client1 is '4096 1 2'"),
        (lambda a: _node(a)["sysctls"].pop("net.ipv4.tcp_rmem"), "is None, declared '4096 87380 4194304'"),
        (lambda a: _node(a).update(offloads_on=["gro", "tso"]), "['gro', 'tso'], declared ['tso']"),
        (_port(0, mtu_bytes=1500), "client1-eth0 is 1500 B, declared 9000 B"),
        (_port(0, rate_bps=None), "client1-eth0 is 0 bit/s, declared 1000000000 bit/s"),
        (_port(0, sent_bytes=994_000_000 // 8, busy_ns=10**9), "994000000 bit/s while it was busy"),
        (_port(1, rate_bps=8), "delay-eth0 is 8 bit/s, declared 0 bit/s"),
        (_port(1, delay_us=10_000), "delay-eth0 is 10000 us, declared 15000 us"),
        (_port(0, queue_kind="fq_codel"), "client1-eth0 is fq_codel, declared pfifo"),
        (_port(0, limit_packets=1000), "client1-eth0 is 1000, declared 100"),
        (_flow(base_rtt_us=29_999), "stream1 is 29999 us, declared 30000 us (at most 32645 us)"),
        (_flow(base_rtt_us=32_700), "stream1 is 32700 us, declared 30000 us (at most 32645 us)"),
        (_flow(base_rtt_us=None), "no round trip of stream1"),
        (_flow(cca="cubic"), "stream1 is cubic, declared scalable"),
        (_flow(cca_parameters={"a_ppm": 10_000, "b_ppm": 125_000}), "a_ppm of scalable is 10000"),
        (_flow(cca_parameters={"a_ppm": 20_000}), "b_ppm of scalable is None"),
        (_flow(send_buffer_bytes=425_984), "send buffer of stream1 is 425984 B, declared 4194304 B"),
        (lambda a: a["receive_buffers"].clear(), "receive buffer of stream1 was not read back"),
        (_port(2, drops=3), "delay-eth1 dropped 3 packets"),
        (_port(2, deliberate_drops=0), "delay-eth1 are 0, declared 1"),
        (_port(0, deliberate_drops=1), "client1-eth0 are 1, declared 0"),
        (lambda a: a.update(memory_pressure=2), "memory pressure 2 times"),
        (lambda a: a["capture"]["stream1"].update(dropped=7), "lost 7 packets"),
        (lambda a: a["capture"].clear(), "stream1 was not captured"),
        (lambda a: a["interfaces"].pop(), "interface server-eth0 was not read back"),
        (lambda a: a["flows"].clear(), "flow stream1 was not reported"),
    ],
)
def test_each_miss_has_one_reason_with_both_values(truth: Truth, bend: Bend, said: str) -> None:
    achieved = copy.deepcopy(truth[0])
    bend(achieved)
    (reason,) = misses(Evidence(SPEC, achieved, truth[1]))
    assert said in reason


def test_short_frames_that_find_a_fast_wire_idle_lose_the_part_of_a_nanosecond_each(truth: Truth) -> None:
    achieved = copy.deepcopy(truth[0])
    frames, frame_bytes = 1_000_000, 54 + 24  # 62.4 ns at 10 Gbit/s, of which the wire counts 62
    fast = dataclasses.replace(SPEC.links[0].a.egress, rate_bps=10**10)
    link = dataclasses.replace(SPEC.links[0], a=dataclasses.replace(SPEC.links[0].a, egress=fast))
    spec = dataclasses.replace(SPEC, links=(link, *SPEC.links[1:]))
    achieved["interfaces"][0].update(rate_bps=10**10, sent_bytes=frames * frame_bytes, busy_ns=62 * frames)
    assert misses(Evidence(spec, achieved, truth[1])) == ()
    achieved["interfaces"][0].update(busy_ns=63 * frames)
    (reason,) = misses(Evidence(spec, achieved, truth[1]))
    assert "while it was busy, declared 10000000000 bit/s" in reason


@pytest.mark.parametrize(
    ("goodput_bps", "later_us", "missed"),
    [(1_008_000_000, 0, True), (990_000_000, 0, False), (1_008_000_000, 1_000_000, False)],
    ids=["above the rate", "buffers that empty later", "a flow that began late"],
)
def test_goodput_above_the_rate_is_a_miss(truth: Truth, goodput_bps: int, later_us: int, missed: bool) -> None:
    reports = copy.deepcopy(truth[1])
    reports[0] |= {"bytes_received": 126_000_000, "goodput_bps": goodput_bps}
    reasons = misses(Evidence(SPEC, truth[0], reports, end_us=SPEC.end_us + later_us if later_us else None))
    assert [reason.split()[-2] for reason in reasons] == (["991369772"] if missed else [])


def test_what_cannot_be_read_is_a_reason_and_no_crash(truth: Truth) -> None:
    reasons = misses(Evidence(SPEC, {"nodes": {}}, truth[1]))
    assert any("cannot read what was achieved: KeyError('interfaces')" in reason for reason in reasons)
    assert len(reasons) >= len(GATES) / 2


@pytest.mark.parametrize(("sent", "arrived", "missed"), [(665, 665, 0), (600, 600, 1), (666, 0, 1)])
def test_udp_traffic_that_its_host_cannot_send_or_that_never_arrives_is_a_miss(
    truth: Truth, sent: int, arrived: int, missed: int
) -> None:
    spec = dataclasses.replace(SPEC, udp=(Udp("wave", "client1", "server", 8_000_000, 1_000_000),))
    counts = {"due_packets": 667, "sent_packets": sent, "received_packets": arrived, "arrived_packets": arrived}
    found = misses(Evidence(spec, *truth, {"udp": [{"udp": "wave", "packet_bytes": 1500, **counts}]}))
    assert len(found) == missed and all("wave" in reason for reason in found)
