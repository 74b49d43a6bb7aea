# SPDX-License-Identifier: Apache-2.0
"""Where claims hold along an unknown, and which of its values is tried next."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from longfat.evidence.regions import At, first_values, next_value, regions, values_in, where_all_hold
from longfat.manifest.unknowns import Unknown
from longfat.runspec import Scalar

SWITCH = Unknown(what="frames", default=100, between=(20, 400), source="port buffers of the time")
DELAY = Unknown(what="a delay", default="70 ms", between=("40 ms", "0.1 s"), source="a map")
KIND = Unknown(what="a kernel", default="old", among=("old", "new"), source="two releases")


def tried(unknown: Unknown, word: Callable[[Scalar], str], most: int = 50) -> list[At]:
    """All values that are tried of a claim whose word is a function of the value."""
    found: list[At] = []
    while (value := next_value(["sum"], found, unknown)) is not None:
        found.append(At(value, {"sum": word(value)}))
        assert len(found) <= most
    return found


def between(low: float, high: float) -> Callable[[Scalar], str]:
    return lambda value: "reproduced" if low <= float(value) <= high else "not_reproduced"


def test_first_come_the_default_and_values_over_the_whole_range() -> None:
    assert first_values(SWITCH) == (100, 20, 42, 89, 189, 400)
    assert first_values(DELAY) == ("70 ms", "40 ms", "55 ms", "85 ms", "0.1 s")
    assert first_values(KIND) == ("old", "new")


def test_the_ends_of_a_region_are_found_to_a_twentieth() -> None:
    found = tried(SWITCH, between(60, 95))
    (_, region, _) = regions("sum", found, SWITCH)
    assert region.outcome == "holds"
    assert 60 <= int(region.first) <= 63
    assert 91 <= int(region.last) <= 95
    assert len(found) < 16


def test_a_claim_that_no_value_decides_otherwise_is_tried_at_the_first_values_alone() -> None:
    found = tried(SWITCH, lambda value: "not_reproduced")
    assert [at.value for at in found] == list(first_values(SWITCH))
    assert [str(region) for region in regions("sum", found, SWITCH)] == ["fails at 20 to 400"]


def test_words_without_an_order_are_each_tried_once() -> None:
    found = tried(KIND, lambda value: "agrees" if value == "new" else "inconclusive")
    assert [str(region) for region in regions("sum", found, KIND)] == ["open at old", "holds at new"]
    assert where_all_hold(["sum"], found, KIND) == ("new",)


def test_quantities_keep_the_unit_of_the_default() -> None:
    found = tried(DELAY, lambda value: "reproduced" if float(str(value).split()[0]) in (70, 78) else "not_reproduced")
    assert all(str(at.value).endswith(" ms") or at.value == "0.1 s" for at in found)


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
