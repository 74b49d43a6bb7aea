# SPDX-License-Identifier: Apache-2.0
"""The message for an unknown name lists the allowed names and the nearest one."""

from longfat.study.schema.names import unknown

FIGURES = [f"fig-{number}" for number in range(1, 90)]


def test_the_allowed_names_are_listed_in_their_order() -> None:
    message, hint = unknown("host", "clint2", ["server", "client2", "client1"])
    assert message == "unknown host 'clint2'; allowed: server, client2, client1"
    assert hint == "did you mean 'client2'?"


def test_a_long_list_is_cut() -> None:
    message, _ = unknown("artifact", "table", FIGURES)
    assert message.endswith("fig-40 and 49 more")
