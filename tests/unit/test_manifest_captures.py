# SPDX-License-Identifier: Apache-2.0
"""Captures in a manifest: all traffic by its name, at named places, and what reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.plan.build import build_plan
from longfat.spec.network import capture_port
from longfat.spec.runspec import CapturePoint, RunSpec
from longfat.study.load import load_study
from longfat.system.errors import StudyError

STUDY = """
format: 2
study: captures
title: captures
algorithms: {reno: {cca: reno}}
experiments:
  - id: all
    topology: {kind: dumbbell, rate: 10 Mbit/s, host_rate: 1 Gbit/s, rtt: 20 ms, senders: 2}
    flows: [{name: bulk, from: client1, to: server, algorithm: reno, duration: 9 s, count: 2}]
    udp: [{name: wave, from: client2, to: server, mean: 2 Mbit/s, swing: 1 Mbit/s, period: 3 s, duration: 9 s}]
    requests: [{name: read, from: client1, to: server, algorithm: reno, users: 3, response: 64 kB, duration: 9 s}]
    probes: {capture: [bulk2, wave, read], capture_at: [receiver, bottleneck]}
"""


def write(folder: Path, text: str) -> Path:
    (folder / "study.yaml").write_text(text)
    return folder / "study.yaml"


def spec_of(folder: Path) -> RunSpec:
    (run,) = build_plan(load_study(write(folder, STUDY)), pins={}).runs
    return run.spec


def test_every_traffic_is_captured_at_every_place_in_a_file_of_its_own(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    assert list(spec.probes.captures) == [
        f"{name}@{place}" for name in ("bulk2", "wave", "read") for place in ("receiver", "bottleneck")
    ]
    assert spec.traced == ()


@pytest.mark.parametrize(
    ("place", "interface"),
    [("sender", "client2-eth0"), ("bottleneck", "switch-eth2"), ("receiver", "server-eth0")],
)
def test_a_place_is_an_interface_on_the_way_of_the_traffic(tmp_path: Path, place: CapturePoint, interface: str) -> None:
    spec = spec_of(tmp_path)
    (wave,) = spec.udp
    assert capture_port(spec, wave, place).name == interface


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[bulk2, wave,",
            "[bulk2, wafe,",
            "unknown traffic 'wafe'; allowed: bulk1, bulk2, wave, read",
        ),
        ("[receiver, bottleneck]", "[reciever]", "allowed: sender, bottleneck, receiver"),
        ("[receiver, bottleneck]", "[]", "capture_at"),
    ],
)
def test_a_name_or_place_that_there_is_not_is_reported_with_what_is_allowed(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(StudyError) as caught:
        load_study(write(tmp_path, STUDY.replace(old, new)))
    assert message in str(caught.value)
