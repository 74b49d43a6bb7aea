# SPDX-License-Identifier: Apache-2.0
"""Where two backends agree is decided by what was allowed before."""

from __future__ import annotations

from longfat.crosscheck.measure import Compared, Quantity
from longfat.crosscheck.report import page

GOODPUT = Quantity("goodput", "Mb/s", 0.02, lambda dataset, run: 0.0)


def compared(virtual: list[float], mininet: list[float]) -> Compared:
    return Compared("cable.algorithm-reno", GOODPUT, {"virtual": virtual, "mininet": mininet})


def test_means_within_what_is_allowed_agree() -> None:
    item = compared([94.0, 94.2], [93.0, 92.8])
    assert item.means == {"virtual": 94.1, "mininet": 92.9}
    assert item.differing == ()


def test_means_farther_apart_differ() -> None:
    assert compared([94.0], [90.0]).differing == ("mininet",)


def test_nothing_on_both_sides_agrees() -> None:
    assert compared([0.0], [0.0]).differing == ()


def test_each_backend_is_held_against_the_first() -> None:
    item = Compared("pair", GOODPUT, {"virtual": [94.0], "mininet": [93.5], "ns3": [80.0]})
    assert item.differing == ("ns3",)


def test_the_page_says_how_many_agree_and_marks_what_does_not() -> None:
    text = page([compared([94.0], [93.9]), compared([94.0], [90.0])], ["virtual", "mininet"], ["a note"])
    assert "With virtual mininet agrees on 1 of 2 numbers." in text
    assert "| 94.0 (94.0 to 94.0) | 90.0 (90.0 to 90.0) | mininet 4.3 % | 2 % | **mininet** |" in text
    assert "- a note" in text
