# SPDX-License-Identifier: Apache-2.0
"""Conformance without a kernel: the published laws, measures on traces of a known shape, verdicts, the report."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longfat.conformance import published
from longfat.conformance.highspeed import WINDOWS, chain, row_a
from longfat.conformance.law import Axes, Finding, Law, Point
from longfat.conformance.laws import LAWS
from longfat.conformance.measure import epochs, growth_each_rtt, rounds_to_reach, share_each_rtt
from longfat.conformance.report import figure, page, points_csv
from longfat.conformance.scenario import Scenario, Sender
from longfat.conformance.trace import Trace

RTT_US = 20_000
SCENARIO = Scenario((Sender("scalable", (("a_ppm", 10_000),)),), duration_us=1_000_000, segments=100)


def trace(windows: list[float], ssthresh: float, state: int = 0) -> Trace:
    """A connection that is sampled once each RTT, with all of its window acknowledged in each."""
    cwnd = np.array(windows, dtype=float)
    acknowledged = np.concatenate(([0.0], np.cumsum(cwnd)[:-1]))
    rtt_us = np.full(len(cwnd), float(RTT_US))
    return Trace(
        t_us=np.arange(len(cwnd)) * float(RTT_US),
        ca_state=np.full(len(cwnd), float(state)),
        cwnd=cwnd,
        ssthresh=np.full(len(cwnd), float(ssthresh)),
        delivered=acknowledged,
        srtt_us=rtt_us,
        min_rtt_us=rtt_us,
        dwnd=np.zeros(len(cwnd)),
    )


def joined(*parts: Trace) -> Trace:
    """One trace of several that follow each other in time."""
    start_us, delivered, shifted = 0.0, 0.0, []
    for part in parts:
        own = vars(part) | {"t_us": part.t_us + start_us, "delivered": part.delivered + delivered}
        shifted.append(own)
        start_us, delivered = own["t_us"][-1] + RTT_US, own["delivered"][-1] + part.cwnd[-1]
    return Trace(**{name: np.concatenate([part[name] for part in shifted]) for name in shifted[0]})


def law_of(deviation: str | None = None, least_points: int = 1, note: str | None = None) -> Law:
    axes = Axes("window, segments", "growth, segments each RTT")
    return Law("reno", "it grows", "RFC 5681", axes, (SCENARIO,), lambda run: (), deviation, least_points, note)


@pytest.mark.parametrize(
    ("b", "a", "recovery", "halving", "doubling"),
    [(1 / 2, 2 / 50, 17.7, 1, 17.7), (1 / 4, 1 / 50, 14.5, 2.41, 35), (1 / 8, 1 / 100, 13.4, 5.19, 69.7),
     (1 / 16, 1 / 200, 12.9, 10.7, 139)],
)  # fmt: skip
def test_scalable_has_the_times_of_its_authors_table(
    b: float, a: float, recovery: float, halving: float, doubling: float
) -> None:
    assert published.recovery_rtts(a, b) == pytest.approx(recovery, rel=0.005)
    assert published.halving_rtts(b) == pytest.approx(halving, rel=0.005)
    assert published.doubling_rtts(a) == pytest.approx(doubling, rel=0.005)


def test_the_table_of_highspeed_has_the_73_rows_of_the_rfc() -> None:
    table = published.highspeed_table()
    assert len(table) == 73
    assert [(w, a, round(b, 2)) for w, a, b in (table[0], table[1], table[9], table[-1])] == [
        (38, 1, 0.5),
        (118, 2, 0.44),
        (1529, 10, 0.31),
        (94717, 73, 0.09),
    ]


def test_the_response_function_meets_both_of_its_ends() -> None:
    response = published.HighSpeed()
    assert (response.a(38), response.b(38)) == (1, 0.5)
    assert response.b(83000) == pytest.approx(0.1)
    assert response.loss_rate(83000) == pytest.approx(1e-7)
    assert response.a(83000) == pytest.approx(72, abs=1)


def test_a_high_window_below_the_low_one_is_standard_tcp() -> None:
    response = published.HighSpeed(high_window=8.3)
    assert (response.a(1000), response.b(1000)) == (1, 0.5)


def test_cubic_is_back_at_its_window_after_k() -> None:
    assert published.cubic_window(1000, published.cubic_k(1000)) == 1000
    assert published.cubic_window(1000, 0) == pytest.approx(700)


def test_growth_is_counted_in_rtts() -> None:
    assert growth_each_rtt(trace([100 + 3 * n for n in range(50)], 100)) == pytest.approx(3)
    assert share_each_rtt(trace([100 * 1.02**n for n in range(50)], 100)) == pytest.approx(0.02)


def test_a_pause_of_a_flow_is_no_rtt() -> None:
    whole = trace([100 + n for n in range(40)], 100)
    paused = Trace(**vars(whole) | {"t_us": whole.t_us + np.where(np.arange(40) > 20, 1e6, 0)})
    assert growth_each_rtt(paused) == pytest.approx(1)


def test_the_time_to_a_window_is_found_between_two_samples() -> None:
    assert rounds_to_reach(trace([100, 110, 120], 100), 115) == pytest.approx(1.5)
    assert math.isnan(rounds_to_reach(trace([100, 110, 120], 100), 130))


def test_losses_separate_epochs_and_slow_start_belongs_to_none() -> None:
    whole = joined(
        trace([10, 20, 40, 80], 1e9),
        trace([60], 40, 3),
        trace([40, 41, 42], 40),
        trace([30], 21, 3),
        trace([21, 22], 21),
    )
    found = epochs(whole)
    assert [epoch.trace.cwnd.tolist() for epoch in found] == [[40, 41, 42], [21, 22]]
    assert [epoch.window_before for epoch in found] == [None, 42]


def test_a_point_within_five_percent_of_its_law_is_met() -> None:
    assert Finding(law_of(), (Point(1, 100, 104.9), Point(2, (2, 4), 1.95), Point(3, (2, 4), 3))).problems == []


@pytest.mark.parametrize("kernel", [94.9, 105.1, 0, math.nan, math.inf])
def test_any_other_value_is_not(kernel: float) -> None:
    assert "expected 100" in Finding(law_of(), (Point(1, 100, kernel),)).problems[0]


def test_points_at_too_few_places_are_no_verdict() -> None:
    found = Finding(law_of(least_points=2), (Point(1, 100, 100), Point(1, 100, 100)))
    assert found.problems == ["measured at 1 of at least 2 places"]


def test_a_deviation_is_held_to_what_it_says() -> None:
    explained = law_of("the source counts ACKs")
    assert Finding(explained, (Point(1, 100, 50.1, source=50),)).problems == []
    assert "expected 50" in Finding(explained, (Point(1, 100, 60, source=50),)).problems[0]


def test_a_deviation_from_nothing_is_refused() -> None:
    found = Finding(law_of("the source counts ACKs"), (Point(1, 100, 100, source=100),))
    assert found.problems == ["the law is met: its deviation explains nothing"]


@pytest.mark.parametrize(("deviation", "source"), [(None, 50.0), ("the source counts ACKs", None)])
def test_a_value_from_the_source_needs_a_deviation_and_the_other_way_round(
    deviation: str | None, source: float | None
) -> None:
    assert "goes with a named deviation" in Finding(law_of(deviation), (Point(1, 50, 50, source),)).problems[0]


def test_every_law_has_a_name_of_its_own() -> None:
    names = [law.name for law in LAWS]
    assert len(names) == len(set(names))


def test_a_walk_loses_a_packet_at_each_window_on_its_way_down() -> None:
    response = published.HighSpeed()
    drops_us = list(chain(response, 10_000, 5_000, 20, response.b(10_000)))
    assert len(drops_us) == 4
    assert drops_us == sorted(drops_us)
    assert min(np.diff(drops_us)) >= 5_000


def test_a_row_of_the_table_holds_up_to_its_window() -> None:
    assert [row_a(window) for window in (WINDOWS[1], WINDOWS[1] + 1, 1e6)] == [2, 3, 73]


def test_parameters_are_sysctls_of_the_sender_only() -> None:
    spec = SCENARIO.spec({})
    client, _, server = spec.nodes
    assert client.sysctls["net.ipv4.tcp_scalable.a_ppm"] == "10000"
    assert not any("scalable" in name for name in server.sysctls)


def test_the_report_tells_met_deviating_and_not_followed_laws_apart() -> None:
    findings = [
        Finding(law_of(note="as it comes"), (Point(1, 100, 101),)),
        Finding(law_of("the source counts ACKs"), (Point(1, 100, 50, source=50),)),
        Finding(law_of(), (Point(1, 100, 200),)),
    ]
    text = page(findings, "the kernel")
    assert "Of 3 laws, the kernel meets 1, deviates from 1 as its source says, and does **not** follow 1." in text
    assert "| reno | it grows | 1 | 1.0 % | met | RFC 5681 |" in text
    assert "- reno: it grows: the source counts ACKs." in text
    assert points_csv(findings).splitlines()[1:] == [
        "reno,it grows,1,100,100,,101",
        "reno,it grows,1,100,100,50,50",
        "reno,it grows,1,100,100,,200",
    ]


def test_equal_findings_give_an_equal_figure() -> None:
    findings = [Finding(law_of(), (Point(1, 100, 101), Point(2, (90, 110), 100)))]
    assert figure(findings) == figure(findings)
