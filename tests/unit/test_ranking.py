# SPDX-License-Identifier: Apache-2.0
"""Ranks by two quantities: the rule on plain numbers, and over repetitions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from tables_in_memory import TablesInMemory, run, tables

from longfat.metrics.data import NoValue
from longfat.metrics.orders import Sampled
from longfat.metrics.quantities import Pool, Selection
from longfat.relations.ranking import rank_of, ranked

TOTAL = Selection("goodput", "two")
STANDARD = Selection("goodput", "two", flow="standard")
Goodput = dict[str, tuple[float, float]]  # of all flows and of the standard one, by algorithm


def rank(of: TablesInMemory, name: str, fixed: Sequence[str] = ()) -> Sampled:
    """The rank of an algorithm by the goodput of all flows, then of the standard one."""
    unseeded = [{"algorithm": one} for one in fixed]
    return rank_of(Pool(of, fixed={"two": unseeded}), TOTAL, STANDARD, "algorithm", name)


def dataset(*repetitions: Goodput, failed: tuple[str, int] | None = None) -> TablesInMemory:
    runs, goodput = [], {}
    for number, of_repetition in enumerate(repetitions, start=1):
        for name, (total, standard) in of_repetition.items():
            run_id = f"{name}.{number}"
            status = "failed" if failed == (name, number) else "ok"
            runs.append(run(run_id, number, status, algorithm=name))
            goodput[run_id] = {"standard": standard, "other": total - standard}
    return tables(runs, goodput)


def test_totals_within_five_percent_are_ranked_by_the_second_quantity() -> None:
    assert ranked({"a": 500, "b": 900, "c": 700}, {"a": 300, "b": 1, "c": 2}) == ["b", "c", "a"]
    second = {"a": 1.0, "b": 2.0}
    assert ranked({"a": 105, "b": 100}, second) == ["b", "a"]
    assert ranked({"a": 105.001, "b": 100}, second) == ["a", "b"]


def test_a_group_is_what_its_head_exceeds_by_five_percent_and_does_not_chain() -> None:
    # 961 is within 5 % of 1000, 925 only of 961; so 925 begins a group of its own, with 900.
    first = {"a": 1000, "b": 961, "c": 925, "d": 900}
    assert ranked(first, {"a": 1, "b": 2, "c": 3, "d": 4}) == ["b", "a", "d", "c"]


def test_values_below_zero_are_ranked_too() -> None:
    assert ranked({"a": -0.2, "b": -0.1, "c": 0.3}, {"a": 1, "b": 2, "c": 3}) == ["c", "b", "a"]
    assert ranked({"a": -1.04, "b": -1}, {"a": 2, "b": 1}) == ["a", "b"]


FIRST: Goodput = {"fast": (900, 400), "htcp": (890, 300), "scalable": (880, 100), "standard": (500, 250)}
SECOND: Goodput = {"fast": (900, 200), "htcp": (890, 300), "scalable": (880, 100), "standard": (500, 250)}


def test_the_rank_of_a_value_is_that_in_the_ranking_by_means_with_a_bootstrap_interval() -> None:
    several = dataset(*(FIRST, SECOND) * 3)
    found = rank(several, "fast")
    assert (found.value, found.n) == (1, 6)
    assert found.interval() == (1, 2)
    last = rank(several, "standard")
    assert (last.value, *last.interval()) == (4, 4, 4)


def test_of_two_equals_one_is_ahead_in_few_repetitions_by_chance() -> None:
    few, more = (rank(dataset(*[FIRST] * count), "standard") for count in (3, 8))
    assert (few.value, few.interval(), few.p_above(3)) == (4, few.bounds, 0.5**3)
    assert (more.value, more.interval(), more.p_above(3)) == (4, (4, 4), 0.5**8)


def test_a_repetition_without_one_of_the_values_is_left_out_of_all_ranks() -> None:
    partial = dataset(FIRST, SECOND, failed=("scalable", 1))
    with pytest.raises(NoValue):
        rank(partial, "fast")


def test_a_repetition_counts_for_a_rank_unless_all_that_is_ranked_is_the_same_to_the_byte() -> None:
    def observed(digests: dict[str, str]) -> TablesInMemory:
        found = dataset(FIRST, SECOND)
        runs = tuple(
            dataclasses.replace(one, measured=f"{one.scenario} {digests.get(str(one.factors['algorithm']), '')}")
            if one.repetition == 2
            else dataclasses.replace(one, measured=f"{one.scenario} ")
            for one in found.runs
        )
        vars(found)["runs"] = runs
        return found

    place = rank(observed({"fast": "another"}), "fast")
    assert (place.n, place.repeats) == (2, 0)
    assert rank(observed({}), "fast").exact
    assert rank(dataset(FIRST), "fast", fixed=tuple(FIRST)).exact, "a seed that has no effect needs one repetition"
