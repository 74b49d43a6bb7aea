# SPDX-License-Identifier: Apache-2.0
"""A command that is given a time starts nothing that would last longer."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from conftest import delay_spec

from longfat.errors import StudyError
from longfat.execute.deadline import Deadline, seconds_until
from longfat.runspec import RunSpec

NOON = datetime(2026, 5, 17, 12, 0, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("45min", 2700),
        ("1.5 h", 5400),
        ("12:01", 60),
        ("11:00", 23 * 3600),
        ("2026-05-17T12:30", 1800),
        ("2026-05-17T10:30:00+00:00", 1800),
    ],
)
def test_an_end_is_a_length_of_time_or_a_time(text: str, seconds: float) -> None:
    assert seconds_until(text, NOON) == seconds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("45", "'45' is no time"),
        ("45m", "'45m' is no time"),
        ("25:00", "'25:00' is no time"),
        ("soon", "'soon' is no time"),
        ("0s", "'0s' has passed"),
        ("2026-05-17T11:59", "'2026-05-17T11:59' has passed"),
    ],
)
def test_what_is_no_end_is_an_error_that_says_what_is_allowed(text: str, problem: str) -> None:
    with pytest.raises(StudyError, match=f"--until: {problem}; allowed: a length of time such as 90s, 45min or 2h, or"):
        seconds_until(text, NOON)


def test_runs_are_taken_to_last_as_much_longer_than_estimated_as_those_before() -> None:
    now = [0.0]
    deadline = Deadline(110.0, _ten_seconds, lambda: now[0])
    assert deadline.left_s() == 100.0  # the rest is for what ends the runs
    now[0] = 65.0
    assert deadline.suffices_for(delay_spec())
    deadline.observe(delay_spec(), 40.0)
    assert not deadline.suffices_for(delay_spec())
    now[0] = 60.0
    assert deadline.suffices_for(delay_spec())


def test_runs_are_never_taken_to_last_shorter_than_estimated() -> None:
    deadline = Deadline(11.0, _ten_seconds, lambda: 0.0)
    deadline.observe(delay_spec(), 1.0)
    assert deadline.left_s() == pytest.approx(9.9)
    assert not deadline.suffices_for(delay_spec())


def _ten_seconds(spec: RunSpec) -> float:
    return 10.0
