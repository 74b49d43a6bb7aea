# SPDX-License-Identifier: Apache-2.0
"""Canaries: that they ask a kernel for all there is, and what is said of a kernel that is not the references' own."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from fake_backend import FakeBackend

from longfat import canary
from longfat.builds.kernel_recipe import Recipe
from longfat.canary import Reference, Verdict
from longfat.catalog.ccas import CCAS
from longfat.catalog.kernels import DEFAULT_KERNEL, STACK_KERNELS
from longfat.catalog.qdiscs import QDISCS
from longfat.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, STACKS
from longfat.cli import kernel_check as verb
from longfat.cli.console import Output
from longfat.errors import RigError
from longfat.identity import KernelSource
from longfat.plan.estimate import run_seconds
from longfat.runspec import RunSpec

ROOT = Path(__file__).parents[2]
PINNED, NEWER = KernelSource("6.12.117", True), KernelSource("6.12.999", False)
STUDY = """\
format: 2
study: _canary
title: Three canaries
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
    """The project's canaries by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGFAT_ROOT", str(ROOT))
        runs = verb.checks(FakeBackend())
    return {run.scenario: run.spec for run in runs}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with three canaries, and a cache folder."""
    folder = tmp_path / "experiments" / "_canary"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    monkeypatch.setenv("LONGFAT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def told(backend: FakeBackend) -> tuple[bool, list[str]]:
    """Whether all canaries behave as the reference, and what was printed of them."""
    output = io.StringIO()
    same = verb.check_kernels(backend, 1, Output(file=output, width=200))
    return same, [line for line in output.getvalue().splitlines() if re.match("kernel check:|the reference", line)]


def renew(backend: FakeBackend) -> None:
    verb.renew_reference(backend, 1, Output(file=io.StringIO()))


def doubt(source: KernelSource, pins: Mapping[str, str], root: Path) -> str | None:
    """What is said of the one kernel of a plan, if anything."""
    said = list(canary.doubts({pins["kernel"]: source}, pins, root / canary.REFERENCE))
    assert len(said) <= 1
    return said[0] if said else None


def change(root: Path, key: str, name: str, value: str) -> None:
    """Write a value into the reference."""
    path = root / canary.REFERENCE
    data = json.loads(path.read_text())
    data[key][name] = value
    path.write_text(json.dumps(data))


def test_the_canaries_are_some_dozens_each_of_some_seconds(specs: dict[str, RunSpec]) -> None:
    assert 25 <= len(specs) <= 50
    assert max(run_seconds(spec) for spec in specs.values()) < 3
    assert len({spec.run_id for spec in specs.values()}) == len(specs)


def test_every_algorithm_of_the_catalogue_has_a_canary(specs: dict[str, RunSpec]) -> None:
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


def test_every_stack_has_a_kernel_whose_canaries_are_run() -> None:
    assert {stack.kernel for stack in STACKS.values()} == {*STACK_KERNELS}


def test_the_stack_of_the_era_runs_as_a_whole(specs: dict[str, RunSpec]) -> None:
    era = [spec for name, spec in specs.items() if name.startswith("era.")]
    assert len(era) == 4
    stack = STACKS["linux-2.4"]
    for spec in era:
        assert stack.sysctls.items() <= spec.nodes[0].sysctls.items() | {("net.ipv4.tcp_sack", "1")}
        assert spec.nodes[0].initial_cwnd_segments == stack.initial_cwnd_segments


def test_queues_traffic_and_probes_of_every_kind_are_among_them(specs: dict[str, RunSpec]) -> None:
    every = list(specs.values())
    queues = [end.egress.queue for spec in every for link in spec.links for end in (link.a, link.b)]
    # A plain queue by bytes draws nothing, a step is CoDel's, and the default kernel has no DualPI2.
    assert {queue.kind for queue in queues} == {*QDISCS} - {"bfifo", "step", "dualpi2"}
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


def test_a_kernel_that_does_the_same_behaves_as_the_reference_and_another_canary_is_named(root: Path) -> None:
    renew(FakeBackend(kernel=PINNED))
    backend = FakeBackend(kernel=NEWER)
    assert told(backend) == (True, ["kernel check: 3 of 3 behave like the reference"])
    change(root, "digests", "era", "0" * 64)
    assert told(backend) == (False, ["kernel check: 2 of 3 behave like the reference; these do not: era"])


def test_a_reference_that_another_laboratory_made_is_said_to_be(root: Path) -> None:
    renew(FakeBackend(kernel=PINNED))
    change(root, "digests", "era", "0" * 64)
    change(root, "pins", "code", "another")
    _, lines = told(FakeBackend(kernel=NEWER))
    assert lines[1:] == ["the reference has another code, which may also be the cause"]


def test_a_canary_that_fails_is_named_and_leaves_no_verdict(root: Path) -> None:
    renew(FakeBackend(kernel=PINNED))
    (era,) = (run.run_id for run in verb.checks(FakeBackend()) if run.scenario == "era")
    failing = FakeBackend(kernel=NEWER, faults={era: "report_failure"})
    assert told(failing) == (False, ["kernel check: 2 of 3 behave like the reference; these do not: era"])
    assert "`./just kernel-check`" in str(doubt(NEWER, failing.pins(), root))
    with pytest.raises(RigError, match="no reference was made, because checks failed: era"):
        renew(FakeBackend(kernel=PINNED, faults={era: "report_failure"}))


def test_every_start_runs_all_canaries_anew(root: Path) -> None:
    renew(FakeBackend(kernel=PINNED))
    before = {path.name: path.stat().st_mtime_ns for path in (root / "results/kernel-check/raw").iterdir()}
    told(FakeBackend(kernel=PINNED))
    after = {path.name: path.stat().st_mtime_ns for path in (root / "results/kernel-check/raw").iterdir()}
    assert before.keys() == after.keys()
    assert all(before[name] != after[name] for name in before)


def test_only_a_kernel_of_the_pinned_release_makes_a_reference(root: Path) -> None:
    with pytest.raises(RigError, match=r"made with kernels of the pinned release, and linux-6\.12 is 6\.12\.999"):
        renew(FakeBackend(kernel=NEWER))
    with pytest.raises(RigError, match="there is no reference to compare with"):
        told(FakeBackend(kernel=NEWER))
    assert not (root / "results").exists()


def test_a_damaged_reference_is_a_clear_error(root: Path) -> None:
    path = root / canary.REFERENCE
    path.parent.mkdir()
    path.write_text('{"format": 2}')
    with pytest.raises(RigError, match="the canaries' reference cannot be read"):
        canary.read_reference(path)


def test_a_canary_that_only_one_side_has_differs() -> None:
    reference = Reference("6.12.117", {}, {"a": "1", "b": "2"})
    assert reference.compare({"b": "2", "c": "3"}) == Verdict(3, ("a", "c"))


def test_a_kernel_of_another_release_is_doubted_until_its_canaries_were_run(root: Path) -> None:
    path = root / canary.REFERENCE
    reference = Reference("6.12.117", {"code": "l"}, {"a": "1"})
    canary.write_reference(path, reference)
    pins = {"kernel": "k", "code": "l", "image": "i"}
    assert doubt(PINNED, pins, root) is None
    unknown = doubt(NEWER, pins, root)
    assert unknown == (
        "the kernel is not of the pinned release but 6.12.999: `./just kernel-check` checks whether it behaves the same"
    )
    canary.keep(reference.compare({"a": "2"}), reference, pins)
    assert doubt(NEWER, pins, root) == (
        "the kernel is not of the pinned release but 6.12.999: of its canaries 0 of 1 behave like the reference; these "
        "do not: a"
    )
    assert doubt(NEWER, pins | {"kernel": "another"}, root) == unknown
    canary.write_reference(path, Reference("6.12.118", {"code": "l"}, {"a": "2"}))
    assert doubt(NEWER, pins, root) == unknown


def test_a_named_kernel_of_another_release_is_not_sent_to_canaries_that_are_of_the_default_one(root: Path) -> None:
    (said,) = canary.doubts({"named": NEWER}, {"kernel": "default"}, root / canary.REFERENCE)
    assert "6.12.999" in said
    assert "canaries are only for the default kernel" in said
    assert canary.COMMAND not in said
