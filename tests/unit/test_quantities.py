# SPDX-License-Identifier: Apache-2.0
"""Quantities over tables whose truth is known: which rows a metric sees, and how runs become repetitions."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from own_metrics import own_metrics
from tables_in_memory import TablesInMemory, run, tables

from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Pool, Selection, measure, median

OPEN, RECOVERY = 0, 3
own_metrics("sandia-2003")  # streams_cut, lead_changes
Row = tuple[Any, ...]


def halved(flow: str, stream: int = 0) -> list[Row]:
    """A window of 40 segments that is cut to 20 at 10 ms and back at 30 ms."""
    windows = ((OPEN, 40, 99), (RECOVERY, 20, 20), (OPEN, 30, 20), (OPEN, 40, 20))
    return [(10_000 * k, flow, stream, *window, 0) for k, window in enumerate(windows)]


def measured(rows: list[Row], metric: str, flow: str | None = None, **parameters: float) -> float:
    dataset = tables([run("a")], samples={"a": rows})
    return measure(dataset, Selection(metric, "two", flow=flow, parameters=parameters), 1).value


def test_a_run_with_one_flow_needs_no_name_for_it() -> None:
    rows = halved("stream1")
    assert measured(rows, "cuts") == 1
    assert measured(rows, "cuts", since=20_000) == 0
    assert measured(rows, "after_first_cut") == 20
    assert measured(rows, "first_recovery") == 0.02


def test_of_two_flows_one_must_be_named() -> None:
    rows = halved("stream1") + halved("stream2")[:1]
    assert measured(rows, "cuts", flow="stream1") == 1
    assert measured(rows, "cuts", flow="stream2") == 0
    with pytest.raises(NoValue, match="the samples are of 2 flows; name one of stream1, stream2"):
        measured(rows, "cuts")


def test_a_flow_of_several_streams_has_no_one_window() -> None:
    with pytest.raises(NoValue, match="flow 'stream1' has 2 streams"):
        measured(halved("stream1") + halved("stream1", stream=1), "cuts")


def test_the_streams_that_were_cut_are_counted_over_all_flows_or_in_one() -> None:
    rows = halved("stream1") + halved("stream1", stream=1)[:1] + halved("stream2")
    assert measured(rows, "streams_cut") == 2
    assert measured(rows, "streams_cut", flow="stream1") == 1


def test_a_run_whose_sockets_were_not_sampled_gives_no_value() -> None:
    with pytest.raises(NoValue, match="no socket was sampled"):
        measured([], "cuts")


def test_the_lead_is_read_from_both_flows_together() -> None:
    acked = {"stream1": (0, 9, 10, 19), "stream2": (0, 1, 10, 11)}
    rows = [(k * 1_000_000, flow, 0, OPEN, 4, 4, value) for flow in acked for k, value in enumerate(acked[flow])]
    assert measured(rows, "lead_changes", interval=1e6) == 2
    assert not METRICS["lead_changes"].flow


def test_the_share_of_windows_that_reach_a_level_is_averaged_over_windows() -> None:
    runs = [run(f"{window}.{k}", k, window=window) for window in (1, 2, 4, 8) for k in (1, 2)]
    goodput = {item.run_id: {"stream1": 100.0 * float(item.factors["window"])} for item in runs}
    goodput["4.2"] = {"stream1": 500.0, "stream2": 300.0}
    found = measure(tables(runs, goodput), Selection("reaches", "two", parameters={"level": 800e6}))
    assert (found.value, found.n, found.runs) == (37.5, 2, 8)  # one of four windows, then two


def test_one_run_of_a_scenario_is_too_few_unless_it_is_asked_for_alone() -> None:
    dataset = tables([run("a")], {"a": {"stream1": 900.0}})
    with pytest.raises(NoValue, match="1 of 1 repetitions are valid, at least 2 are needed"):
        measure(dataset, Selection("goodput", "two"))
    assert measure(dataset, Selection("goodput", "two"), 1).value == 900


def test_each_scenario_is_estimated_from_the_runs_that_it_has() -> None:
    runs = [run(f"{window}.{k}", k, window=window) for window in (1, 2) for k in (1, 2, 3)]
    runs[2] = dataclasses.replace(runs[2], status="failed")
    dataset = tables(runs, {item.run_id: {"stream1": 100.0 * item.repetition} for item in runs})
    found = measure(dataset, Selection("goodput", "two"))
    assert (found.value, found.n, found.runs) == ((150 + 200) / 2, 2, 5)


def test_a_scenario_without_enough_runs_leaves_no_value_and_the_reason_says_where() -> None:
    runs = [run(f"{window}.{k}", k, window=window) for window in (1, 2) for k in (1, 2)]
    runs[1] = dataclasses.replace(runs[1], status="failed")
    dataset = tables(runs, {item.run_id: {"stream1": 100.0} for item in runs})
    reason = r"1 of 2 repetitions are valid in 1 of 2 scenarios, at least 2 are needed: run failed \(1 x\)"
    with pytest.raises(NoValue, match=reason):
        measure(dataset, Selection("goodput", "two"))


def alike(*digests: str | None) -> TablesInMemory:
    """Repetitions of one scenario with goodput 900, 901, ... Mb/s and these digests of what was measured."""
    runs = [dataclasses.replace(run(f"r{k}", k), measured=digest) for k, digest in enumerate(digests, start=1)]
    return tables(runs, {item.run_id: {"stream1": 899.0 + item.repetition} for item in runs})


def test_repetitions_that_are_the_same_to_the_byte_are_one_observation() -> None:
    found = measure(alike("a", "b", "a", "a"), Selection("goodput", "two"))
    assert (found.value, found.n, found.repeats) == (900.5, 2, 2)


def test_repetitions_without_a_digest_all_count() -> None:
    found = measure(alike(None, None), Selection("goodput", "two"))
    assert (found.n, found.repeats) == (2, 0)


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
    def shares(count: int) -> TablesInMemory:
        runs = [run(f"r{k}", k) for k in range(count)]
        return tables(runs, {item.run_id: {"one": 10.0 + item.repetition, "two": 80.0} for item in runs})

    share = Selection("share", "two", flow="one")
    assert METRICS["share"].judged_by == "median"
    assert median(shares(4), share).interval() == (0, 100)
    low, high = median(shares(12), share).interval()
    assert 0 < low < median(shares(12), share).value < high < 100


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


def test_runs_of_experiments_that_pair_are_of_one_block() -> None:
    dataset = tables([run("a", 1)], {"a": {"one": 1.0}})
    assert Pool(dataset, {"two": "first"}).block(run("a", 3)) == ("first", 3)
    assert Pool(dataset).block(run("a", 3)) == ("two", 3)


def test_one_run_suffices_where_nothing_is_drawn_from_a_seed() -> None:
    dataset = tables([run("a", window=1)], {"a": {"one": 900.0}})
    fixed = Pool(dataset, fixed={"two": [{"window": 1}]})
    found = measure(dataset, Selection("goodput", "two"), pool=fixed)
    assert (found.value, found.exact) == (900, True)
    with pytest.raises(NoValue, match="at least 2 are needed"):
        measure(dataset, Selection("goodput", "two"), pool=Pool(dataset, fixed={"two": [{"window": 2}]}))
