# SPDX-License-Identifier: Apache-2.0
"""Laws: formulas, metrics of traces of a known shape, points compared with a law, deviations. No kernel is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fabricated_results import judge_study, write_study
from manifests import refused
from own_metrics import own_metrics
from tables_in_memory import run, tables
from test_claims import HEAD, claim
from test_claims import results as results

from longfat.data.study_folder import StudyFolder
from longfat.metrics import METRICS
from longfat.metrics.data import FlowRows, NoValue, Point, Points, Samples
from longfat.metrics.quantities import Pool, Selection
from longfat.metrics.registry import metric
from longfat.relations import formulas
from longfat.relations.ranking import farthest, places

laws = own_metrics("_laws")
RTT_US = 20_000.0


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)


def samples(windows: list[float], ssthresh: float, state: int = 0) -> Samples:
    """A connection that is sampled once each RTT, with all of its window acknowledged in each."""
    cwnd = np.array(windows, dtype=float)
    delivered = np.concatenate(([0.0], np.cumsum(cwnd)[:-1]))
    of = np.ones(len(cwnd))
    return Samples(
        RTT_US * np.arange(len(cwnd)),
        state * of,
        cwnd,
        ssthresh * of,
        delivered * 1448,
        dwnd=0 * of,
        delivered=delivered,
    )


def joined(*parts: Samples) -> Samples:
    """One trace of several that follow each other in time."""
    start_us, delivered, shifted = 0.0, 0.0, []
    for part in parts:
        shifted.append(vars(part) | {"t_us": part.t_us + start_us, "delivered": part.delivered + delivered})
        start_us, delivered = shifted[-1]["t_us"][-1] + RTT_US, shifted[-1]["delivered"][-1] + part.cwnd[-1]
    arrays = [name for name, values in shifted[0].items() if isinstance(values, np.ndarray)]
    return Samples(**{name: np.concatenate([part[name] for part in shifted]) for name in arrays})


def test_the_table_of_highspeed_has_the_73_rows_of_the_rfc() -> None:
    rows = formulas.highspeed_rows()
    assert len(rows) == 73
    assert [rows[0], rows[1], rows[9], rows[-1]] == [38, 118, 1529, 94717]
    assert [round(formulas.highspeed_decrease(rows[place]), 2) for place in (0, 1, 9, -1)] == [0.5, 0.44, 0.31, 0.09]


def test_the_response_function_meets_both_of_its_ends_and_is_standard_below() -> None:
    rfc = {"low_window": 38, "high_window": 83000, "high_p": 1e-7, "high_decrease": 0.1}
    assert formulas.highspeed_response_increase(38, **rfc) == 1
    assert formulas.highspeed_response_increase(83000, **rfc) == pytest.approx(72, abs=1)
    assert formulas.highspeed_response_decrease(83000, 38, 83000, 0.1) == pytest.approx(0.1)
    assert formulas.highspeed_response_increase(1000, **{**rfc, "high_window": 8.3}) == 1
    assert formulas.highspeed_response_increase(1000, **{**rfc, "high_window": 833.3}) < 1
    assert formulas.highspeed_kernel_increase(1000, **{**rfc, "high_window": 833.3}) == 1


def test_growth_is_counted_in_rtts() -> None:
    (point,) = laws.growth(samples([100 + 3 * n for n in range(50)], 100))
    assert point.value == pytest.approx(3)
    (point,) = laws.relative_growth(samples([100 * 1.02**n for n in range(50)], 100))
    assert point.value == pytest.approx(0.02)


def test_losses_separate_epochs_and_slow_start_belongs_to_none() -> None:
    slow_start, recovery = samples([10, 20, 40, 80], 1e9), samples([60], 40, 3)
    whole = joined(slow_start, recovery, samples([40, 41, 42], 40), samples([30], 21, 3), samples([21, 22], 21))
    found = laws.epochs(whole)
    assert [epoch.samples.cwnd.tolist() for epoch in found] == [[40, 41, 42], [21, 22]]
    assert [epoch.window_before for epoch in found] == [None, 42]
    assert [(point.value, point.at["window"]) for point in laws.kept(whole)] == [(0.5, 42)]


@pytest.fixture
def over() -> Selection:
    """A metric with the points 95, 102 and 100 of a law of 100, over two runs."""

    @metric("segments", "stages", over=("window",))
    def stages(rows: FlowRows) -> Points:
        """Stages; a flow that got nothing has none."""
        goodput = [row["goodput_bps"] for row in rows if row["goodput_bps"]]
        return [Point(one / 1e6, {"window": one}) for one in goodput]

    return Selection("stages", "two")


RUNS = [run("a"), run("b", 2)]
CARRIED = {"a": {"one": 95.0, "two": 102.0}, "b": {"one": 100.0}}


@pytest.mark.parametrize(("sign", "expected"), [("=", 0.95), (">=", 0.95), ("<=", 1.02), ("<", 1.02), (">", 0.95)])
def test_the_point_farthest_from_the_law_decides(over: Selection, sign: str, expected: float) -> None:
    found = farthest(Pool(tables(RUNS, CARRIED)), over, lambda point: 100.0, sign)
    assert (found.value, found.interval(), found.n) == (expected, (expected, expected), 2)


def test_places_are_counted_over_all_points(over: Selection) -> None:
    assert places(Pool(tables(RUNS, CARRIED)), over).value == 3
    assert places(Pool(tables(RUNS, {"a": {"one": 7.0}, "b": {"one": 7.0}})), over).value == 1


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_without_a_point_there_is_no_verdict(over: Selection, value: float) -> None:
    with pytest.raises(NoValue):
        farthest(Pool(tables(RUNS, {"a": {"one": value}, "b": {"one": 0.0}})), over, lambda point: 100.0, "=")


DEVIATION = "deviation: {reason: it is known, relation: 'INSTEAD'}"
GOODPUT = "goodput[delay, standard, window=8 MiB] = %s"


@pytest.mark.parametrize(
    ("law", "instead", "word", "deviates"),
    [
        ("988", None, "reproduced", False),
        ("500", "988", "not reproduced", True),
        ("500", "988 ± 50", "not reproduced", True),
        ("500", "600", "not reproduced", False),
        ("988", "600", "reproduced", False),
    ],
)
def test_a_deviation_is_reported_only_where_it_was_found(
    results: Path, tmp_path: Path, law: str, instead: str | None, word: str, deviates: bool
) -> None:
    deviation = [DEVIATION.replace("INSTEAD", GOODPUT % instead)] if instead else []
    claims = HEAD + claim("one", GOODPUT % law, "kind: law", *deviation)
    (found,) = judge_study(results, write_study(tmp_path, claims=claims))
    assert (found.verdict, found.deviation is not None) == (word, deviates)


@pytest.mark.parametrize(
    "relation",
    [
        "stages[delay] + 1 = 2",
        "stages[delay] = goodput[delay]",
        "stages[delay] = scalable_increase(w, a=1)",
        "stages[delay] = quotient(numerator, denominator=1)",
        "places(goodput[delay]) > 1",
        "quotient(numerator, denominator=1) = 1",
    ],
)
def test_points_stand_alone_before_one_law(over: Selection, tmp_path: Path, relation: str) -> None:
    study = StudyFolder(write_study(tmp_path, claims=HEAD + claim("one", relation, "kind: law")))
    assert {problem.key for problem in refused(lambda: study.claims)} == {"claims[0].relation[0]"}
