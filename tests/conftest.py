# SPDX-License-Identifier: Apache-2.0
"""Small RunSpecs and plans that many tests start from, and what all tests together must not leave behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from fake_backend import FakeBackend
from hypothesis import settings
from machine import descendants, mark_descendants, network_state
from turns import ByGroup, Turns, in_order, workers
from xdist.remote import Producer

from longfat.plan.model import PlannedRun
from longfat.spec.runspec import DeliberateDrop, Egress, Flow, Interface, Link, Node, Probes, Queue, RunSpec

# The same examples each time, however busy the machine is.
settings.register_profile("longfat", deadline=None, derandomize=True, database=None)
settings.load_profile("longfat")

TURNS = pytest.StashKey[Turns]()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """The workers of ``./just test``."""
    return workers(config.args)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup:
    """How the workers share the tests."""
    return ByGroup(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first."""
    items[:] = in_order(items)


def pytest_configure(config: pytest.Config) -> None:
    """A worker shares the machine with others.

    SIGINT interrupts, here and in what tests start, also where the tests run in the background, as shells let what runs
    there ignore it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        config.stash[TURNS] = Turns(Path(__file__), Path(__file__).with_name("turns.py"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """A worker runs a test, with all that is set up before it and removed after it, in its turn."""
    if TURNS not in item.config.stash:
        return (yield)
    item.config.stash[TURNS].begin(item)
    try:
        return (yield)
    finally:
        item.config.stash[TURNS].end(nextitem)


def delay_spec(seed: int = 1, *, cca: str = "reno", window_bytes: int | None = 1 << 20) -> RunSpec:
    """One flow of 1 s through a router with 15 ms each way at 1 Gbit/s, MTU 9000, one drop at 0.5 s."""
    shaped = Egress(rate_bps=1_000_000_000, queue=Queue(limit_packets=100))
    forward = Egress(delay_us=15_000, drops=(DeliberateDrop(500_000),))
    return RunSpec(
        nodes=(
            Node("client1", "sender", {"net.ipv4.tcp_sack": "1"}),
            Node("delay", "router", {"net.ipv4.ip_forward": "1"}),
            Node("server", "receiver"),
        ),
        links=(
            Link(Interface("client1", shaped), Interface("delay", Egress(delay_us=15_000)), 9000),
            Link(Interface("delay", forward), Interface("server", shaped), 9000),
        ),
        flows=(Flow("stream1", "client1", "server", cca, 1_000_000, window_bytes),),
        probes=Probes(capture=("stream1",)),
        seed=seed,
        pins=FakeBackend().pins(),
    )


def cable_spec(seed: int = 1) -> RunSpec:
    """One flow of 1.5 s over a cable of 100 Mbit/s: what any kernel can do, in real time too."""
    shaped = Egress(rate_bps=100_000_000, queue=Queue(limit_packets=100))
    return RunSpec(
        nodes=(Node("client1", "sender", {"net.ipv4.tcp_sack": "1"}), Node("server", "receiver")),
        links=(Link(Interface("client1", shaped), Interface("server")),),
        flows=(Flow("stream1", "client1", "server", "reno", 1_500_000),),
        probes=Probes(capture=("stream1",)),
        seed=seed,
    )


def plan_of(count: int) -> tuple[PlannedRun, ...]:
    """Planned ``count`` runs that differ in their seed."""
    specs = [delay_spec(seed) for seed in range(1, count + 1)]
    return tuple(PlannedRun(spec.run_id, "one-flow", "one", {}, spec.seed, spec) for spec in specs)


@pytest.fixture(autouse=True)
def environment_as_it_was() -> Iterator[None]:
    """No test leaves the next one other variables: with another cache folder that would build a kernel of its own."""

    def variables() -> dict[str, str]:
        own = ("PYTEST_CURRENT_TEST", "_RJEM_MALLOC_CONF")  # pytest's, and one of Polars' when it is imported first
        return {name: value for name, value in os.environ.items() if name not in own}

    before = variables()
    yield
    assert variables() == before


@pytest.fixture(scope="session", autouse=True)
def machine_as_it_was() -> Iterator[None]:
    """After the last test the machine has the links, namespaces, qdiscs and processes that it had before the first."""
    mark_descendants()
    before, running = network_state(), descendants()
    yield
    assert network_state() == before
    left = {pid: line for pid, line in descendants().items() if pid not in running}
    assert left == {}, "processes that the tests left running"


@pytest.fixture(scope="session")
def evidence_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a study whose nine runs are in its evidence, made once; tests use copies of it."""
    from evidenced import with_evidence  # its imports would slow down every other test

    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        with_evidence(root, patch)
    return root


@pytest.fixture
def evidence_study(evidence_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The study in a copy of that repository."""
    from evidenced import copied

    return copied(evidence_made, tmp_path, monkeypatch)
