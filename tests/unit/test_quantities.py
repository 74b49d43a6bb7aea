# SPDX-License-Identifier: Apache-2.0
"""Quantities over tables whose truth is known: which rows a metric sees, and how runs become repetitions."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tables_in_memory import TablesInMemory, run, tables

from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Selection, measure
from longfat.metrics.statistics import Summary, difference, percent_gain, ratio

OPEN, RECOVERY = 0, 3
Row = tuple[Any, ...]


def halved(flow: str, stream: int = 0) -> list[Row]:
    """A window of 40 segments that is cut to 20 at 10 ms and back at 30 ms."""
    windows = ((OPEN, 40, 99), (RECOVERY, 20, 20), (OPEN, 30, 20), (OPEN, 40, 20))
    return [(10_000 * k, flow, stream, *window, 0) for k, window in enumerate(windows)]


def measured(rows: list[Row], metric: str, flow: str | None = None, **parameters: float) -> float:
    dataset = tables([run("a")], samples={"a": rows})
    return measure(dataset, Selection(metric, "two", flow=flow, parameters=parameters)).mean


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


def test_the_share_of_windows_that_reach_a_level_is_averaged_within_each_repetition() -> None:
    runs = [run(f"{window}.{k}", k, window=window) for window in (1, 2, 4, 8) for k in (1, 2)]
    goodput = {item.run_id: {"stream1": 100.0 * float(item.factors["window"])} for item in runs}
    goodput["4.2"] = {"stream1": 500.0, "stream2": 300.0}
    found = measure(tables(runs, goodput), Selection("reaches", "two", parameters={"level": 800e6}))
    assert (found.mean, found.n) == (37.5, 2)  # one of four windows, then two


def test_retransmissions_may_rest_on_one_repetition_and_a_share_of_runs_may_not() -> None:
    assert (METRICS["retransmissions"].least, METRICS["reaches"].least) == (1, 2)
    dataset = tables([run("a")], {"a": {"stream1": 900.0}})
    with pytest.raises(NoValue, match="1 of 1 repetitions are complete, at least 2 are needed"):
        measure(dataset, Selection("reaches", "two", parameters={"level": 800e6}))


def alike(*digests: str | None) -> TablesInMemory:
    """Repetitions of one scenario with goodput 900, 901, ... Mb/s and these digests of what was measured."""
    runs = [dataclasses.replace(run(f"r{k}", k), measured=digest) for k, digest in enumerate(digests, start=1)]
    return tables(runs, {item.run_id: {"stream1": 899.0 + item.repetition} for item in runs})


def test_repetitions_that_are_the_same_to_the_byte_are_one_observation() -> None:
    found = measure(alike("a", "b", "a", "a"), Selection("goodput", "two"))
    assert (found.mean, found.n, found.repeats) == (900.5, 2, 2)


def test_repetitions_without_a_digest_all_count() -> None:
    found = measure(alike(None, None), Selection("goodput", "two"))
    assert (found.n, found.repeats) == (2, 0)


def test_one_observation_made_twice_is_too_few_for_goodput_and_the_reason_says_so() -> None:
    shortage = "2 of 2 repetitions are complete, of these 1 the same to the byte as another, at least 2 are needed"
    with pytest.raises(NoValue, match=shortage):
        measure(alike("a", "a"), Selection("goodput", "two"))


def test_a_repetition_is_another_observation_if_one_of_its_scenarios_differs() -> None:
    digests = {(1, 1): "a", (1, 2): "a", (2, 1): "b", (2, 2): "c"}
    runs = [
        dataclasses.replace(run(f"{window}.{k}", k, window=window), measured=digest)
        for (window, k), digest in digests.items()
    ]
    dataset = tables(runs, {item.run_id: {"stream1": 900.0} for item in runs})
    whole = measure(dataset, Selection("goodput", "two"))
    assert (whole.n, whole.repeats) == (2, 0)
    with pytest.raises(NoValue, match="same to the byte"):
        measure(dataset, Selection("goodput", "two").narrowed("window", 1))


def test_what_is_computed_of_summaries_keeps_the_count_of_repeats() -> None:
    once, twice = Summary(2.0, None, 1, 2.0, 2.0), Summary(4.0, None, 1, 4.0, 4.0, repeats=1)
    assert difference(twice, once).repeats == ratio(once, twice).repeats == percent_gain(twice, once).repeats == 1
