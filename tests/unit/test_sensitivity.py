# SPDX-License-Identifier: Apache-2.0
"""Where claims hold along an unknown, and the values of it that are tried."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from longfat.evidence.sensitivity import At, first_values, regions, values_in, where_all_hold
from longfat.spec.runspec import Scalar
from longfat.study.unknowns import Unknown

SWITCH = Unknown(what="frames", default=100, between=(20, 400), source="port buffers of the time")
DELAY = Unknown(what="a delay", default="70 ms", between=("40 ms", "0.1 s"), source="a map")
KIND = Unknown(what="a kernel", default="old", among=("old", "new"), source="two releases")


def tried(unknown: Unknown, word: Callable[[Scalar], str]) -> list[At]:
    """The default values, and at each the word on a claim."""
    return [At(value, {"sum": word(value)}) for value in first_values(unknown)]


def test_first_come_the_default_and_values_over_the_whole_range() -> None:
    assert first_values(SWITCH) == (100, 20, 42, 89, 189, 400)
    assert first_values(DELAY) == ("70 ms", "40 ms", "55 ms", "85 ms", "0.1 s")
    assert first_values(KIND) == ("old", "new")


def test_neighbouring_values_of_one_outcome_are_one_region() -> None:
    found = tried(SWITCH, lambda value: "reproduced" if 40 <= float(value) <= 100 else "not_reproduced")
    assert [str(region) for region in regions("sum", found, SWITCH)] == [
        "fails at 20",
        "holds at 42 to 100",
        "fails at 189 to 400",
    ]


def test_words_without_an_order_keep_theirs() -> None:
    found = tried(KIND, lambda value: "agrees" if value == "new" else "inconclusive")
    assert [str(region) for region in regions("sum", found, KIND)] == ["open at old", "holds at new"]
    assert where_all_hold(["sum"], found, KIND) == ("new",)


def test_where_all_hold_is_where_each_does() -> None:
    words = [(20, "reproduced", "reproduced"), (40, "reproduced", "inconclusive"), (80, "agrees", "reproduced")]
    found = [At(value, {"one": one, "two": two}) for value, one, two in words]
    assert where_all_hold(["one", "two"], found, SWITCH) == (20, 80)
    assert [str(region) for region in regions("two", found, SWITCH)] == [
        "holds at 20",
        "open at 40",
        "holds at 80",
    ]


@pytest.mark.parametrize("order", [(75, 50), (50, 75)])
def test_evidence_of_several_assumptions_at_once_is_none_of_one(order: tuple[int, int]) -> None:
    given = [{"switch": order[0]}, {"switch": order[1]}, {"switch": 60, "delay": "1 ms"}, {}, {"switch": 500}]
    assert values_in(iter(given), "switch", SWITCH) == (100, 50, 75)
