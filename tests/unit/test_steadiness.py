# SPDX-License-Identifier: Apache-2.0
"""Steadiness, fairness and asymmetry from known rates; pings, datagrams and counters from the fake backend's truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fabricated_results import write_results
from own_metrics import own_metrics
from tables_in_memory import flow_row

from longfat.data.opened import OpenedStudy
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.figures.timeseries import TimeSeries
from longfat.metrics import goodput, steadiness
from longfat.metrics.data import NoValue, Port
from longfat.metrics.quantities import Selection, measure
from longfat.system.errors import StudyError

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
      - name: stream
        from: client1
        to: server1
        algorithm: standard
        window: 64 KiB
        duration: 10 s
        start_jitter: 1 ms
    udp: [{name: wave, from: client2, to: server2, mean: 12 Mbit/s, swing: 1 Mbit/s, period: 5 s, duration: 10 s}]
    probes: {ping: 100 ms}
    repetitions: 2
"""

FIGURES = """\
format: 2
study: waves
figures:
  - timeseries: over-time
    what: acknowledged_rate
    title: both
    runs: beside
    flows: {stream: TCP, wave: UDP}
    labels: {x: time (s), y: Mb/s}
    paper: no number stated
  - timeseries: delay
    what: rtt
    title: pings
    runs: beside
    labels: {x: time (s), y: RTT (ms)}
    paper: no number stated
"""


def rows(**mbps: float) -> list[dict[str, object]]:
    return [flow_row(name, rate) for name, rate in mbps.items()]


def test_a_constant_rate_does_not_vary() -> None:
    assert steadiness.variation(np.array([5.0, 5.0, 5.0])) == 0
    assert steadiness.variation(np.array([1.0, 3.0, 1.0, 3.0])) == pytest.approx(0.5)


def test_two_intervals_have_no_deviation_worth_the_name() -> None:
    with pytest.raises(NoValue, match="2 intervals, at least 3"):
        steadiness.variation(np.array([1.0, 2.0]))


def test_what_a_port_carries_is_read_between_its_samples() -> None:
    seconds = np.arange(0, 8) * 1e6
    port = Port("switch", seconds, seconds * 10 / 8, seconds * 100)
    assert slac.port_rates_mbps(port, 2e6, 1e6) == pytest.approx([10, 10, 10])


def test_jain_s_index_is_1_for_equals_and_1_over_n_for_one_that_has_all() -> None:
    assert goodput.jain_index(rows(a=7, b=7, c=7)) == pytest.approx(1)
    assert goodput.jain_index(rows(a=9, b=0, c=0)) == pytest.approx(1 / 3)
    with pytest.raises(NoValue, match="two flows or more"):
        goodput.jain_index(rows(a=9))


def test_asymmetry_is_positive_where_the_flow_has_more() -> None:
    assert goodput.asymmetry(rows(one=75, two=25), "one") == pytest.approx(0.5)
    assert goodput.asymmetry(rows(one=75, two=25), "two") == pytest.approx(-0.5)
    with pytest.raises(NoValue, match="between two flows"):
        goodput.asymmetry(rows(one=75, two=25, three=1), "one")


def test_what_does_not_arrive_is_lost() -> None:
    assert slac.lost_percent(200, 150) == 25
    with pytest.raises(NoValue, match="nothing was sent"):
        slac.lost_percent(0, 0)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedStudy:
    folder = tmp_path_factory.mktemp("waves")
    for name, text in (("study", MANIFEST), ("figures", FIGURES)):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    (folder / "claims.yaml").write_text("format: 1\nstudy: waves\nclaims: []\n", encoding="utf-8")
    write_results(folder, folder / "results")
    build_dataset(folder / "results")
    return OpenedStudy(folder / "results", StudyFolder(folder))


def test_pings_tell_of_a_path_without_a_queue(opened: OpenedStudy) -> None:
    for metric in ("rtt", "rtt_least", "rtt_most"):
        assert measure(opened.dataset, Selection(metric, "beside"), 1).value == pytest.approx(20, rel=0.05)


def test_a_flow_with_a_constant_rate_is_steady(opened: OpenedStudy) -> None:
    steady = Selection("stability", "beside", parameters={"interval": 1e6, "since": 1e6})
    assert measure(opened.dataset, steady, 1).value == pytest.approx(0, abs=1e-3)


def test_counters_of_both_ends_tell_what_came_out_of_order(opened: OpenedStudy) -> None:
    assert measure(opened.dataset, Selection("out_of_order", "beside"), 1).value == 0


def test_udp_traffic_is_drawn_beside_a_flow_and_pings_by_themselves(opened: OpenedStudy) -> None:
    both, delay = opened.folder.figures.figures
    assert isinstance(both, TimeSeries)
    assert isinstance(delay, TimeSeries)
    data = both.data(opened.sources)
    udp = [row[-1] for row in data.rows if row[2] == "wave"]
    assert udp == pytest.approx([12.0] * len(udp), rel=0.01)
    pings = [row[-1] for row in delay.data(opened.sources).rows]
    assert pings == pytest.approx([20] * len(pings), rel=0.05)


def test_rtts_of_an_experiment_without_pings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(MANIFEST.replace("    probes: {ping: 100 ms}\n", ""), encoding="utf-8")
    (tmp_path / "figures.yaml").write_text(FIGURES, encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(tmp_path).figures
    assert ["has no pings" in problem.message for problem in caught.value.problems] == [True]
