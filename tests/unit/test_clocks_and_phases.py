# SPDX-License-Identifier: Apache-2.0
"""Random clocks, distances and processing times of a run: their ranges, their seeds and their gates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from manifests import HEAD, changed, plan_of, warnings_of

from longfat.backends import ns2, ns3
from longfat.backends.simulated import achieved
from longfat.guest.wire import Wire
from longfat.spec.gates import Evidence
from longfat.spec.gates.settings import rate_and_delay_hold
from longfat.spec.links import Change, Egress, Trace
from longfat.spec.network import Port, capacity_bits, ports, steps
from longfat.spec.runspec import RunSpec

STUDY = (
    HEAD
    + """\
  - id: first
    topology: {kind: dumbbell, rate: 20 Mbit/s, host_rate: 1 Gbit/s, rtt: 30 ms, senders: 2, receivers: 2}
    flows:
      - {name: a, from: client1, to: server1, algorithm: standard, duration: 5 s}
      - {name: b, from: client2, to: server2, algorithm: standard, duration: 5 s}
    repetitions: 12
"""
)
PACKET_NS = 1538 * 8 * 50  # at 20 Mbit/s
CLIENTS_SERVERS = ("client", "server")
NO_TIME = "    hosts: {processing_time: {jitter: 0 us}}\n"
EXACT = "    clock_tolerance: 0 ppm\n    phases: fixed\n"


def specs(tmp_path: Path, text: str = STUDY, backend: str = "virtual") -> list[RunSpec]:
    return [run.spec for run in plan_of(tmp_path, text, backend=backend).runs]


def drawn(spec: RunSpec) -> dict[str, tuple[int, int]]:
    """Clock and distance of each interface."""
    return {port.name: (port.egress.clock_ppb, port.egress.distance_ns) for port in ports(spec)}


def test_each_interface_with_a_rate_has_its_own_clock_within_the_tolerance_in_each_repetition(tmp_path: Path) -> None:
    every = specs(tmp_path)
    clocks = [port.egress.clock_ppb for spec in every for port in ports(spec) if port.egress.rate_bps]
    assert len(clocks) == len(set(clocks)) == 12 * 5  # four hosts and the bottleneck
    assert -50_000 <= min(clocks) < -30_000 and 30_000 < max(clocks) <= 50_000
    assert not any(port.egress.clock_ppb for spec in every for port in ports(spec) if not port.egress.rate_bps)


def test_each_host_is_at_its_own_distance_of_less_than_a_packet_of_the_slowest_link(tmp_path: Path) -> None:
    every = specs(tmp_path)
    distances = [port.egress.distance_ns for spec in every for port in ports(spec) if port.node[:6] in CLIENTS_SERVERS]
    assert len(distances) == len(set(distances)) == 12 * 4
    assert 0 <= min(distances) < PACKET_NS / 4 and PACKET_NS * 3 / 4 < max(distances) < PACKET_NS
    routers = [port for spec in every for port in ports(spec) if port.node[:6] not in CLIENTS_SERVERS]
    assert routers and not any(port.egress.distance_ns for port in routers)


def test_points_of_a_sweep_and_paired_experiments_draw_the_same_places(tmp_path: Path) -> None:
    swept = STUDY.replace("20 Mbit/s", '"${rate}"').replace(
        "    repetitions: 12", "    sweep: {product: {rate: [20 Mbit/s, 5 Mbit/s]}}\n    repetitions: 2"
    )
    paired = swept + "  - id: second\n    like: first\n    pairs_with: first\n    clock_tolerance: 100 ppm\n"
    runs = {
        (run.experiment, run.factors["rate"], run.repetition): drawn(run.spec) for run in plan_of(tmp_path, paired).runs
    }
    fast, slow = runs["first", 20_000_000, 2], runs["first", 5_000_000, 2]
    twice = runs["second", 20_000_000, 2]
    assert runs["first", 20_000_000, 1] != fast
    for name in ("client1-eth0", "server2-eth0"):
        assert slow[name][0] == fast[name][0]
        assert slow[name][1] == pytest.approx(4 * fast[name][1], abs=4)
        assert twice[name] == (pytest.approx(2 * fast[name][0], abs=2), fast[name][1])


def test_a_tolerance_of_0_ppm_and_fixed_phases_are_exact_and_so_are_real_machines(tmp_path: Path) -> None:
    for text, backend in ((STUDY + EXACT, "virtual"), (STUDY, "mininet"), (STUDY, "fake")):
        every = specs(tmp_path, text, backend)
        assert {pair for spec in every for pair in drawn(spec).values()} == {(0, 0)}
        assert not any(port.egress.processing_ns for spec in every for port in ports(spec))
    assert {spec.to_json().count("clock_ppb") for spec in every} == {0}


@pytest.mark.parametrize(
    ("nominal", "ppb", "wire"),
    [(10**9, 50_000, 1_000_050_000), (56_000, -9_000, 55_999), (56_000, 8_000, 56_000), (1, -(10**7), 1)],
)
def test_a_clock_makes_a_rate_to_the_nearest_bit(nominal: int, ppb: int, wire: int) -> None:
    egress = Egress(nominal, delay_us=3, clock_ppb=ppb, distance_ns=7)
    assert egress.wire_bps == wire
    assert Wire.of(egress) == Wire(wire, 3_007, 24)


def test_changes_keep_clock_and_distance_and_a_trace_is_exempt() -> None:
    changing = Egress(
        10**8, delay_us=10, changes=(Change(5, rate_bps=2 * 10**8, delay_us=20),), clock_ppb=10_000, distance_ns=1
    )
    assert [(step.rate_bps, step.delay_ns) for step in steps(changing, 10)] == [
        (100_001_000, 10_001),
        (200_002_000, 20_001),
    ]
    assert capacity_bits(steps(changing, 10), 10) == 500 + 1000
    traced = steps(replace(changing, changes=(), trace=Trace("", "1")), 10)
    assert traced == steps(replace(changing, changes=(), trace=Trace("", "1"), clock_ppb=0), 10)


@pytest.mark.parametrize("change", [{}, {"rate_bps": 1}, {"delay_ns": 5}, {"processing_ns": 0}])
def test_the_drawn_rate_and_distance_must_be_read_back_to_the_bit_and_nanosecond(
    tmp_path: Path, change: dict[str, int]
) -> None:
    spec = specs(tmp_path)[0]
    port = next(port for port in ports(spec) if port.name == "client2-eth0")
    read = achieved(spec)
    for one in read["interfaces"]:
        own = next(other for other in ports(spec) if other.name == one["interface"])
        one |= {"delay_ns": own.egress.wire_delay_ns, "processing_ns": own.egress.processing_ns}
        one |= change if own == port else {}
    found = list(rate_and_delay_hold(Evidence(spec, read, ())))
    assert len(found) == len(change) and all(port.name in reason for reason in found)


def test_simulators_have_the_drawn_rate_and_delay(tmp_path: Path) -> None:
    spec = specs(tmp_path, backend="ns2")[0]
    port: Port = next(port for port in ports(spec) if port.name == "client1-eth0")
    megabits = 1000 * (1 + port.egress.clock_ppb / 1e9) * 1500 / 1538
    _, _, _, _, mbps, delay_us, *_ = next(
        line for line in ns2.script(spec).splitlines() if line.startswith("port 0 ")
    ).split()
    assert (float(mbps), float(delay_us)) == (pytest.approx(megabits, rel=1e-8), port.egress.distance_ns / 1000)
    link = next(line for line in ns3.description(spec).splitlines() if line.startswith("link 0 "))
    assert int(link.split()[3]) == port.egress.distance_ns // 2


ONE_RATE = STUDY.replace("host_rate: 1 Gbit/s, ", "")
LOT = changed(
    STUDY,
    ("dumbbell, rate: 20 Mbit/s, host_rate: 1 Gbit/s", "parking_lot, rate: 20 Mbit/s, host_rate: 20 Mbit/s"),
    ("senders: 2, receivers: 2", "bottlenecks: 2"),
    *(("server1", "server"), ("server2", "sink1"), ("client2", "cross1")),
)
FASTER_LOT = changed(LOT, ("host_rate: 20", "host_rate: 30"), ("bottlenecks: 2", "bottlenecks: 1"))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (STUDY, None),
        (ONE_RATE, None),
        (STUDY + EXACT, "phases"),
        (STUDY + "    phases: fixed\n", "phases"),
        (STUDY + "    phases: fixed\n    hosts: {processing_time: {jitter: 600 us}}\n", None),
        (STUDY + "    clock_tolerance: 0 ppm\n", None),
        (ONE_RATE + "    clock_tolerance: 0 ppm\n" + NO_TIME, "clock_tolerance"),
        (STUDY + "    clock_tolerance: 0 ppm\n" + NO_TIME, None),
        (ONE_RATE.replace("receivers: 2}", "receivers: 2, bottleneck_queue: {kind: codel}}") + EXACT, None),
        (ONE_RATE.replace("from: client2", "from: client1") + EXACT, None),
        (LOT + "    clock_tolerance: 0 ppm\n" + NO_TIME, "clock_tolerance"),
        (FASTER_LOT + "    clock_tolerance: 0 ppm\n" + NO_TIME, None),
    ],
)
def test_flows_in_exact_step_at_a_drop_tail_queue_are_warned_of(tmp_path: Path, text: str, key: str | None) -> None:
    found = [str(one).removeprefix("experiments[0].") for _, one in warnings_of(tmp_path, text)]
    assert [one for one in found if one in ("phases", "clock_tolerance")] == ([key] if key else [])
