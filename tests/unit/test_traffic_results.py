# SPDX-License-Identifier: Apache-2.0
"""Transfers, web traffic, requests and pings: plan, gates, dataset and metrics, on the fake backend's known truth."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fabricated_results import CAPTURED, READ_BACK, make_results
from manifests import HEAD, keys_of, plan_of, study_of
from own_metrics import own_metrics
from test_requests import SPEC as ASKING

from longfat.dataset.load import Dataset
from longfat.metrics.quantities import Selection, by_repetition, measure
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Web
from longfat.study.traffic import misses

own_metrics("kelly-2003")  # web_bytes, web_rate
MANIFEST = (
    HEAD
    + """\
  - id: bulk
    topology: {kind: dumbbell, rate: 100 Mbit/s, rtt: 30 ms, senders: 3, receivers: 2}
    flows:
      - {name: bulk, count: "${flows}", from: client2, to: server1, algorithm: standard, window: 1 MiB,
         duration: 10 s, transfer: 5 MB}
    sweep: {product: {flows: [1, 4]}}
  - id: users
    topology: {kind: dumbbell, rate: 1 Gbit/s, rtt: 120 ms, senders: 3}
    web:
      - {name: one, from: client1, to: server, users: 100, algorithm: standard, duration: 10 s}
      - {name: two, from: client2, to: server, users: 50, algorithm: standard, duration: 10 s, start: 10 s}
    repetitions: 2
  - id: wave
    topology: {kind: dumbbell, rate: 100 Mbit/s, rtt: 20 ms, senders: 2, receivers: 2}
    flows:
      - {name: stream, from: client1, to: server1, algorithm: standard, window: 64 KiB, duration: 10 s}
    udp: [{name: wave, from: client2, to: server2, mean: 12 Mbit/s, swing: 1 Mbit/s, period: 5 s, duration: 10 s}]
    probes: {ping: 100 ms}
"""
)
USERS = Web("surf", "client1", "server", 100, "reno", 10_000_000)
SPEC = dataclasses.replace(ASKING, web=(USERS,))
ALGORITHMS = {kind: [{kind: name, "ccas": ["reno"]}] for kind, name in (("web", "surf"), ("requests", "ask"))}
TOLD = {
    "web": [{"web": "surf", "replies": 100_000, "errors": {"recv_error": 60, "http_404": 40}}],
    "requests": [{"requests": "ask", "responses": 100, "errors": {}}],
}

Change = Callable[[dict[str, Any], list[dict[str, Any]]], object]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("traffic")
    study_of(folder, MANIFEST)
    return make_results(folder, folder / "results").dataset


def test_a_count_stands_for_numbered_flows_on_hosts_in_turn_and_each_may_be_captured(tmp_path: Path) -> None:
    fixed = ('"${flows}"', "4"), ("    sweep: {product: {flows: [1, 4]}}", "    probes: {capture: [bulk2]}")
    (spec,) = (run.spec for run in plan_of(tmp_path, MANIFEST, *fixed).runs if run.experiment == "bulk")
    assert [(flow.name, flow.sender, flow.receiver) for flow in spec.flows] == [
        ("bulk1", "client2", "server1"),
        ("bulk2", "client3", "server2"),
        ("bulk3", "client1", "server1"),
        ("bulk4", "client2", "server2"),
    ]
    assert spec.probes.capture == ("bulk2",)
    unknown = keys_of(tmp_path, MANIFEST, *fixed, ("[bulk2]", "[bulk]"))
    assert unknown == ["experiments[0].probes.capture[0]"]


def test_complete_transfers_are_counted_over_all_flows(dataset: Dataset) -> None:
    (four,) = (run for run in dataset.runs if run.factors.get("flows") == 4)
    flows = dataset.flows[four.run_id]
    assert all(row["transfers"] == row["bytes_received"] // 5_000_000 > 0 for row in flows)
    assert four.status == "ok"
    chosen = Selection("transfers", "bulk").narrowed("flows", 4)
    assert measure(dataset, chosen, 1).value == sum(row["transfers"] for row in flows)


@pytest.mark.parametrize(
    ("kind", "change", "missed"),
    [
        ("web", lambda seen, told: told[0].update(replies=99_900), 0),
        ("web", lambda seen, told: told[0].update(replies=9_900), 1),
        ("web", lambda seen, told: told[0].update(replies=0, errors={}), 1),
        ("web", lambda seen, told: told.clear(), 1),
        ("web", lambda seen, told: seen.pop("web"), 1),
        ("web", lambda seen, told: seen["web"][0].update(ccas=["cubic", "reno"]), 1),
        ("web", lambda seen, told: seen["web"][0].update(ccas=[]), 1),
        ("requests", lambda seen, told: told.clear(), 1),
        ("requests", lambda seen, told: seen.pop("requests"), 1),
        ("requests", lambda seen, told: seen["requests"][0].update(ccas=["cubic"]), 1),
        ("requests", lambda seen, told: told[0].update(responses=0), 1),
        ("requests", lambda seen, told: told[0].update(errors={"econnreset": 2}), 1),
    ],
)
def test_gates_of_web_traffic_and_requests_name_what_was_missed(kind: str, change: Change, missed: int) -> None:
    achieved, told = copy.deepcopy(({**READ_BACK, **CAPTURED, **ALGORITHMS}, TOLD))
    change(achieved, told[kind])
    name = {"web": "surf", "requests": "ask"}[kind]
    assert [name in miss for miss in misses(Evidence(SPEC, achieved, [], told))] == [True] * missed


def test_a_run_without_flows_is_valid_and_has_a_row_for_each_web_traffic(dataset: Dataset) -> None:
    for metric, value in (("web_bytes", 0.015), ("web_rate", 6.0)):
        assert list(by_repetition(dataset, Selection(metric, "users")).values.values()) == [value, value]
    run = next(run for run in dataset.runs if run.experiment == "users")
    assert (run.status, run.reason) == ("ok", None)
    assert run.run_id not in dataset.flows
    rows = dataset.web[run.run_id]
    assert [(row["web"], row["users"], row["replies"], row["errors"]) for row in rows] == [
        ("one", 100, 1000, 0),
        ("two", 50, 500, 0),
    ]
    assert (rows[1]["start_us"], rows[1]["end_us"]) == (10_000_000, 20_000_000)
    assert (rows[0]["bytes_received"], rows[0]["mean_reply_us"]) == (10_000_000, 200_000)


@pytest.mark.parametrize(
    ("metric", "parameters", "value"),
    [("rtt", {}, 20), ("rtt_least", {}, 20), ("rtt_most", {}, 20), ("stability", {"interval": 1e6, "since": 1e6}, 0)],
)
def test_pings_without_a_queue_have_the_rtt_and_a_constant_rate_is_steady(
    dataset: Dataset, metric: str, parameters: dict[str, float], value: float
) -> None:
    found = measure(dataset, Selection(metric, "wave", parameters=parameters), 1).value
    assert found == pytest.approx(value, rel=0.05, abs=1e-3)
