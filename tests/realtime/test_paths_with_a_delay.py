# SPDX-License-Identifier: Apache-2.0
"""A path with a delay of its own: it counts as part of the declared one, and is measured before the traffic."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import delay_spec
from lab_in_namespaces import Lab, lab_in_namespaces
from scarce_backends import on_lab

from longfat.backends.protocol import Backend
from longfat.spec.gates import Evidence
from longfat.spec.gates.behaviour import base_rtt_holds
from longfat.spec.gates.settings import rate_and_delay_hold
from longfat.spec.runspec import Egress, RunSpec
from longfat.system.errors import RigError

pytestmark = [pytest.mark.alone, pytest.mark.root, pytest.mark.virtual]

OWN_US = 100_000  # on a busy machine a path made of a program is some milliseconds late
RATE_BPS = 4_000_000


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    if os.geteuid():
        pytest.skip("hosts in namespaces need root")
    with lab_in_namespaces({"right": OWN_US}) as started:
        yield started


@pytest.fixture(scope="module")
def backend(lab: Lab) -> Iterator[Backend]:
    with on_lab(lab) as opened:
        yield opened


def delayed(backend: Backend, rtt_us: int) -> RunSpec:
    """A flow of 2 s through a router; the round trip that the run declares is divided evenly."""
    spec = delay_spec()
    near, far = spec.links
    rate = dataclasses.replace(near.a, egress=dataclasses.replace(near.a.egress, rate_bps=RATE_BPS))
    back = dataclasses.replace(far.b, egress=Egress())
    ends = [dataclasses.replace(end, egress=Egress(delay_us=rtt_us // 2)) for end in (near.b, far.a)]
    links = (dataclasses.replace(near, a=rate, b=ends[0]), dataclasses.replace(far, a=ends[1], b=back))
    links = tuple(dataclasses.replace(link, mtu_bytes=1500) for link in links)
    flows = (dataclasses.replace(spec.flows[0], duration_us=2_000_000),)
    return dataclasses.replace(spec, links=links, flows=flows, pins=backend.pins())


def test_a_run_over_a_path_with_a_declared_delay_is_valid(backend: Backend, tmp_path: Path) -> None:
    spec = delayed(backend, OWN_US)
    assert backend.refuses(spec) == ()  # no delay is left to add: no netem is needed

    backend.run(spec, tmp_path)

    achieved = json.loads((tmp_path / "achieved.json").read_text())
    evidence = Evidence(spec, achieved, [])
    assert [*rate_and_delay_hold(evidence), *base_rtt_holds(evidence)] == []
    own = {one["interface"]: one["own_delay_us"] for one in achieved["interfaces"] if "own_delay_us" in one}
    assert own == {"delay-eth0": OWN_US // 2, "delay-eth1": OWN_US // 2}
    told = json.loads((tmp_path / "hosts.json").read_text())
    assert OWN_US <= told["router"]["round_trips_us"]["right"] < told["router"]["round_trips_us"]["left"] + 2 * OWN_US
    assert told["sender"]["round_trips_us"].keys() == {"left"}


def test_a_path_that_is_shorter_than_declared_ends_the_run_before_the_traffic(
    backend: Backend, lab: Lab, tmp_path: Path
) -> None:
    inventory = dataclasses.replace(backend.inventory, own_us={"right": 2 * OWN_US})  # type: ignore[attr-defined]
    with pytest.raises(RigError, match=r"the round trip over right is 10\d{4} us, declared 200000 us") as caught:
        dataclasses.replace(backend, inventory=inventory).run(delayed(backend, 2 * OWN_US), tmp_path)  # type: ignore[type-var]
    assert "round_trip_us" in str(caught.value.hint)
    assert not (tmp_path / "outcome.json").exists()


def test_a_run_that_declares_less_than_the_path_has_is_refused(backend: Backend) -> None:
    (reason,) = backend.refuses(delayed(backend, OWN_US // 2))
    assert reason.startswith("the path of right has a round trip of 100000 us of its own, the run declares 50000 us")
