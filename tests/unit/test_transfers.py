# SPDX-License-Identifier: Apache-2.0
"""Several equal flows, and transfers that follow each other: from the manifest to the metric."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import make_results
from manifests import keys_of, plan_of, study_of

from longfat.dataset.load import Dataset
from longfat.metrics.quantities import Selection, measure
from longfat.spec.runspec import RunSpec

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
      - {name: bulk, count: "${flows}", from: client2, to: server1, algorithm: standard, window: 1 MiB,
         duration: 10 s, transfer: 5 MB}
    sweep: {product: {flows: [1, 4]}}
"""


def specs(tmp_path: Path, manifest: str = MANIFEST) -> list[RunSpec]:
    return [run.spec for run in sorted(plan_of(tmp_path, manifest).runs, key=lambda run: len(run.spec.flows))]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("transfers")
    study_of(folder, MANIFEST)
    return make_results(folder, folder / "results").dataset


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
    without = specs(tmp_path, MANIFEST.replace(", transfer: 5 MB", ""))[0]
    assert with_transfers.flows[0].transfer_bytes == 5_000_000
    assert "transfer" in with_transfers.to_json()
    assert "transfer" not in without.to_json()


def test_a_counted_flow_may_be_captured_by_its_own_name(tmp_path: Path) -> None:
    captured = MANIFEST.replace('"${flows}"', "2").replace("    sweep: {product: {flows: [1, 4]}}\n", "")
    (spec,) = specs(tmp_path, captured + "    probes: {capture: [bulk2]}\n")
    assert spec.probes.capture == ("bulk2",)
    unknown = captured + "    probes: {capture: [bulk]}\n"
    assert keys_of(tmp_path, unknown) == ["experiments[0].probes.capture[0]"]


def test_complete_transfers_are_counted_over_all_flows_or_of_one(dataset: Dataset) -> None:
    flows = next(rows for rows in dataset.flows.values() if len(rows) == 4)
    assert all(row["transfers"] == row["bytes_received"] // 5_000_000 > 0 for row in flows)
    (four,) = (run for run in dataset.runs if run.factors["flows"] == 4)
    assert four.status == "ok"
    chosen = Selection("transfers", "bulk").narrowed("flows", 4)
    assert measure(dataset, chosen, 1).value == sum(row["transfers"] for row in flows)
