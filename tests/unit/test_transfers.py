# SPDX-License-Identifier: Apache-2.0
"""Flows of which several are alike, and transfers that follow each other: from the manifest to metric and table."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import write_results
from own_metrics import own_metrics

from longfat.backends.ns3 import Ns3Backend
from longfat.data.opened import OpenedStudy
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.dataset.load import Dataset, load_dataset
from longfat.metrics.quantities import Selection, measure
from longfat.plan import build_plan
from longfat.spec.runspec import RunSpec
from longfat.study.load import load_study
from longfat.system.errors import StudyError

own_metrics("kelly-2003")  # its formulas

MANIFEST = """\
format: 2
study: small
title: Transfers
algorithms:
  standard: {cca: reno}
hosts: {txqueuelen: 100}
experiments:
  - id: bulk
    topology: {kind: dumbbell, rate: 100 Mbit/s, rtt: 30 ms, senders: 3, receivers: 2}
    flows:
      - name: bulk
        count: "${flows}"
        from: client2
        to: server1
        algorithm: standard
        window: 1 MiB
        duration: 10 s
        transfer: 5 MB
    sweep: {product: {flows: [1, 4]}}
"""

FIGURES = """\
format: 2
study: small
figures:
  - table: transfers
    title: complete transfers
    columns: [flows, transfers, path]
    rows:
      - [1, {of: "transfers[bulk, flows=1]", digits: 0},
         {of: "loss_rate_of_path(rate=1 Gbit/s, rtt=200 ms, mtu=1500 B)", digits: 1}]
      - [4, {of: "transfers[bulk, flows=4]", digits: 0}, "-"]
    paper: no number stated
  - curves: response
    title: loss rate and window
    x: window
    between: [2, 100000]
    of:
      - {label: Standard TCP, of: standard_loss_rate()}
      - {label: Scalable TCP, of: "scalable_loss_rate(a=0.01, b=0.125, lwnd=16)", algorithm: scalable}
    labels: {x: window (segments), y: loss rate}
    paper: no number stated
"""


def written(folder: Path, manifest: str = MANIFEST, figures: str = FIGURES) -> Path:
    study = folder / "small"
    study.mkdir(exist_ok=True)
    (study / "study.yaml").write_text(manifest, encoding="utf-8")
    (study / "figures.yaml").write_text(figures, encoding="utf-8")
    return study


def specs(tmp_path: Path, manifest: str = MANIFEST) -> list[RunSpec]:
    plan = build_plan(load_study(written(tmp_path, manifest) / "study.yaml"), pins={})
    return [run.spec for run in sorted(plan.runs, key=lambda run: len(run.spec.flows))]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transfers")
    write_results(written(folder), folder)
    build_dataset(folder)
    return folder


@pytest.fixture(scope="module")
def dataset(results: Path) -> Dataset:
    return load_dataset(results)


def test_a_count_stands_for_numbered_flows_on_hosts_in_turn(tmp_path: Path) -> None:
    one, four = specs(tmp_path)
    assert [(flow.name, flow.sender, flow.receiver) for flow in one.flows] == [("bulk1", "client2", "server1")]
    assert [(flow.name, flow.sender, flow.receiver) for flow in four.flows] == [
        ("bulk1", "client2", "server1"),
        ("bulk2", "client3", "server2"),
        ("bulk3", "client1", "server1"),
        ("bulk4", "client2", "server2"),
    ]


def test_a_run_without_transfers_has_the_identity_it_always_had(tmp_path: Path) -> None:
    with_transfers = specs(tmp_path)[0]
    without = specs(tmp_path, MANIFEST.replace("        transfer: 5 MB\n", ""))[0]
    assert with_transfers.flows[0].transfer_bytes == 5_000_000
    assert "transfer" in with_transfers.to_json()
    assert "transfer" not in without.to_json()


def test_a_counted_flow_may_be_captured_by_its_own_name(tmp_path: Path) -> None:
    captured = MANIFEST.replace('"${flows}"', "2").replace("    sweep: {product: {flows: [1, 4]}}\n", "")
    (spec,) = specs(tmp_path, captured + "    probes: {capture: [bulk2]}\n")
    assert spec.probes.capture == ("bulk2",)
    with pytest.raises(StudyError, match=r"1 problem") as caught:
        specs(tmp_path, captured + "    probes: {capture: [bulk]}\n")
    assert "'bulk'" in caught.value.problems[0].message


def test_a_counted_flow_must_not_have_the_name_of_another(tmp_path: Path) -> None:
    other = "      - {name: bulk1, from: client1, to: server2, algorithm: standard, duration: 1 s}\n    sweep"
    with pytest.raises(StudyError) as caught:
        specs(tmp_path, MANIFEST.replace("    sweep", other))
    assert "flow 'bulk1' is there twice" in caught.value.problems[0].message


def test_complete_transfers_are_counted_over_all_flows_or_of_one(dataset: Dataset) -> None:
    flows = next(rows for rows in dataset.flows.values() if len(rows) == 4)
    assert all(row["transfers"] == row["bytes_received"] // 5_000_000 > 0 for row in flows)
    (four,) = (run for run in dataset.runs if run.factors["flows"] == 4)
    assert four.status == "ok"
    chosen = Selection("transfers", "bulk").narrowed("flows", 4)
    assert measure(dataset, chosen, 1).value == sum(row["transfers"] for row in flows)


def test_a_table_may_have_measured_and_computed_cells(results: Path, dataset: Dataset) -> None:
    spec = StudyFolder(results / "small").figures.figure("transfers")
    rows = OpenedStudy(results, StudyFolder(results / "small")).show(spec.artifact).data.rows
    assert rows[0][0] == 1
    assert int(rows[0][1]) > 10
    assert rows[0][2] == "5.4e-09"


def test_a_measured_cell_must_be_of_the_study(tmp_path: Path) -> None:
    strange = FIGURES.replace("transfers[bulk, flows=4]", "transfers[bulky, flows=4]")
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(written(tmp_path, figures=strange)).figures
    assert "'bulky'" in caught.value.problems[0].message


def test_curves_follow_their_formulas_and_meet_where_the_rule_changes(results: Path, dataset: Dataset) -> None:
    spec = StudyFolder(results / "small").figures.figure("response")
    rows = OpenedStudy(results, StudyFolder(results / "small")).show(spec.artifact).data.rows
    standard, scalable = ({row[1]: row[2] for row in rows if row[0].startswith(name)} for name in ("Sta", "Sca"))
    assert all(standard[window] == scalable[window] for window in standard if window <= 16)
    assert all(standard[window] < scalable[window] for window in standard if window > 20)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("between: [2, 100000]", "between: [0, 10]", "between 0 and 10"),
        ("standard_loss_rate()", "standard_loss()", "'standard_loss'"),
        ("    x: window\n", "    x: rate\n", "'rate'"),
    ],
)
def test_curves_that_cannot_be_computed_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FIGURES
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(written(tmp_path, figures=FIGURES.replace(old, new))).figures
    assert any(message in problem.message for problem in caught.value.problems)


def test_the_simulator_refuses_transfers(tmp_path: Path) -> None:
    assert any("transfers" in reason for reason in Ns3Backend(None, "none", ()).refuses(specs(tmp_path)[0]))
