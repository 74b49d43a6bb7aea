# SPDX-License-Identifier: Apache-2.0
"""What ``longfat plan`` prints: what varies, what is fixed and by default, what is excluded, and the full form."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from longfat.cli import app
from longfat.plan.settings import Setting, expanded, settings
from longfat.study.load import load_study
from longfat.study.study import Study

STUDY = """\
format: 2
study: shown
title: Shown
algorithms:
  reno: {cca: reno}
  scalable: {cca: scalable, a: 0.02}
hosts: {txqueuelen: 100}
paths:
  long: {kind: dumbbell, rate: 100 Mbit/s, rtt: 70 ms, senders: 1}
stacks:
  few: {streams: 1}
  many: {streams: 16}
defaults: {path: long, flow: {from: client1, to: server, duration: 10 s}}
experiments:
  - id: first
    topology: {bottleneck_queue: {limit: "${limit}"}}
    flows: [{name: f, algorithm: "${algorithm}", streams: "${stack.streams}"}]
    sweep:
      product: {algorithm: [reno, scalable], stack: [few, many]}
      derived: {limit: round(path.rate * path.rtt / packet)}
      exclude: [{when: {algorithm: scalable, stack: many}, reason: too many}]
  - id: second
    flows: [{name: f, algorithm: scalable, start: 2 s, duration: 20 s}]
    memory: 2 GiB
profiles:
  quick: {duration: 5 s}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "experiments" / "shown"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return folder


@pytest.fixture
def study(folder: Path) -> Study:
    return load_study(folder / "study.yaml")


def plan(*options: str) -> str:
    result = CliRunner().invoke(app, ["plan", "shown", *options])
    assert result.exit_code == 0, result.output
    return result.output


def rows(output: str) -> list[list[str]]:
    """The cells of all rows of all tables."""
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in output.splitlines() if line[:1] == "│"]


def test_a_setting_says_whether_it_is_a_default(study: Study) -> None:
    found = settings(study.experiments[0].points[0].experiment, study)
    assert found["hosts.txqueuelen"] == Setting("100", default=False)
    assert found["hosts.mtu"] == Setting("1500 B", default=True)
    assert found["topology.rtt"] == Setting("70 ms", default=False)
    assert found["topology.delay_placement"] == Setting("split", default=True)
    assert found["flows.f.start"] == Setting("0 us", default=True)
    assert found["memory"] == Setting("1 GiB", default=True)
    assert str(found["kernel"]) == "linux-6.12 (default)"


def test_an_algorithm_is_shown_with_its_parameters(study: Study) -> None:
    found = settings(study.experiments[1].points[0].experiment, study)
    assert str(found["flows.f.algorithm"]) == "scalable, a 0.02"


def test_the_plan_lists_factors_with_their_values_formulas_and_cost(folder: Path) -> None:
    found = rows(plan())
    assert [row[1] for row in found[:3]] == [
        "algorithm: reno, scalable",
        "stack: few, many",
        "limit = round(path.rate * path.rtt / packet)",
    ]
    assert found[0][0] == "first"
    assert found[0][2:4] == ["3", "3"]
    assert found[3][0] == "second"


def test_the_plan_lists_what_is_fixed_everywhere_and_what_by_experiment(folder: Path) -> None:
    found = rows(plan())
    assert ["hosts.mtu", "1500 B (default)"] in found
    assert ["topology.rtt", "70 ms"] in found
    assert ["flows.f.duration", "5 s"] in found
    assert ["second", "topology: bottleneck_queue.limit 100 (default)"] in found
    assert ["", "flows.f: start 2 s, algorithm scalable, a 0.02, streams 1 (default)"] in found
    assert ["", "memory: 2 GiB"] in found


def test_the_plan_says_what_is_excluded_and_why(folder: Path) -> None:
    assert ["first", "1", "algorithm=scalable, stack=many", "too many"] in rows(plan())


def test_a_plan_of_nothing_is_empty_tables(folder: Path) -> None:
    text = STUDY.replace("quick: {duration: 5 s}", "quick: {leave_out: [second]}")
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    assert ["runs", "0"] in rows(plan("--only", "second"))


def test_every_line_of_a_plan_fits_into_100_columns(folder: Path) -> None:
    assert max(map(len, plan().splitlines())) <= 100


def test_the_expanded_plan_is_yaml_of_every_point_with_nothing_left_out(folder: Path) -> None:
    documents = list(yaml.safe_load_all(plan("--expanded")))
    assert [document["id"] for document in documents] == ["first"] * 3 + ["second"]
    first = documents[1]
    assert first["topology"]["bottleneck_queue"] == {"kind": "pfifo", "limit": 583}
    assert first["flows"][0]["streams"] == 16
    assert first["flows"][0]["algorithm"] == {"cca": "reno"}
    assert (first["hosts"]["mtu"], first["memory"]) == ("1500 B", "1 GiB")
    assert "${" not in plan("--expanded")


def test_the_expanded_form_has_every_flow_of_an_entry_with_a_count(folder: Path) -> None:
    text = STUDY.replace("{name: f, algorithm: scalable,", "{name: f, count: 2, algorithm: scalable,")
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    study = load_study(folder / "study.yaml")
    data = expanded(study.experiments[1].points[0].experiment, study)
    assert [flow["name"] for flow in data["flows"]] == ["f1", "f2"]


def test_the_expanded_form_names_the_files_of_a_study() -> None:
    study = load_study(Path(__file__).parents[2] / "experiments/gallery/program/study.yaml")
    data = expanded(study.experiments[0].points[0].experiment, study)
    assert yaml.safe_load(yaml.safe_dump(data))["programs"][0]["files"] == ["send.py", "receive.py"]
