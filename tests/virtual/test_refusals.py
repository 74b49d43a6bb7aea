# SPDX-License-Identifier: Apache-2.0
"""What the guest's kernel lacks or refuses ends the run before any traffic, with a reason that says what there is."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from guests import one_flow, run

from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual


def outcome(folder: Path, spec: RunSpec) -> Any:
    return json.loads((run(spec, folder) / "outcome.json").read_text())


def test_an_algorithm_that_the_kernel_lacks_is_named_together_with_those_it_has(tmp_path: Path) -> None:
    spec = one_flow()
    flow = dataclasses.replace(spec.flows[0], cca="nosuch")
    found = outcome(tmp_path / "run", dataclasses.replace(spec, flows=(flow,)))
    there = json.loads((tmp_path / "run" / "environment.json").read_text())["ccas"]
    assert {"reno", "scalable", "highspeed"} <= set(there)
    assert (found["status"], found["end_us"]) == ("failed", 0)
    assert found["reason"] == f"GuestError: no congestion control 'nosuch', there are {', '.join(there)}"


def test_a_value_that_the_kernel_refuses_is_named_with_host_and_sysctl(tmp_path: Path) -> None:
    found = outcome(tmp_path / "run", one_flow(sender={"net.ipv4.tcp_small_queues": "2"}))
    assert found["status"] == "failed"
    assert found["reason"] == (
        "GuestError: client1: the kernel refuses sysctl net.ipv4.tcp_small_queues = '2': Invalid argument"
    )


def test_a_sysctl_that_the_kernel_lacks_is_named_with_its_host(tmp_path: Path) -> None:
    found = outcome(tmp_path / "run", one_flow(receiver={"net.ipv4.tcp_nosuch.a_ppm": "1"}))
    assert found["status"] == "failed"
    assert found["reason"] == (
        "GuestError: server: the kernel has no sysctl net.ipv4.tcp_nosuch.a_ppm, which should be '1'"
    )
