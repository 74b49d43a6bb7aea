# SPDX-License-Identifier: Apache-2.0
"""Hosts of a lab that are lost, full, changed, in use or not prepared: each error names its host."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import cable_spec
from lab_in_namespaces import Lab, lab_in_namespaces
from machine import descendants
from scarce_backends import on_lab

from longfat.backends.hosts import HostsBackend
from longfat.backends.protocol import Backend
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError

pytestmark = [pytest.mark.alone, pytest.mark.root, pytest.mark.virtual]

PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    if os.geteuid():
        pytest.skip("hosts in namespaces need root")
    with lab_in_namespaces() as started:
        yield started


@pytest.fixture(scope="module")
def backend(lab: Lab) -> Iterator[Backend]:
    with on_lab(lab) as opened:
        yield opened


@pytest.fixture
def spec(backend: Backend) -> RunSpec:
    return dataclasses.replace(cable_spec(), pins=backend.pins())


def agent_folders(lab: Lab, host: str) -> str:
    return lab.say(host, "ls /var/lib/longfat")


def cards(lab: Lab, host: str) -> list[str]:
    return sorted(lab.say(host, "ip -brief link | cut -d@ -f1 | cut -d' ' -f1").split())


def test_a_host_that_is_lost_fails_its_run_and_the_next_run_goes_on(
    lab: Lab, backend: Backend, spec: RunSpec, tmp_path: Path
) -> None:
    before = cards(lab, "receiver")

    def lose() -> None:
        end = time.monotonic() + PATIENCE_S
        while not any("iperf -c" in line for line in descendants().values()):
            assert time.monotonic() < end, "iperf was never started"
            time.sleep(0.05)
        os.kill(lab.agent("receiver"), signal.SIGKILL)

    thread = threading.Thread(target=lose)
    thread.start()
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with pytest.raises(RigError) as caught:
        backend.run(spec, first)
    thread.join()
    assert caught.value.where == "receiver"
    assert not (first / "outcome.json").exists()

    backend.run(spec, second)

    assert (second / "outcome.json").exists()
    assert cards(lab, "receiver") == before
    assert [agent_folders(lab, host) for host in ("sender", "receiver")] == ["", ""]


@pytest.mark.parametrize("used", ["900k", "1020k"])  # too little room for the results, and for the agent's code
def test_an_error_names_the_host_with_the_full_disk(
    lab: Lab, backend: Backend, spec: RunSpec, tmp_path: Path, used: str
) -> None:
    lab.say("sender", f"mount -o remount,size=1m /var/lib; head -c {used} /dev/zero >/var/lib/longfat.full || true")
    try:
        with pytest.raises(RigError, match="No space left on device") as caught:
            backend.run(spec, tmp_path)
        assert caught.value.where == "sender"
    finally:
        lab.say("sender", "rm /var/lib/longfat.full; mount -o remount,size=50% /var/lib")
    end = time.monotonic() + PATIENCE_S
    while agent_folders(lab, "sender") and time.monotonic() < end:  # removed by the agent, which ends on its own
        time.sleep(0.1)
    assert agent_folders(lab, "sender") == ""


def test_a_host_with_another_kernel_than_at_the_beginning_is_named(
    backend: Backend, spec: RunSpec, tmp_path: Path
) -> None:
    assert isinstance(backend, HostsBackend)
    facts = {name: dict(told) for name, told in backend.facts.items()}
    facts["sender"]["build"] = "another"
    with pytest.raises(RigError, match="runs a different kernel than at the beginning of the study") as caught:
        dataclasses.replace(backend, facts=facts).run(spec, tmp_path)
    assert caught.value.where == "sender"


def test_two_runs_on_one_host_exclude_each_other(lab: Lab, backend: Backend, spec: RunSpec, tmp_path: Path) -> None:
    lab.say("sender", "mkdir -p /run/longfat")
    holder = lab.say("sender", "sh -c 'exec 9>/run/longfat/lock; flock 9; exec sleep 60' >/dev/null 2>&1 & echo $!")
    try:
        with pytest.raises(RigError, match="another run uses this host") as caught:
            backend.run(spec, tmp_path)
    finally:
        lab.say("sender", f"kill {holder}")
    assert caught.value.where == "sender"


def test_an_unprepared_host_is_a_reason_not_to_run(lab: Lab) -> None:
    lab.say("router", "mv /usr/local/sbin/longfat-nics /usr/local/sbin/hidden")
    try:
        with on_lab(lab) as opened:
            (reason,) = opened.capabilities().reasons
    finally:
        lab.say("router", "mv /usr/local/sbin/hidden /usr/local/sbin/longfat-nics")
    assert reason.startswith("router: ")
