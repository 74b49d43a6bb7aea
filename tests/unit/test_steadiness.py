# SPDX-License-Identifier: Apache-2.0
"""Steadiness, fairness and asymmetry from known rates; pings, datagrams and counters from the fake backend's truth."""

from __future__ import annotations

import numpy as np
import pytest
from fabricated_results import make_results
from own_metrics import own_metrics
from tables_in_memory import flow_row

from longfat.data.opened import OpenedStudy
from longfat.metrics import goodput, steadiness
from longfat.metrics.data import NoValue, Port
from longfat.metrics.quantities import Selection, measure

slac = own_metrics("slac-2003")
MANIFEST = """\
format: 2
study: waves
title: UDP traffic
algorithms: {standard: {cca: reno}}
experiments:
  - id: beside
    topology: {kind: dumbbell, rate: 100 Mbit/s, rtt: 20 ms, senders: 2, receivers: 2}
    flows:
      - {name: stream, from: client1, to: server1, algorithm: standard, window: 64 KiB, duration: 10 s,
         start_jitter: 1 ms}
    udp: [{name: wave, from: client2, to: server2, mean: 12 Mbit/s, swing: 1 Mbit/s, period: 5 s, duration: 10 s}]
    probes: {ping: 100 ms}
    repetitions: 2
"""


def rows(**mbps: float) -> list[dict[str, object]]:
    return [flow_row(name, rate) for name, rate in mbps.items()]


def test_a_constant_rate_does_not_vary() -> None:
    assert steadiness.variation(np.array([5.0, 5.0, 5.0])) == 0
    with pytest.raises(NoValue):
        steadiness.variation(np.array([1.0, 2.0]))
    assert steadiness.variation(np.array([1.0, 3.0, 1.0, 3.0])) == pytest.approx(0.5)


def test_the_rate_of_a_port_is_read_between_its_samples() -> None:
    seconds = np.arange(0, 8) * 1e6
    port = Port("switch", seconds, seconds * 10 / 8, seconds * 100)
    assert slac.port_rates_mbps(port, 2e6, 1e6) == pytest.approx([10, 10, 10])


def test_jain_s_index_is_1_for_equals_and_1_over_n_for_one_that_has_all() -> None:
    assert goodput.jain_index(rows(a=7, b=7, c=7)) == pytest.approx(1)
    assert goodput.jain_index(rows(a=9, b=0, c=0)) == pytest.approx(1 / 3)
    with pytest.raises(NoValue):
        goodput.jain_index(rows(a=9))


def test_asymmetry_is_positive_where_the_flow_has_more() -> None:
    assert goodput.asymmetry(rows(one=75, two=25), "one") == pytest.approx(0.5)
    assert goodput.asymmetry(rows(one=75, two=25), "two") == pytest.approx(-0.5)
    with pytest.raises(NoValue):
        goodput.asymmetry(rows(one=75, two=25, three=1), "one")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedStudy:
    folder = tmp_path_factory.mktemp("waves")
    for name, text in (("study", MANIFEST), ("claims", "format: 1\nstudy: waves\nclaims: []\n")):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return make_results(folder, folder / "results")


def test_pings_of_a_path_without_a_queue_have_its_rtt(opened: OpenedStudy) -> None:
    for metric in ("rtt", "rtt_least", "rtt_most"):
        assert measure(opened.dataset, Selection(metric, "beside"), 1).value == pytest.approx(20, rel=0.05)


def test_a_flow_with_a_constant_rate_is_steady(opened: OpenedStudy) -> None:
    steady = Selection("stability", "beside", parameters={"interval": 1e6, "since": 1e6})
    assert measure(opened.dataset, steady, 1).value == pytest.approx(0, abs=1e-3)
