# SPDX-License-Identifier: Apache-2.0
"""Requests and their responses in a guest, over the kernel's own TCP: what they take against what the path allows."""

from __future__ import annotations

import csv
import dataclasses
import json
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest
from guests import delay_path, run

from longfat.dataset.parse import parse_run
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Requests, RunSpec
from longfat.study.traffic import misses

pytestmark = pytest.mark.virtual

RATE_BPS = 100_000_000
RTT_US = 20_000
FIXED = Requests(
    "fixed", "client1", "server", 10, "scalable", 10_000_000, response_bytes=10_000, think_us=200_000, thinking="fixed"
)
HEAVY = dataclasses.replace(FIXED, name="heavy", users=20, sizes="pareto", shape=2.5, thinking="exponential")

MICE = Requests(
    *("mice", "client1", "server", 0, "reno", 20_000_000),
    response_bytes=3_000, sizes="exponential", request_bytes=8, every_us=40_000,
)  # fmt: skip


def spec_of(*requests: Requests) -> RunSpec:
    """Users over a path of 100 Mbit/s and 20 ms whose queue nothing overflows."""
    return delay_path(RATE_BPS, RTT_US, 10_000, requests=requests)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run with two crowds, which no test writes to."""
    return run(spec_of(FIXED, HEAVY), tmp_path_factory.mktemp("requests") / "run")


def reports(folder: Path) -> dict[str, Any]:
    return {report["requests"]: report for report in json.loads((folder / "requests.json").read_text())}


def responses(folder: Path, name: str) -> list[dict[str, int]]:
    with (folder / "responses.csv").open(newline="") as table:
        rows = [row for row in csv.DictReader(table) if row.pop("requests") == name]
    return [{key: int(value) for key, value in row.items()} for row in rows]


def test_the_run_is_valid_and_its_tables_have_every_response(folder: Path) -> None:
    spec = spec_of(FIXED, HEAVY)
    parsed = parse_run(folder, "id", spec)
    assert misses(Evidence(spec, parsed.achieved, parsed.reports, parsed.told, parsed.end_us)) == ()
    counted = parsed.tables["requests"].to_pylist()
    assert [row["requests"] for row in counted] == ["fixed", "heavy"]
    assert parsed.tables["responses"].num_rows == sum(row["responses"] for row in counted)
    ccas = {one["requests"]: one["ccas"] for one in parsed.achieved["requests"]}
    assert ccas == {"fixed": ["scalable"], "heavy": ["scalable"]}


def test_a_response_takes_the_connection_s_round_trip_and_its_own(folder: Path) -> None:
    taken = [row["response_us"] for row in responses(folder, "fixed")]
    assert min(taken) >= 2 * RTT_US
    assert min(taken) < 2.2 * RTT_US  # 10 kB fit into the initial window
    assert {row["response_bytes"] for row in responses(folder, "fixed")} == {10_000}


def test_users_ask_as_often_as_thinking_and_responses_leave_time_for(folder: Path) -> None:
    report = reports(folder)["fixed"]
    expected = FIXED.users * FIXED.duration_us / (FIXED.think_us + report["mean_response_us"])
    assert report["responses"] == pytest.approx(expected, rel=0.05)


def test_requests_at_random_times_begin_as_a_poisson_process_does(tmp_path: Path) -> None:
    rows = responses(run(spec_of(MICE), tmp_path / "run"), "mice")
    expected = MICE.duration_us / 40_000
    assert abs(len(rows) - expected) < 3 * expected**0.5
    gaps = [after["t_us"] - before["t_us"] for before, after in pairwise(rows)]
    assert pstdev(gaps) == pytest.approx(fmean(gaps), rel=0.15)  # equal in an exponential distribution
    assert fmean(row["response_bytes"] for row in rows) == pytest.approx(3_000, rel=0.15)
    small = [row["response_us"] for row in rows if row["response_bytes"] <= 1448]
    assert min(small) == pytest.approx(2 * RTT_US, rel=0.02)
