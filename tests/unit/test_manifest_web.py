# SPDX-License-Identifier: Apache-2.0
"""Web traffic in a manifest, and in the run specs that come of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.plan import PlannedRun, build_plan, estimate
from longfat.spec.runspec import Web
from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.system.errors import StudyError

MANIFEST = """\
format: 2
study: web
title: Web users
algorithms:
  standard: {cca: reno}
  scalable: {cca: scalable, a: 0.02}
profiles:
  quick: {duration: 20 s}
experiments:
  - id: users
    topology: {kind: dumbbell, rate: 1 Gbit/s, rtt: 120 ms, senders: 2}
    flows: [{name: bulk, from: client1, to: server, algorithm: scalable, duration: 30 s}]
    web: [{name: surf, from: client2, to: server, users: 1400, algorithm: standard, duration: 60 s}]
"""


def load(folder: Path, *changes: tuple[str, str]) -> Study:
    text = MANIFEST
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


def problems(folder: Path, *changes: tuple[str, str]) -> list[str]:
    with pytest.raises(StudyError) as caught:
        load(folder, *changes)
    return [f"{problem.key}: {problem.message}" for problem in caught.value.problems]


def planned(study: Study, profile: str = "paper") -> PlannedRun:
    (run,) = build_plan(study, profile=profile, pins={"backend": "virtual"}).runs
    return run


def test_web_traffic_stands_in_the_run_spec_with_the_server_as_sender(tmp_path: Path) -> None:
    assert planned(load(tmp_path)).spec.web == (
        Web("surf", "client2", "server", 1400, "reno", 60_000_000, "surge", 1_000_000, 0),
    )


def test_model_start_and_off_times_can_be_chosen(tmp_path: Path) -> None:
    more = ("users: 1400", "users: 1400, model: surge_files, off_times: 12.5 %, start: 5 s")
    (web,) = planned(load(tmp_path, more)).spec.web
    assert (web.model, web.off_ppm, web.start_us) == ("surge_files", 125_000, 5_000_000)


def test_the_servers_host_has_the_parameters_of_its_algorithm(tmp_path: Path) -> None:
    spec = planned(load(tmp_path, ("algorithm: standard", "algorithm: scalable"))).spec
    sysctls = {node.name: node.sysctls for node in spec.nodes}
    assert sysctls["client2"]["net.ipv4.tcp_scalable.a_ppm"] == "20000"


def test_a_factor_may_stand_in_web_traffic(tmp_path: Path) -> None:
    study = load(
        tmp_path,
        ("users: 1400", 'users: "${crowd}"'),
        ("duration: 60 s}]\n", "duration: 60 s}]\n    sweep: {product: {crowd: [10, 20]}}\n"),
    )
    runs = build_plan(study, profile="paper", pins={}).runs
    assert sorted(run.spec.web[0].users for run in runs) == [10, 20]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            ("model: surge", "model: surg"),
            "experiments[0].web[0].model: unknown web model 'surg'; allowed: surge, surge_files",
        ),
        (
            ("from: client2", "from: client3"),
            "experiments[0].web[0].from: unknown node 'client3'; allowed: client1, client2, server",
        ),
        (("from: client2, to: server", "from: server, to: server"), "experiments[0].web[0].to: 'surf' goes from "),
        (("users: 1400", "users: 0"), "experiments[0].web[0].users: 0 is out of range; allowed: 1 or more"),
        (
            ("name: surf", "name: bulk"),
            "experiments[0].web[0].name: 'bulk' is also a name in flows; names are unique",
        ),
        (
            ("from: client2", "from: client1"),
            "experiments[0].web[0].algorithm: 'surf' needs reno on 'client1', where 'bulk' needs scalable",
        ),
        (("users: 1400", "user: 1400"), "experiments[0].web[0].user: unknown key 'user'; allowed: name, from, to, "),
    ],
)
def test_faults_of_web_traffic_are_named(tmp_path: Path, change: tuple[str, str], text: str) -> None:
    given = ("users: 1400", "users: 1400, model: surge")
    found = problems(tmp_path, given, change)
    assert any(problem.startswith(text) for problem in found), found


def test_two_servers_of_a_host_have_one_algorithm(tmp_path: Path) -> None:
    entry = "{name: surf, from: client2, to: server, users: 1400, algorithm: standard, duration: 60 s}"
    other = entry.replace("surf", "swim").replace("standard", "{cca: cubic}")
    assert problems(tmp_path, (f"[{entry}]", f"[{entry}, {other}]")) == [
        "experiments[0].web[1].algorithm: 'swim' needs cubic on 'client2', where 'surf' needs reno"
    ]


def test_an_experiment_without_any_traffic_is_refused(tmp_path: Path) -> None:
    text = MANIFEST[MANIFEST.index("    flows:") :]
    assert problems(tmp_path, (text, "")) == [
        "experiments[0].flows: is required here and missing: an experiment needs traffic (flows, web, udp, requests, "
        "programs) or `probes.ping`"
    ]


def test_the_estimate_counts_the_users_requests_and_bytes(tmp_path: Path) -> None:
    few = build_plan(load(tmp_path, ("users: 1400", "users: 1")), profile="paper", pins={})
    many = build_plan(load(tmp_path), profile="paper", pins={})
    more = build_plan(load(tmp_path, ("users: 1400", "users: 1400, off_times: 50 %")), profile="paper", pins={})
    seconds = [estimate(plan, jobs=1).wall_seconds for plan in (few, many, more)]
    assert seconds[0] < seconds[1] < seconds[2]
