# SPDX-License-Identifier: Apache-2.0
"""Settings that the guest's kernel lacks or refuses end the run before any traffic, with a reason."""

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


def test_an_algorithm_that_the_kernel_lacks_ends_the_run_before_any_traffic(tmp_path: Path) -> None:
    spec = one_flow()
    flow = dataclasses.replace(spec.flows[0], cca="nosuch")
    found = outcome(tmp_path / "run", dataclasses.replace(spec, flows=(flow,)))
    assert (found["status"], found["end_us"]) == ("failed", 0)
    assert "'nosuch'" in found["reason"] and "scalable" in found["reason"]


@pytest.mark.parametrize(("sysctl", "value"), [("net.ipv4.tcp_small_queues", "2"), ("net.ipv4.tcp_nosuch.a_ppm", "1")])
def test_a_sysctl_that_the_kernel_refuses_is_named_with_its_host(tmp_path: Path, sysctl: str, value: str) -> None:
    found = outcome(tmp_path / "run", one_flow(sender={sysctl: value}))
    assert found["status"] == "failed"
    assert all(word in found["reason"] for word in ("client1: ", sysctl, f"'{value}'"))
