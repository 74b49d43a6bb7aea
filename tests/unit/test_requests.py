# SPDX-License-Identifier: Apache-2.0
"""Requests and their responses: what a manifest says of them, what a server and users make of it, and tables."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np
import pytest
from conftest import cable_spec
from manifests import HEAD, keys_of, refused, spec_of

from longfat.guest.kinds import requests
from longfat.metrics.data import NoValue
from longfat.metrics.requests import late_response_time, response_time
from longfat.spec.runspec import Node, Requests, RunSpec

MANIFEST = (
    HEAD
    + """\
  - id: crowd
    topology: {kind: dumbbell, rate: 10 Mbit/s, rtt: 40 ms, senders: 2}
    requests:
      - {name: ask, from: client1, to: server, algorithm: standard, users: 20, response: 30 kB, duration: 60 s}
"""
)
ASK = Requests("ask", "client1", "server", 20, "reno", 60_000_000, 30_000)
SPEC = RunSpec((Node("client1", "sender"), Node("server", "receiver")), (), (), cable_spec().probes, 1, requests=(ASK,))
ORDER = {"response_bytes": 1000, "shape": 3.0, "sizes": "fixed", "think_us": 2_000_000, "thinking": "fixed"}


def spec(folder: Path, *changes: tuple[str, str]) -> RunSpec:
    return spec_of(folder, MANIFEST, *changes)


def test_laws_of_sizes_and_times_can_be_chosen(tmp_path: Path) -> None:
    more = "response: 30 kB, sizes: pareto, shape: 1.2, request: 1 kB, think: 500 ms, thinking: fixed, start: 5 s"
    (found,) = spec(tmp_path, ("response: 30 kB", more)).requests
    assert (found.sizes, found.shape, found.request_bytes) == ("pareto", 1.2, 1000)
    assert (found.think_us, found.thinking, found.start_us) == (500_000, "fixed", 5_000_000)
    assert spec(tmp_path).requests == (ASK,)


OPEN = (("users: 20", "every: 10 ms"), ("response: 30 kB", "cdf: sizes.cdf"))
CDF = "# bytes, percent\n1000 0\n2000 50\n\n10000 100\n"
TABLE = ((1000, 0), (2000, 500_000), (10_000, 1_000_000))


def test_requests_may_begin_at_random_times_with_sizes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "sizes.cdf").write_text(CDF)
    (found,) = spec(tmp_path, *OPEN).requests
    assert (found.users, found.every_us, found.sizes, found.table) == (0, 10_000, "table", TABLE)
    assert found.response_bytes == 3750  # half of it 1500 on average, the other half 6000


@pytest.mark.parametrize(
    ("text", "said"),
    [("1000 0\n900 100\n", "line 2"), ("1000 120\n", "line 1"), ("one 50\n", "line 1"), ("1000 50\n", "100")],
)
def test_faults_of_a_distribution_are_named_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "sizes.cdf").write_text(text)
    assert said in str([problem.message for problem in refused(lambda: spec(tmp_path, *OPEN))])


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("users: 20, ", "", "users"),
        ("users: 20", "users: 20, every: 1 s", "users"),
        ("response: 30 kB, ", "", "response"),
        ("30 kB", "30 kB, sizes: pareto, shape: 1", "shape"),
        ("30 kB", "30 kB, shape: 2", "shape"),
        ("30 kB", "30 kB, sizes: normal", "sizes"),
        ("30 kB", "30 kB, request: 4 B", "request"),
        ("to: server", "to: client1", "to"),
    ],
)
def test_faults_of_requests_are_named(tmp_path: Path, old: str, new: str, key: str) -> None:
    assert keys_of(tmp_path, MANIFEST, (old, new)) == [f"experiments[0].requests[0].{key}"]


@pytest.mark.parametrize("sizes", ["fixed", "exponential", "pareto", "table"])
def test_every_law_has_the_declared_mean(sizes: str) -> None:
    random = Random(1)
    drawn = [requests.response_bytes({**ORDER, "sizes": sizes, "table": TABLE}, random) for _ in range(20_000)]
    assert fmean(drawn) == pytest.approx(3750 if sizes == "table" else 1000, rel=0.03)
    assert min(drawn) >= 1


RESPONSES = {
    "response_bytes": np.array([1000, 1000, 50_000, 100_000]),
    "response_us": np.array([40_000, 60_000, 90_000, 410_000]),
}


def test_the_time_of_responses_is_of_all_or_of_a_range_of_sizes() -> None:
    assert response_time(RESPONSES) == 150
    assert response_time(RESPONSES, up_to_bytes=1000) == 50
    assert response_time(RESPONSES, above_bytes=1000, up_to_bytes=50_000) == 90
    assert late_response_time(RESPONSES) == pytest.approx(410, rel=0.03)
    with pytest.raises(NoValue):
        response_time(RESPONSES, above_bytes=1e6)


def test_the_report_has_a_line_for_each_response_in_the_order_of_asking(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    said = {"responses": [[30, 1, 500, 7], [10, 0, 400, 5]], "bytes_received": 900, "unfinished": 1, "errors": {}}
    (tmp_path / "requests" / "ask.ask.json").write_text(json.dumps(said))
    requests.report(SPEC, tmp_path)
    assert (tmp_path / "responses.csv").read_text().splitlines()[1:] == ["10,ask,0,400,5", "30,ask,1,500,7"]
    (told,) = json.loads((tmp_path / "requests.json").read_text())
    assert (told["responses"], told["mean_response_us"], told["unfinished"]) == (2, 6, 1)
