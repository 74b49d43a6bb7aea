# SPDX-License-Identifier: Apache-2.0
"""After a run in real time the machine is as it was, however the run ends."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import cable_spec
from machine import descendants, network_state
from scarce_backends import realtime

from longfat.backends.protocol import Backend
from longfat.spec.runspec import RunSpec

pytestmark = [pytest.mark.alone, pytest.mark.root, pytest.mark.virtual]

PATIENCE_S = 20.0


@pytest.fixture(scope="module", params=["mininet", pytest.param("containernet", marks=pytest.mark.docker), "hosts"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    with realtime(request.param) as (opened, _):
        yield opened


@pytest.fixture
def spec(backend: Backend) -> RunSpec:
    return dataclasses.replace(cable_spec(), pins=backend.pins())


def programs_of_runs() -> list[str]:
    """Command lines of what only a run starts, among all that these tests have started."""
    names = ("iperf", "mnexec", "tcpdump", "container_init.py", "bash --norc", "longfat.backends.testbed.agent")
    return [line for line in descendants().values() if any(name in line for name in names)]


def await_(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


def test_a_run_leaves_the_machine_as_it_was(backend: Backend, spec: RunSpec, tmp_path: Path) -> None:
    before = network_state()
    backend.run(spec, tmp_path)
    assert network_state() == before
    assert await_(lambda: not programs_of_runs()), programs_of_runs()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_is_ended_takes_its_run_with_it(
    backend: Backend, spec: RunSpec, tmp_path: Path, end: signal.Signals
) -> None:
    before = network_state()
    worker = multiprocessing.get_context("fork").Process(target=backend.run, args=(spec, tmp_path))
    worker.start()
    assert await_(lambda: any("iperf" in line for line in programs_of_runs())), "the run never started"
    assert worker.pid is not None
    os.kill(worker.pid, end)
    worker.join(PATIENCE_S)
    assert await_(lambda: not programs_of_runs()), programs_of_runs()
    assert await_(lambda: network_state() == before)
    assert not (tmp_path / "outcome.json").exists()
