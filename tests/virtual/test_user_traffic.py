# SPDX-License-Identifier: Apache-2.0
"""Web users and users with requests in a guest: real servers and clients against what the path and the models allow."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest
from guests import delay_path
from studies import done

from longfat.dataset.parse import ParsedRun
from longfat.guest import surge
from longfat.guest.web import SPARE_FILES
from longfat.spec.runspec import Requests, RunSpec, Web

pytestmark = pytest.mark.virtual

RTT_US = 20_000
USERS = Web("surf", "client1", "server", 20, "scalable", 10_000_000, "surge", 100_000)
FIXED = Requests(
    "fixed", "client1", "server", 10, "scalable", 10_000_000, response_bytes=10_000, think_us=200_000, thinking="fixed"
)
HEAVY = dataclasses.replace(FIXED, name="heavy", users=20, sizes="pareto", shape=2.5, thinking="exponential")
MICE = Requests(
    *("mice", "client1", "server", 0, "reno", 20_000_000),
    response_bytes=3_000, sizes="exponential", request_bytes=8, every_us=40_000,
)  # fmt: skip


def spec_of(**users: Any) -> RunSpec:
    """Users over a path of 100 Mbit/s and 20 ms whose queue nothing overflows."""
    return delay_path(100_000_000, RTT_US, 10_000, **users)


@pytest.fixture(scope="module")
def surfed(tmp_path_factory: pytest.TempPathFactory) -> ParsedRun:
    """A valid run with web users."""
    return done(spec_of(web=(USERS,)), tmp_path_factory.mktemp("web") / "run")


def test_users_get_about_as_many_replies_as_the_model_asks_for(surfed: ParsedRun) -> None:
    (web,) = surfed.told["web"]
    assert web["errors"] == {}
    # OFF times are a tenth of the model's; what is left of a user's time, the replies take.
    off_s = surge.mean_off_s() / 10 / (1 + surge.mean_embedded())
    expected = USERS.users * USERS.duration_us / 1e6 / (off_s + web["mean_reply_us"] / 1e6)
    assert web["replies"] == pytest.approx(expected, rel=0.25)
    assert RTT_US < web["mean_reply_us"] < 20 * RTT_US


def test_the_bytes_of_the_replies_crossed_the_senders_link(surfed: ParsedRun) -> None:
    (web,) = surfed.told["web"]
    rows = [row for row in surfed.tables["queues"].to_pylist() if row["interface"] == "client1-eth0"]
    assert web["bytes_received"] > 10_000 * USERS.users
    assert 1.02 < rows[-1]["sent_bytes"] / web["bytes_received"] < 1.2  # headers, and replies to packets without data


def test_a_server_of_few_users_may_keep_every_file_open(tmp_path: Path) -> None:
    users = dataclasses.replace(USERS, model="surge_files", off_ppm=10_000, duration_us=5_000_000)
    (web,) = done(spec_of(web=(users,)), tmp_path / "run").told["web"]
    # Nearly each of these is for a file that was not open yet, and there were none too many to open.
    assert web["replies"] > 2 * USERS.users + SPARE_FILES
    assert web["errors"] == {}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> ParsedRun:
    """A valid run with two crowds."""
    return done(spec_of(requests=(FIXED, HEAVY)), tmp_path_factory.mktemp("requests") / "run")


def responses(parsed: ParsedRun, name: str) -> list[dict[str, Any]]:
    return [row for row in parsed.tables["responses"].to_pylist() if row["requests"] == name]


def test_the_tables_have_every_response(asked: ParsedRun) -> None:
    counted = {row["requests"]: row["responses"] for row in asked.tables["requests"].to_pylist()}
    assert counted == {name: len(responses(asked, name)) for name in ("fixed", "heavy")}


def test_a_response_takes_the_connection_s_round_trip_and_its_own(asked: ParsedRun) -> None:
    taken = [row["response_us"] for row in responses(asked, "fixed")]
    assert min(taken) >= 2 * RTT_US
    assert min(taken) < 2.2 * RTT_US  # 10 kB fit into the initial window
    assert {row["response_bytes"] for row in responses(asked, "fixed")} == {10_000}


def test_users_ask_as_often_as_thinking_and_responses_leave_time_for(asked: ParsedRun) -> None:
    (report,) = (one for one in asked.told["requests"] if one["requests"] == "fixed")
    expected = FIXED.users * FIXED.duration_us / (FIXED.think_us + report["mean_response_us"])
    assert report["responses"] == pytest.approx(expected, rel=0.05)


def test_requests_at_random_times_begin_as_a_poisson_process_does(tmp_path: Path) -> None:
    rows = responses(done(spec_of(requests=(MICE,)), tmp_path / "run"), "mice")
    expected = MICE.duration_us / 40_000
    assert abs(len(rows) - expected) < 3 * expected**0.5
    gaps = [after["t_us"] - before["t_us"] for before, after in pairwise(rows)]
    assert pstdev(gaps) == pytest.approx(fmean(gaps), rel=0.15)  # equal in an exponential distribution
    assert fmean(row["response_bytes"] for row in rows) == pytest.approx(3_000, rel=0.15)
    small = [row["response_us"] for row in rows if row["response_bytes"] <= 1448]
    assert min(small) == pytest.approx(2 * RTT_US, rel=0.02)
