# SPDX-License-Identifier: Apache-2.0
"""The validity gates, each met and missed; base RTT and CPU in detail."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bottleneck
import pytest
from conftest import cable_spec, delay_spec
from fake_backend import FakeBackend

from longfat.guest.counters import TICK_US, others_us, pressure_us
from longfat.spec.gates import GATES, Evidence
from longfat.spec.gates.behaviour import base_rtt_holds, cpu_sufficed
from longfat.spec.runspec import Egress, Flow, Interface, Link, Node, Probes, Queue, RunSpec, Udp
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


DECLARED = {
    "card": {"hosts": "{interrupt_moderation: 100 us, packet_time: 8 us, input_queue: 300}"},
    "impairment": {"keys": "loss: 1 %"},
    "steps": {
        "keys": "changes: [{at: 500 ms, rate: 50 Mbit/s}]",
        "hosts": "{}\n    clock_tolerance: 0 ppm\n    phases: fixed",
    },
}


@pytest.mark.parametrize(
    ("part", "bend", "said"),
    [
        ("card", lambda port: port.update(drops=12), None),
        ("card", lambda port: port["card"].pop(), "card of server is [{'limit': 1000000, 'slot': 100000}], declared"),
        ("card", lambda port: port["card"][1].update(packet=9), "'packet': 9"),
        ("impairment", lambda port: port.update(drops=1010, passed_packets=98_990), None),
        ("impairment", lambda port: port.update(drops=2000, passed_packets=98_000), "1000 +- 189"),
        ("impairment", lambda port: port["impairment"].update(loss=1), "is 1, declared 42949672"),
        ("impairment", lambda port: port["impairment"].update(jitter=5), "is 5, declared 0"),
        ("steps", lambda port: None, None),
        ("steps", lambda port: port.update(steps=1), "did 1 steps, declared 2"),
        ("steps", lambda port: port.update(late_ns=1_001), "1001 ns late, allowed 1000 ns"),
        ("steps", lambda port: port.update(offered_bits=10**8), "0 bits, its steps offered 100000000"),
        (
            "steps",
            lambda port: port.update(offered_bits=10**9, taken_bytes=10**9 // 8),
            "1000000000 bits, its steps let 75012304",
        ),
        ("steps", lambda port: port.update(rate_bps=10**8), "100000000 bit/s, declared 50000000 bit/s"),
    ],
)
def test_a_path_that_was_not_achieved_is_a_miss(tmp_path: Path, part: str, bend: Bend, said: str | None) -> None:
    spec = bottleneck.planned(tmp_path, **DECLARED[part])
    found = bottleneck.missed(spec, tmp_path / "run", lambda port: part in port and port["node"] != "card1", bend)
    assert found == () if said is None else (len(found) == 1 and said in found[0])


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


# 20 ms both ways together; the switch sends a packet of 1538 bytes in 1.23 ms and holds 50 of them, 61.5 ms.
DECLARED_US, PACKET_US, QUEUE_US = 20_000, 1230, 61_520


def spec(starts_us: tuple[int, int]) -> RunSpec:
    """Two senders that meet at a switch, then a delay; the second sends to its own receiver."""
    narrow = Egress(rate_bps=10_000_000, queue=Queue(limit_packets=50))
    names = ("client1", "client2", "switch", "server1", "server2")
    flows = (("f1", "client1", "server1"), ("f2", "client2", "server2"))
    return RunSpec(
        nodes=(*(Node(name, "router" if name == "switch" else "sender") for name in names), Node("delay", "router")),
        links=(
            Link(Interface("client1"), Interface("switch")),
            Link(Interface("client2"), Interface("switch")),
            Link(Interface("switch", narrow), Interface("delay", Egress(delay_us=DECLARED_US // 2))),
            Link(Interface("delay", Egress(delay_us=DECLARED_US // 2)), Interface("server1")),
            Link(Interface("delay", Egress(delay_us=DECLARED_US // 2)), Interface("server2")),
        ),
        flows=tuple(
            Flow(name, sender, receiver, "reno", 10_000_000, start_us=start)
            for (name, sender, receiver), start in zip(flows, starts_us, strict=True)
        ),
        probes=Probes(),
        seed=1,
    )


def missed(run: RunSpec, first_us: int, second_us: int) -> list[str]:
    flows = [{"flow": name, "base_rtt_us": found} for name, found in (("f1", first_us), ("f2", second_us))]
    return [reason.split()[3] for reason in base_rtt_holds(Evidence(run, {"flows": flows, "interfaces": []}, []))]


@pytest.mark.parametrize(
    ("starts_us", "found_us", "right"),
    [
        ((0, 2_000_000), DECLARED_US + 2900 + PACKET_US, True),  # a queue that it finds
        ((0, 2_000_000), DECLARED_US + QUEUE_US, True),
        ((0, 2_000_000), DECLARED_US + QUEUE_US + 5000, False),
        ((0, 2_000_000), DECLARED_US - 1, False),
        ((0, 0), DECLARED_US + 2 * PACKET_US + 2000, False),  # it could see an empty queue
        ((2_000_000, 0), DECLARED_US + 2 * PACKET_US + 2000, False),
    ],
)
def test_the_gate_allows_the_queue_that_a_flow_finds(starts_us: tuple[int, int], found_us: int, right: bool) -> None:
    assert missed(spec(starts_us), DECLARED_US + 1300, found_us) == ([] if right else ["f2"])


@pytest.mark.parametrize(("found_us", "right"), [(19_000, True), (18_000, False), (19_500, False), (20_000, True)])
@pytest.mark.parametrize("timestamps", ["1", "0"])
def test_whole_milliseconds_may_come_from_timestamps(found_us: int, right: bool, timestamps: str) -> None:
    run = spec((0, 2_000_000))
    nodes = (dataclasses.replace(node, sysctls={"net.ipv4.tcp_timestamps": timestamps}) for node in run.nodes)
    found = missed(dataclasses.replace(run, nodes=tuple(nodes)), DECLARED_US + 1300, found_us)
    assert found == ([] if right and (timestamps == "1" or found_us >= DECLARED_US) else ["f2"])


@pytest.mark.parametrize(
    ("cca", "found_us", "right"), [("bbr", 4000, True), ("bbr", 4001, False), ("reno", 4000, False)]
)
def test_a_timestamp_of_a_paced_packet_may_lie_ahead(cca: str, found_us: int, right: bool) -> None:
    run = spec((0, 2_000_000))
    flows = tuple(dataclasses.replace(flow, cca=cca) for flow in run.flows)
    assert missed(dataclasses.replace(run, flows=flows), DECLARED_US + 1300, found_us) == ([] if right else ["f2"])


def test_a_flow_of_another_way_leaves_the_queue_empty() -> None:
    run = spec((0, 2_000_000))
    aside = dataclasses.replace(run.flows[0], receiver="client2")  # not through the narrow port
    apart = dataclasses.replace(run, flows=(aside, run.flows[1]))
    assert missed(apart, 100, DECLARED_US + 2 * PACKET_US + 2000) == ["f2"]


@pytest.mark.parametrize(
    ("waited", "others", "valid"),
    [
        (0.15, None, True),
        (0.3, None, False),
        (0.3, 0.03, True),
        (0.3, 0.6, False),
        (0.15, 3.0, True),
        (None, 1.0, True),
    ],
)
def test_waiting_starves_a_run_only_as_far_as_other_programs_ran(
    waited: float | None, others: float | None, valid: bool
) -> None:
    spec = cable_spec()  # parts of its time, of which a quarter is allowed
    achieved = {"cpu_pressure_us": waited and waited * spec.end_us, "others_cpu_us": others and others * spec.end_us}
    assert (not list(cpu_sufficed(Evidence(spec, achieved, [])))) == valid


def test_others_have_what_they_and_hypervisors_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # user, nice, system, idle, what interrupts took, which the guest's own packets cause, and what was stolen.
    (tmp_path / "stat").write_text("cpu 700 20 300 5000 10 40 90 800 0 0\ncpu0 1 1 1\n")
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure/cpu").write_text("some avg10=1.50 total=70000\nfull avg10=0.00 total=0\n")
    assert pressure_us(tmp_path) == 70_000 + 800 * TICK_US
    for number, name, ticks in ((1, "python3 (a)", "100 50 400 20"), (7, "iperf", "30 40 0 0")):
        (tmp_path / str(number)).mkdir()
        head = f"{number} ({name}) S 0 1 1 0 -1 4194560 1 2 3 4 {ticks}"
        (tmp_path / str(number) / "stat").write_text(f"{head} 20 0 1 0\n")
    assert others_us(tmp_path) is None, "this process sees programs other than its own"
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert others_us(tmp_path) == (1020 - 570 - 70 + 800) * TICK_US
