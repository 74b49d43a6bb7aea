# SPDX-License-Identifier: Apache-2.0
"""Metrics of a whole link: from samples with known answers, and from a study with competing flows."""

from __future__ import annotations

import numpy as np
import pytest
from fabricated_results import make_results
from manifests import HEAD, study_of
from tables_in_memory import flow_row

from longfat.data.opened import OpenedStudy
from longfat.metrics import bottleneck, cuts, goodput
from longfat.metrics.data import Arrivals, NoValue, Port, Samples, slowest
from longfat.metrics.quantities import Selection, measure

TENTHS = np.arange(1, 101) * 1e5  # 10 s, a sample each 100 ms


def port(bps: float, node: str = "switch") -> Port:
    """A port of 100 Mbit/s that sends nothing for a second and at ``bps`` then."""
    return Port(node, TENTHS, np.maximum(TENTHS - 1e6, 0) * bps / 8e6, TENTHS * 100)


def test_a_busy_link_is_at_a_hundred_percent_after_its_start() -> None:
    assert bottleneck.utilisation_percent(port(1e8), 2e6) == pytest.approx(100)
    assert bottleneck.utilisation_percent(port(5e7), 2e6, 8e6) == pytest.approx(50)
    assert bottleneck.utilisation_percent(port(1e8), 0) == pytest.approx(100 * 9.0 / 9.9)
    assert bottleneck.utilisation_percent(port(4e8), 2e6) == pytest.approx(400), "an impossible value is shown"
    ahead = Port("switch", TENTHS, TENTHS * 100 / 8 + np.where(TENTHS > 5e6, 1538, 0), TENTHS * 100)
    assert bottleneck.utilisation_percent(ahead, 0) == 100, "a frame on its way out is no excess"
    with pytest.raises(NoValue):
        bottleneck.utilisation_percent(port(1e8), 1e7)


def test_a_link_that_becomes_faster_is_used_by_its_rate_at_each_moment() -> None:
    capacity = np.where(TENTHS <= 5e6, TENTHS * 5, 25e6 + (TENTHS - 5e6) * 20)
    busy = Port("switch", TENTHS, capacity / 8, capacity)
    assert bottleneck.utilisation_percent(busy, 0) == 100
    assert bottleneck.utilisation_percent(busy, 6e6) == 100
    assert bottleneck.utilisation_percent(Port("switch", TENTHS, capacity / 16, capacity), 6e6) == pytest.approx(50)


def arrived(per_s: float, marked_per_s: float) -> Arrivals:
    return Arrivals(TENTHS, TENTHS * per_s / 1e6, TENTHS * marked_per_s / 1e6)


def test_marks_are_a_share_of_packets_and_a_number_a_second() -> None:
    both = [arrived(1000, 2), arrived(3000, 2)]
    assert bottleneck.marked_ppm(both[:1], 1e6) == pytest.approx(2000)
    assert bottleneck.marked_ppm(both, 1e6) == pytest.approx(1000)
    assert bottleneck.marks_per_s(both, 1e6) == pytest.approx(4)
    with pytest.raises(NoValue):
        bottleneck.marked_ppm([arrived(0, 0)], 1e6)


def test_the_bottleneck_is_the_slowest_port_and_idle_hosts_do_not_hide_it() -> None:
    idle = Port("client3", TENTHS, TENTHS, TENTHS * 1e4)
    assert slowest([idle, port(1e8), port(1e8, "client1")], {"client1"}).node == "switch"
    with pytest.raises(NoValue):
        slowest([port(1e8), port(1e8, "switch2")], {"client1"})


def test_fairness_is_between_connections_not_between_groups() -> None:
    rows = [{**flow_row("fast", 60), "streams": 2}, {**flow_row("slow", 30), "streams": 3}]
    assert goodput.fairness(rows, "fast") == pytest.approx(3)
    assert goodput.fairness(rows, "slow") == pytest.approx(1 / 3)
    with pytest.raises(NoValue):
        goodput.fairness(rows[:1], "fast")


def test_goodput_of_a_connection_is_the_mean_over_connections() -> None:
    rows = [{**flow_row("seven", 70), "streams": 7}, {**flow_row("one", 26), "streams": 1}]
    assert goodput.each_mbps(rows, "seven") == pytest.approx(10)
    assert goodput.each_mbps(rows) == pytest.approx(12)
    with pytest.raises(NoValue):
        goodput.each_mbps(rows, "two")


def sawtooth(period_s: float, slope_per_s: float) -> Samples:
    """A window that grows by a slope above 1000 segments, halved at the end of each period; 30 s, each 100 ms."""
    t_us = np.arange(0, 300) * 1e5
    since_cut = np.mod(np.arange(0, 300), round(10 * period_s)) / 10
    state = np.where((since_cut == 0) & (t_us > 0), 2.0, 0.0)
    threshold = np.full(300, 1000.0)
    return Samples(t_us, state, 1000 + slope_per_s * since_cut, threshold, t_us)


def test_growth_and_period_are_those_of_a_sawtooth() -> None:
    samples = sawtooth(5, 12)
    assert cuts.window_growth(samples) == pytest.approx(12)
    assert cuts.cut_interval_s(samples) == pytest.approx(5)
    with pytest.raises(NoValue):
        cuts.cut_interval_s(samples, 21e6)
    slow_start = Samples(samples.t_us, samples.ca_state, samples.cwnd, samples.ssthresh + 1e6, samples.acked)
    with pytest.raises(NoValue):
        cuts.window_growth(slow_start)


MANIFEST = """\
  - id: pairs
    topology: {kind: dumbbell, rate: 100 Mbit/s, host_rate: 10 Gbit/s, rtt: 30 ms, senders: 2, bottleneck_queue: {
               kind: red, limit: 900, min: 50, max: 150, probability: 10 %, ecn: true}}
    flows:
      - {name: one, from: client1, to: server, algorithm: {cca: highspeed}, duration: 3 s, streams: 2,
         start_jitter: 1 ms}
      - {name: two, from: client2, to: server, algorithm: standard, duration: 3 s, streams: 3, start_jitter: 1 ms}
    repetitions: 2
"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedStudy:
    folder = tmp_path_factory.mktemp("link")
    study_of(folder, HEAD + MANIFEST)
    return make_results(folder, folder / "results")


def test_the_use_of_a_link_is_read_from_its_own_port(opened: OpenedStudy) -> None:
    found = measure(opened.dataset, Selection("utilisation", "pairs", parameters={"since": 1e6}), 1).value
    assert found == pytest.approx(100 * 1514 / 1538, rel=1e-2)


def test_marks_of_flows_with_one_receiver_cannot_be_separated(opened: OpenedStudy) -> None:
    since = {"since": 1e6}
    assert measure(opened.dataset, Selection("mark_rate", "pairs", parameters=since), 1).value == 0
    with pytest.raises(NoValue):
        measure(opened.dataset, Selection("marks_per_s", "pairs", flow="one", parameters=since))
