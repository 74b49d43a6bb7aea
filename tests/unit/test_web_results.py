# SPDX-License-Identifier: Apache-2.0
"""Web traffic behind a run: gates, dataset and metrics, on the fake backend's known truth."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import cable_spec
from fabricated_results import change_json
from fake_backend import FakeBackend
from matplotlib.figure import Figure
from own_metrics import own_metrics

from longfat.dataset.build import build_dataset
from longfat.dataset.load import load_dataset
from longfat.execute.record.bundle import Bundle, RunFacts, run_folder_name
from longfat.figures.base import Sources
from longfat.figures.parts import FigureData
from longfat.figures.topology import Topology as TopologyFigure
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Selection, by_repetition
from longfat.plan import Plan, build_plan, write_lock
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Node, RunSpec, Web
from longfat.study.load import load_study
from longfat.study.traffic import misses

kelly = own_metrics("kelly-2003")
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
ACHIEVED = {
    "nodes": {name: {"sysctls": {}, "offloads_on": []} for name in ("client1", "server")},
    "interfaces": [],
    "flows": [],
    "capture": {"stream1": {"captured": 0, "dropped": 0, "removed": 0}},
    "cpu_pressure_us": None,
    "memory_pressure": 0,
    "web": [{"web": "surf", "ccas": ["reno"]}],
}
REPORT = {"web": "surf", "replies": 100_000, "errors": {"recv_error": 60, "http_404": 40}}

Change = Callable[[dict[str, Any], list[dict[str, Any]]], object]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda seen, web: web[0].update(replies=99_900), None),
        (
            lambda seen, web: web[0].update(replies=9_900),
            "1 % of the requests of surf failed (40 http_404, 60 recv_error), allowed 0.1 %",
        ),
        (lambda seen, web: web[0].update(replies=0, errors={}), "the users of surf got no reply"),
        (lambda seen, web: web.clear(), "web traffic surf was not reported"),
        (lambda seen, web: seen.pop("web"), "web traffic surf was not reported"),
        (
            lambda seen, web: seen["web"][0].update(ccas=["cubic", "reno"]),
            "algorithm of the server of surf is cubic, reno, declared reno",
        ),
        (
            lambda seen, web: seen["web"][0].update(ccas=[]),
            "algorithm of the server of surf is not seen, declared reno",
        ),
    ],
)
def test_gates_of_web_traffic_name_what_was_missed(change: Change, reason: str | None) -> None:
    achieved, web = copy.deepcopy(ACHIEVED), [copy.deepcopy(REPORT)]
    change(achieved, web)
    assert misses(Evidence(SPEC, achieved, [], {"web": web})) == ((reason,) if reason else ())


def results(folder: Path, bend: Callable[[Path], None] | None = None) -> Path:
    """Lock, records and dataset of the manifest above."""
    backend, plan = FakeBackend(), plan_of_the_manifest(folder)
    write_lock(plan, folder / "lock.json")
    for run in plan.runs:
        name = run_folder_name(run.scenario, run.repetition, run.run_id)
        with Bundle(folder / "raw", name, run.spec) as bundle:
            backend.run(run.spec, bundle.folder)
            if bend:
                bend(bundle.folder)
            bundle.commit(RunFacts(run.run_id, "ok", None, 1, "fake", 0.0, "2000-01-01T00:00:00Z"))
    build_dataset(folder)
    return folder


def test_a_run_without_flows_is_valid_and_has_a_row_for_each_web_traffic(tmp_path: Path) -> None:
    dataset = load_dataset(results(tmp_path))
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


@pytest.mark.parametrize(("metric", "unit", "value"), [("web_bytes", "GB", 0.015), ("web_rate", "Mb/s", 6.0)])
def test_claims_can_ask_for_bytes_rate_and_errors_of_all_web_traffic(
    tmp_path: Path, metric: str, unit: str, value: float
) -> None:
    found = by_repetition(load_dataset(results(tmp_path)), Selection(metric, "users"))
    assert METRICS[metric].unit == unit
    assert not METRICS[metric].flow
    assert list(found.values.values()) == [value, value]


def test_a_report_of_another_shape_makes_its_run_invalid(tmp_path: Path) -> None:
    def bend(folder: Path) -> None:
        change_json(folder / "web.json", lambda reports: reports[0].pop("errors"))

    run = load_dataset(results(tmp_path, bend)).runs[0]
    assert run.status == "invalid"
    assert run.reason == "web.json: the file cannot be read: KeyError('errors')"


def test_a_run_without_web_traffic_has_no_value() -> None:
    for metric in (kelly.web_gigabytes, kelly.web_mbps):
        with pytest.raises(NoValue, match="the run has no web traffic"):
            metric([])


def plan_of_the_manifest(folder: Path) -> Plan:
    (folder / "study.yaml").write_text(MANIFEST, encoding="utf-8")
    return build_plan(load_study(folder / "study.yaml"), profile="paper", pins=FakeBackend().pins())


def test_the_drawn_network_has_an_arrow_for_each_web_traffic(tmp_path: Path) -> None:
    plan = plan_of_the_manifest(tmp_path)
    asked = {"topology": "slide-11", "title": "the network", "paper": "-"}
    figure = Figure()
    sources = cast(Sources, SimpleNamespace(plan=plan, study=load_study(tmp_path / "study.yaml")))
    drawn = TopologyFigure.model_validate(asked | {"experiment": "users"})
    drawn.draw(figure, FigureData((), ()), sources)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "one: client1 to server, 100 web users, standard" in texts
    assert "two: client2 to server, 50 web users, standard" in texts
