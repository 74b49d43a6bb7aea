# SPDX-License-Identifier: Apache-2.0
"""Kernel regression check: its runs cover what studies use, and its verdicts compare kernels with the reference."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from fake_backend import FakeBackend

from longfat.builds.kernel_recipe import Recipe
from longfat.cli import kernel_check as verb
from longfat.cli.console import Output
from longfat.evidence.kernel_check import REFERENCE, read_reference
from longfat.spec.runspec import RunSpec
from longfat.study.catalog.ccas import CCAS
from longfat.study.catalog.kernels import DEFAULT_KERNEL
from longfat.study.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS
from longfat.study.queues import KINDS
from longfat.system.errors import RigError
from longfat.system.identity import KernelSource

ROOT = Path(__file__).parents[2]
PINNED, NEWER = KernelSource("6.12.117", True), KernelSource("6.12.999", False)
STUDY = """\
format: 2
study: _canary
title: Three checks
algorithms: {reno: {cca: reno}, vegas: {cca: vegas}}
experiments:
  - id: cca
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 20 ms}
    flows: [{name: f1, from: client1, to: server, algorithm: "${algorithm}", duration: 1 s}]
    sweep: {product: {algorithm: [reno, vegas]}}
  - id: era
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 20 ms}
    flows: [{name: f1, from: client1, to: server, algorithm: reno, duration: 1 s}]
"""


@pytest.fixture(scope="module")
def specs() -> dict[str, RunSpec]:
    """Specs of the project's checks by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGFAT_ROOT", str(ROOT))
        runs = verb.checks(FakeBackend())
    return {run.scenario: run.spec for run in runs}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with three checks."""
    folder = tmp_path / "experiments" / "_canary"
    folder.mkdir(parents=True)
    (tmp_path / "kernels").mkdir()
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    return tmp_path


def check(backend: FakeBackend) -> tuple[bool, str]:
    """Return the verdict and what was printed."""
    output = io.StringIO()
    equal = verb.check_kernels(backend, 1, Output(file=output, width=200))
    return equal, output.getvalue()


def renew(backend: FakeBackend) -> None:
    verb.renew_reference(backend, 1, Output(file=io.StringIO()))


def change(root: Path, key: str, name: str, value: str) -> None:
    """Write a value into the reference."""
    path = root / REFERENCE
    data = json.loads(path.read_text())
    data[key][name] = value
    path.write_text(json.dumps(data))


def test_every_algorithm_of_the_catalogue_has_a_check(specs: dict[str, RunSpec]) -> None:
    assert {flow.cca for spec in specs.values() for flow in spec.flows} == set(CCAS)


def test_every_switch_of_the_project_has_one_on_each_side(specs: dict[str, RunSpec]) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in Recipe(DEFAULT_KERNEL).patches())
    switches = {f"net.ipv4.{name}" for name in re.findall(r"^\+\t\t\.procname\t= \"(tcp_\w+)\"", text, re.M)}
    assert len(switches) == 10
    hosts = [node for spec in specs.values() for node in spec.nodes if node.role != "router"]
    values = {name: {node.sysctls[name] for node in hosts if name in node.sysctls} for name in switches}
    by_the_testbed = {setting.sysctl for setting in (*SENDER_SETTINGS, *RECEIVER_SETTINGS)}
    assert {name for name, found in values.items() if len(found) < 2} == by_the_testbed
    limit = "net.ipv4.tcp_payload_limit"
    assert all(values[name] == ({"65536"} if name == limit else {"1"}) for name in by_the_testbed)


def test_queues_traffic_and_probes_of_every_kind_are_among_them(specs: dict[str, RunSpec]) -> None:
    every = list(specs.values())
    ends = [end.egress for spec in every for link in spec.links for end in (link.a, link.b)]
    # A plain queue by bytes draws nothing, a step is CoDel's, and the default kernel has no DualPI2.
    assert {end.queue.kind for end in ends} == {*KINDS} - {"bfifo", "step", "dualpi2"}
    assert {end.queue.marks for end in ends if end.queue.kind == "red"} == {False, True}
    assert any(end.impairment for end in ends) and any(end.drops for end in ends)
    assert {link.mtu_bytes for spec in every for link in spec.links} == {1500, 9000}
    assert any(spec.web for spec in every) and any(spec.udp for spec in every)
    assert any(spec.probes.capture and spec.probes.capture_loss_percent for spec in every)
    assert any(spec.probes.ping_interval_us for spec in every)
    flows = [flow for spec in every for flow in spec.flows]
    assert any(flow.streams > 1 for flow in flows) and any(flow.transfer_bytes for flow in flows)


def test_a_kernel_that_measures_the_same_equals_the_reference_and_a_differing_check_is_named(root: Path) -> None:
    renew(FakeBackend(kernel=PINNED))
    backend = FakeBackend(kernel=NEWER)
    equal, printed = check(backend)
    assert equal and "3 of 3" in printed
    change(root, "digests", "era", "0" * 64)
    equal, printed = check(backend)
    assert not equal and "2 of 3" in printed and ": era" in printed
    assert "another" not in printed
    change(root, "pins", "code", "another")
    assert "another code" in check(backend)[1]


def test_a_check_that_fails_differs_and_makes_no_reference(root: Path) -> None:
    renew(FakeBackend(kernel=PINNED))
    (era,) = (run.run_id for run in verb.checks(FakeBackend()) if run.scenario == "era")
    equal, printed = check(FakeBackend(kernel=NEWER, faults={era: "report_failure"}))
    assert not equal and ": era" in printed
    with pytest.raises(RigError, match="era"):
        renew(FakeBackend(kernel=PINNED, faults={era: "report_failure"}))


@pytest.mark.parametrize("text", [None, '{"format": 2}'])
def test_a_missing_or_damaged_reference_is_a_clear_error(root: Path, text: str | None) -> None:
    if text is not None:
        (root / REFERENCE).write_text(text)
    with pytest.raises(RigError, match="the kernel check's reference cannot be read"):
        read_reference(root / REFERENCE)
