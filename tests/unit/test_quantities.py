# SPDX-License-Identifier: Apache-2.0
"""Quantities over tables whose truth is known: which rows a metric sees, and how runs become repetitions."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tables_in_memory import TablesInMemory, run, tables

from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Pool, Selection, measure, median

OPEN, RECOVERY = 0, 3
Row = tuple[Any, ...]


def halved(flow: str, stream: int = 0) -> list[Row]:
    """A window of 40 segments that is cut to 20 at 10 ms and back at 30 ms."""
    windows = ((OPEN, 40, 99), (RECOVERY, 20, 20), (OPEN, 30, 20), (OPEN, 40, 20))
    return [(10_000 * k, flow, stream, *window, 0) for k, window in enumerate(windows)]


def measured(rows: list[Row], metric: str, flow: str | None = None, **parameters: float) -> float:
    dataset = tables([run("a")], samples={"a": rows})
    return measure(dataset, Selection(metric, "two", flow=flow, parameters=parameters), 1).value


def test_one_of_two_flows_must_be_named() -> None:
    rows = halved("stream1") + halved("stream2")[:1]
    assert measured(rows, "cuts", flow="stream1") == measured(halved("stream1"), "cuts") == 1
    assert measured(halved("stream1"), "cuts", since=20_000) == 0
    assert measured(rows, "cuts", flow="stream2") == 0
    with pytest.raises(NoValue):
        measured(rows, "cuts")


def test_the_share_of_windows_that_reach_a_level_is_averaged_over_windows() -> None:
    runs = [run(f"{window}.{k}", k, window=window) for window in (1, 2, 4, 8) for k in (1, 2)]
    goodput = {item.run_id: {"stream1": 100.0 * float(item.factors["window"])} for item in runs}
    goodput["4.2"] = {"stream1": 500.0, "stream2": 300.0}
    found = measure(tables(runs, goodput), Selection("reaches", "two", parameters={"level": 800e6}))
    assert (found.value, found.n, found.runs) == (37.5, 2, 8)  # one of four windows, then two


def test_each_scenario_is_estimated_from_the_runs_that_it_has() -> None:
    runs = [run(f"{window}.{k}", k, window=window) for window in (1, 2) for k in (1, 2, 3)]
    runs[2] = dataclasses.replace(runs[2], status="failed")
    dataset = tables(runs, {item.run_id: {"stream1": 100.0 * item.repetition} for item in runs})
    found = measure(dataset, Selection("goodput", "two"))
    assert (found.value, found.n, found.runs) == ((150 + 200) / 2, 2, 5)


def test_a_scenario_without_enough_runs_leaves_no_value() -> None:
    runs = [run(f"{window}.{k}", k, window=window) for window in (1, 2) for k in (1, 2)]
    runs[1] = dataclasses.replace(runs[1], status="failed")
    dataset = tables(runs, {item.run_id: {"stream1": 100.0} for item in runs})
    reason = r"run failed \(1 x\): 1 of 2 repetitions have a value in 1 of 2 scenarios, at least 2 are needed"
    with pytest.raises(NoValue, match=reason):
        measure(dataset, Selection("goodput", "two"))


def alike(*digests: str | None) -> TablesInMemory:
    """Repetitions of one scenario with goodput 900, 901, ... Mb/s and these digests of what was measured."""
    runs = [dataclasses.replace(run(f"r{k}", k), measured=digest) for k, digest in enumerate(digests, start=1)]
    return tables(runs, {item.run_id: {"stream1": 899.0 + item.repetition} for item in runs})


def test_repetitions_that_are_the_same_to_the_byte_are_one_observation() -> None:
    found = measure(alike("a", "b", "a", "a"), Selection("goodput", "two"))
    assert (found.value, found.n, found.repeats) == (900.5, 2, 2)
    without = measure(alike(None, None), Selection("goodput", "two"))
    assert (without.n, without.repeats) == (2, 0), "without a digest all count"


def test_a_scenario_whose_repetitions_are_all_the_same_to_the_byte_has_no_randomness_and_is_exact() -> None:
    found = measure(alike("a", "a"), Selection("goodput", "two"))
    assert (found.value, found.n, found.repeats, found.exact) == (900, 1, 1, True)
    assert found.interval() == (900, 900)


def test_a_scenario_without_randomness_leaves_the_error_of_a_mean_to_the_others() -> None:
    digests = {(1, 1): "a", (1, 2): "a", (2, 1): "b", (2, 2): "c"}
    runs = [
        dataclasses.replace(run(f"{window}.{k}", k, window=window), measured=digest)
        for (window, k), digest in digests.items()
    ]
    dataset = tables(runs, {item.run_id: {"stream1": 900.0 + item.repetition} for item in runs})
    whole = measure(dataset, Selection("goodput", "two"))
    varying = measure(dataset, Selection("goodput", "two").narrowed("window", 2))
    assert (whole.n, whole.repeats, whole.exact) == (2, 1, False)
    assert whole.spread.error == pytest.approx(varying.spread.error / 2)


def test_the_median_of_a_share_has_a_rank_interval_and_with_few_runs_only_its_bounds() -> None:
    def shares(count: int, windows: tuple[int, ...] = (1,)) -> TablesInMemory:
        runs = [run(f"{window}.{k}", k, window=window) for window in windows for k in range(count)]
        return tables(runs, {item.run_id: {"one": 10.0 + item.repetition, "two": 80.0} for item in runs})

    share = Selection("share", "two", flow="one")
    assert median(shares(4), share).interval() == (0, 100)
    low, high = median(shares(12), share).interval()
    assert 0 < low < median(shares(12), share).value < high < 100
    dependent = shares(8, (1, 2, 4))
    assert median(dependent, share).runs == 8
    runs = tuple(
        dataclasses.replace(one, measured="same" if one.factors["window"] == 4 else None) for one in dependent.runs
    )
    vars(dependent)["runs"] = runs
    assert median(dependent, share).runs == 8, "a repetition counts, also if one of its scenarios never differs"
    alone = tables(
        runs := [run(f"1.{k}", k, window=1) for k in range(12)], {item.run_id: {"one": 5.0} for item in runs}
    )
    assert median(alone, share).interval() == (100, 100), "equal values have no error"


def test_sister_scenarios_lend_degrees_of_freedom_and_no_bounded_interval_leaves_its_bounds() -> None:
    runs = [run(f"{window}.{k}", k, window=window) for window in (1, 2, 4, 8, 16) for k in (1, 2, 3)]
    scatter = {1: 0.0, 2: 3.0, 3: -2.0}
    goodput = {
        item.run_id: {"one": 90.0 + scatter[1 + (item.repetition + int(item.factors["window"])) % 3], "two": 10.0}
        for item in runs
    }
    dataset = tables(runs, goodput)
    one = Selection("jain", "two").narrowed("window", 4)
    alone, moderated = measure(dataset, one), measure(dataset, one, pool=Pool(dataset))
    assert moderated.value == alone.value
    assert moderated.spread.degrees > alone.spread.degrees == 2
    reach = Selection("reaches", "two", parameters={"level": 100e6})
    low, high = measure(dataset, reach).interval()
    assert 0 <= low <= high <= 100


def test_one_run_suffices_where_nothing_is_drawn_from_a_seed() -> None:
    dataset = tables([run("a", window=1)], {"a": {"one": 900.0}})
    fixed = Pool(dataset, fixed={"two": [{"window": 1}]})
    found = measure(dataset, Selection("goodput", "two"), pool=fixed)
    assert (found.value, found.exact) == (900, True)
    with pytest.raises(NoValue):
        measure(dataset, Selection("goodput", "two"), pool=Pool(dataset, fixed={"two": [{"window": 2}]}))
