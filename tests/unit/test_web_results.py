# SPDX-License-Identifier: Apache-2.0
"""Web traffic behind a run: gates, dataset and metrics, on the fake backend's known truth."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import cable_spec
from fabricated_results import CAPTURED, READ_BACK, make_results
from own_metrics import own_metrics

from longfat.metrics.quantities import Selection, by_repetition
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Node, RunSpec, Web
from longfat.study.traffic import misses

own_metrics("kelly-2003")  # web_bytes, web_rate
MANIFEST = """\
format: 2
study: web
title: Web users
algorithms: {standard: {cca: reno}}
experiments:
  - id: users
    topology: {kind: dumbbell, rate: 1 Gbit/s, rtt: 120 ms, senders: 3}
    web:
      - {name: one, from: client1, to: server, users: 100, algorithm: standard, duration: 10 s}
      - {name: two, from: client2, to: server, users: 50, algorithm: standard, duration: 10 s, start: 10 s}
    repetitions: 2
"""
USERS = Web("surf", "client1", "server", 100, "reno", 10_000_000)
SPEC = RunSpec((Node("client1", "sender"), Node("server", "receiver")), (), (), cable_spec().probes, 1, web=(USERS,))
ACHIEVED = {**READ_BACK, **CAPTURED, "web": [{"web": "surf", "ccas": ["reno"]}]}
REPORT = {"web": "surf", "replies": 100_000, "errors": {"recv_error": 60, "http_404": 40}}

Change = Callable[[dict[str, Any], list[dict[str, Any]]], object]


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        (lambda seen, web: web[0].update(replies=99_900), 0),
        (lambda seen, web: web[0].update(replies=9_900), 1),
        (lambda seen, web: web[0].update(replies=0, errors={}), 1),
        (lambda seen, web: web.clear(), 1),
        (lambda seen, web: seen.pop("web"), 1),
        (lambda seen, web: seen["web"][0].update(ccas=["cubic", "reno"]), 1),
        (lambda seen, web: seen["web"][0].update(ccas=[]), 1),
    ],
)
def test_gates_of_web_traffic_name_what_was_missed(change: Change, missed: int) -> None:
    achieved, web = copy.deepcopy(ACHIEVED), [copy.deepcopy(REPORT)]
    change(achieved, web)
    found = misses(Evidence(SPEC, achieved, [], {"web": web}))
    assert ["surf" in miss for miss in found] == [True] * missed


def test_a_run_without_flows_is_valid_and_has_a_row_for_each_web_traffic(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(MANIFEST, encoding="utf-8")
    dataset = make_results(tmp_path, tmp_path / "results").dataset
    for metric, value in (("web_bytes", 0.015), ("web_rate", 6.0)):
        assert list(by_repetition(dataset, Selection(metric, "users")).values.values()) == [value, value]
    run = dataset.runs[0]
    assert (run.status, run.reason) == ("ok", None)
    assert run.run_id not in dataset.flows
    rows = dataset.web[run.run_id]
    assert [(row["web"], row["users"], row["replies"], row["errors"]) for row in rows] == [
        ("one", 100, 1000, 0),
        ("two", 50, 500, 0),
    ]
    assert (rows[1]["start_us"], rows[1]["end_us"]) == (10_000_000, 20_000_000)
    assert (rows[0]["bytes_received"], rows[0]["mean_reply_us"]) == (10_000_000, 200_000)
