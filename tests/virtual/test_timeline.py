# SPDX-License-Identifier: Apache-2.0
"""A deliberate drop may be asked for at any time, that of a sample too. Played in a guest, where waiting is free."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import delay_spec
from guests import ask

pytestmark = pytest.mark.virtual

# The network is a stub whose port drops a packet so long after it was asked to; the time line is the real one.
PROGRAM = """
import dataclasses, sys, time
sys.path.append("/usr/lib/python3/dist-packages")
from pathlib import Path
from types import SimpleNamespace
from longfat.guest.drops import Drops
from longfat.guest.qdisc import Hook
from longfat.guest.timeline import Timeline
from longfat.spec.runspec import DeliberateDrop, RunSpec

class Network:
    def __init__(self, egress, takes_us, now_us):
        self.port = SimpleNamespace(node="delay", name="delay-eth1", egress=egress)
        self.log, self.takes_us, self.now_us = [], takes_us, now_us

    def drop_hooks(self):
        return [(self.port, Hook("delay", "delay-eth1", "egress"))]

    def batch(self, node, lines):
        self.log.append((self.now_us(), lines[0].split()[1]))

    def filter_drops(self, hook):
        return int(self.now_us() >= self.log[0][0] + self.takes_us)

def play(at_us, takes_us, probe_us):
    spec = RunSpec.from_json(Path("/task/spec.json").read_text())
    played = Timeline(spec.end_us)
    egress = dataclasses.replace(spec.links[1].a.egress, drops=(DeliberateDrop(at_us),))
    network = Network(egress, takes_us, played.now_us)
    samples = []
    played.begin(time.monotonic_ns())
    drops = Drops(network, played, spec.links)
    drops.plan()
    for _ in range(3):
        played.repeat(probe_us, lambda: samples.append(played.now_us()))
    played.play()
    return {"log": network.log, "drops": drops.happened, "samples": samples}

answer = []
for probe_us in (10_000, 100_000):
    for takes_us in (1_000, 37_000, 121_000, 10_000_000):
        for at_us in range(10_000, 600_000, 10_000):
            try:
                found = play(at_us, takes_us, probe_us)
            except TypeError as error:
                found = {"error": str(error)}
            answer.append({"at_us": at_us, "takes_us": takes_us, "probe_us": probe_us, **found})
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    spec = tmp_path_factory.mktemp("spec") / "spec.json"
    spec.write_text(delay_spec().to_json())
    return ask(PROGRAM, spec)


def test_no_time_of_a_drop_crashes_a_run(answer: Any) -> None:
    assert [played for played in answer if "error" in played] == []
    assert len(answer) == 2 * 4 * 59


def test_each_drop_is_asked_for_at_its_time_and_ended(answer: Any) -> None:
    for played in answer:
        (began_us, begin), (_, end) = played["log"]
        assert (began_us // 1000, begin, end) == (played["at_us"] // 1000, "add", "del")
        assert played["drops"] == {"delay-eth1": int(played["takes_us"] < 200_000)}


def test_every_sample_is_taken_at_its_time(answer: Any) -> None:
    for played in answer:
        step_ms = played["probe_us"] // 1000
        assert [t_us // 1000 for t_us in played["samples"]] == [
            t for t in range(step_ms, 1000, step_ms) for _ in range(3)
        ]
