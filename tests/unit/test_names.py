# SPDX-License-Identifier: Apache-2.0
"""The wording for unknown names: what is allowed, shortly, and what may have been meant."""

from longfat.study.schema.names import unknown

FIGURES = ["fig-1", "tab-1", *(f"fig-{number}" for number in range(2, 49))]


def test_many_numbers_are_told_as_a_range() -> None:
    message, _ = unknown("artifact", "table", FIGURES)
    assert message == "unknown artifact 'table'; allowed: fig-1 to fig-48, tab-1"


def test_few_names_are_told_in_their_order() -> None:
    message, _ = unknown("host", "c", ["server", "client2", "client1"])
    assert message == "unknown host 'c'; allowed: server, client1, client2"


def test_another_number_is_no_slip_of_the_finger_but_another_letter_is() -> None:
    assert unknown("artifact", "fig-99", FIGURES)[1] is None
    assert unknown("artifact", "figg-3", FIGURES)[1] == "did you mean 'fig-3'?"
    assert unknown("kernel", "linux-7.2", ["linux-6.12", "linux-7.3"])[1] == "did you mean 'linux-7.3'?"
