# SPDX-License-Identifier: Apache-2.0
"""Kernel regression check: its runs cover what studies use, and are compared with the newest baseline."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from fake_backend import FakeBackend

from longfat.builds.kernel_recipe import Recipe
from longfat.cli import kernel_check as verb
from longfat.cli.console import Output
from longfat.evidence.baselines import FOLDER, Baseline, begin, read_baselines, write_baseline
from longfat.spec.runspec import RunSpec
from longfat.study.catalog.ccas import CCAS
from longfat.study.catalog.kernels import DEFAULT_KERNEL
from longfat.study.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS
from longfat.study.queues import KINDS
from longfat.system.errors import RigError, StudyError
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


def differ(path: Path, name: str) -> Baseline:
    """Replace a baseline by one with another digest of a kernel check; return the former one."""
    (former,) = read_baselines(path.parent)
    members = [member.combination for member in former.members.values()]
    other = begin(members, {**former.canaries, name: "0" * 64}, former.name.rpartition("-")[0])
    path.unlink()
    write_baseline(other, path.parent)
    return former


def renew(root: Path) -> Path:
    """Begin a baseline with the present measurements."""
    backend = FakeBackend(kernel=PINNED)
    digests = verb.measure(backend, 1, Output(file=io.StringIO()))
    return write_baseline(begin(verb.combinations(backend), digests, "2026-01-01"), root / FOLDER)


def test_every_algorithm_of_the_catalogue_has_a_check(specs: dict[str, RunSpec]) -> None:
    assert {flow.cca for spec in specs.values() for flow in spec.flows} == set(CCAS)


def test_every_switch_of_the_project_has_one_on_each_side(specs: dict[str, RunSpec]) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in Recipe(DEFAULT_KERNEL).patches())
    switches = {f"net.ipv4.{name}" for name in re.findall(r"^\+\t\t\.procname\t= \"(tcp_\w+)\"", text, re.M)}
    assert len(switches) == 12
    hosts = [node for spec in specs.values() for node in spec.nodes if node.role != "router"]
    values = {name: {node.sysctls[name] for node in hosts if name in node.sysctls} for name in switches}
    by_the_testbed = {setting.sysctl for setting in (*SENDER_SETTINGS, *RECEIVER_SETTINGS)}
    assert {name for name, found in values.items() if len(found) < 2} == by_the_testbed
    limit = "net.ipv4.tcp_payload_limit"
    assert all(values[name] == ({"65536"} if name == limit else {"1"}) for name in by_the_testbed)


def test_queues_traffic_and_probes_of_every_kind_are_among_them(specs: dict[str, RunSpec]) -> None:
    every = list(specs.values())
    queues = [end.egress.queue for spec in every for link in spec.links for end in (link.a, link.b)]
    # A plain queue by bytes draws nothing, a step is CoDel's, and the default kernel has no DualPI2.
    assert {queue.kind for queue in queues} == {*KINDS} - {"bfifo", "step", "dualpi2"}
    assert {queue.marks for queue in queues if queue.kind == "red"} == {False, True}
    assert any(end.egress.impairment for spec in every for link in spec.links for end in (link.a, link.b))
    assert {link.mtu_bytes for spec in every for link in spec.links} == {1500, 9000}
    assert any(spec.web for spec in every)
    assert any(spec.udp for spec in every)
    assert any(end.egress.drops for spec in every for link in spec.links for end in (link.a, link.b))
    assert any(spec.probes.capture and spec.probes.capture_loss_percent for spec in every)
    assert any(spec.probes.ping_interval_us for spec in every)
    assert any(flow.streams > 1 for spec in every for flow in spec.flows)
    assert any(flow.transfer_bytes for spec in every for flow in spec.flows)


def test_a_kernel_that_measures_the_same_equals_the_baseline_and_a_differing_run_is_named(root: Path) -> None:
    path = renew(root)
    equal, printed = check(FakeBackend(kernel=NEWER))
    assert equal and "3 of 3" in printed
    differ(path, "era")
    equal, printed = check(FakeBackend(kernel=NEWER))
    assert not equal and "2 of 3" in printed and ": era" in printed


def test_a_run_that_fails_differs(root: Path) -> None:
    renew(root)
    (era,) = (run.run_id for run in verb.checks(FakeBackend()) if run.scenario == "era")
    equal, printed = check(FakeBackend(kernel=NEWER, faults={era: "report_failure"}))
    assert not equal and ": era" in printed


def test_without_a_baseline_nothing_is_compared(root: Path) -> None:
    with pytest.raises(RigError, match="no baseline"):
        check(FakeBackend())
    assert not (root / "results").exists()


OWN = """\
format: 2
study: own
title: A patched kernel
kernels: {mine: {base: BASE, patches: [one.patch]}}
algorithms: {reno: {cca: reno}}
experiments:
  - id: alone
    kernel: mine
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 20 ms}
    flows: [{name: f1, from: client1, to: server, algorithm: reno, duration: 1 s}]
"""


def with_kernel(root: Path, base: str) -> None:
    folder = root / "experiments/own"
    folder.mkdir()
    (folder / "study.yaml").write_text(OWN.replace("BASE", base), encoding="utf-8")
    (folder / "one.patch").write_text("one", encoding="utf-8")


def test_a_kernel_of_a_study_is_checked_instead_of_its_base(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[dict[str, Any]] = []

    def open_fake(name: str, settings: dict[str, Any], **how: object) -> FakeBackend:
        opened.append(settings)
        return FakeBackend(kernel=NEWER)

    monkeypatch.setattr(verb, "open_backend", open_fake)
    renew(root)
    with_kernel(root, DEFAULT_KERNEL)
    assert verb.kernel_check(Output(file=io.StringIO()), "own", 1)
    [settings] = opened
    assert [piece.name for piece in settings["own"][DEFAULT_KERNEL].patches] == ["one.patch"]
    assert DEFAULT_KERNEL in settings["kernels"]


def test_a_kernel_for_which_the_check_has_no_runs_is_refused(root: Path) -> None:
    with_kernel(root, "linux-7.3")
    with pytest.raises(StudyError, match=re.escape("linux-7.3")):
        verb.kernel_check(Output(file=io.StringIO()), "own", 1)
    with pytest.raises(StudyError, match="no experiment"):
        verb.kernel_check(Output(file=io.StringIO()), "_canary", 1)
