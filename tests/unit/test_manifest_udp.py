# SPDX-License-Identifier: Apache-2.0
"""UDP traffic, pings and receivers at further distances in a manifest, and in the run specs that come of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.plan import build_plan
from longfat.spec.runspec import RunSpec, Udp
from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.system.errors import StudyError

MANIFEST = """\
format: 2
study: waves
title: UDP traffic
algorithms: {standard: {cca: reno}}
profiles:
  quick: {duration: 20 s}
experiments:
  - id: beside
    topology: {kind: dumbbell, rate: 100 Mbit/s, rtt: 70 ms, senders: 2, receivers: 2}
    flows: [{name: stream, from: client1, to: server1, algorithm: standard, duration: 60 s}]
    udp:
      - {name: wave, from: client2, to: server2, mean: 40 Mbit/s, swing: 30 Mbit/s, period: "${period}", duration: 60 s}
    probes: {ping: 100 ms}
    sweep: {product: {period: [30 s]}}
"""


def load(folder: Path, *changes: tuple[str, str]) -> Study:
    text = MANIFEST
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


def problems(folder: Path, *changes: tuple[str, str]) -> list[str]:
    with pytest.raises(StudyError) as caught:
        load(folder, *changes)
    return [f"{problem.key}: {problem.message}" for problem in caught.value.problems]


def spec(study: Study, profile: str = "paper") -> RunSpec:
    (run,) = build_plan(study, profile=profile, pins={"backend": "virtual"}).runs
    return run.spec


def test_udp_traffic_and_pings_stand_in_the_run_spec(tmp_path: Path) -> None:
    found = spec(load(tmp_path))
    assert found.udp == (Udp("wave", "client2", "server2", 40_000_000, 60_000_000, 30_000_000, 30_000_000),)
    assert found.probes.ping_interval_us == 100_000
    assert RunSpec.from_json(found.to_json()) == found


def test_no_rate_swings_below_0(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, ("swing: 30 Mbit/s", "swing: 50 Mbit/s"))
    assert "50 Mbit/s is more than the mean of 40 Mbit/s" in problem


SWEPT = ("    sweep: {product: {period: [30 s]}}\n", "")
SINE = 'mean: 40 Mbit/s, swing: 30 Mbit/s, period: "${period}"'


def test_udp_traffic_of_a_constant_rate_has_no_sine(tmp_path: Path) -> None:
    found = spec(load(tmp_path, (SINE, "rate: 12 Mbit/s"), SWEPT))
    assert found.udp == (Udp("wave", "client2", "server2", 12_000_000, 60_000_000),)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("rate: 1 Mbit/s, mean: 1 Mbit/s", "rate: cannot be combined with mean"),
        ("rate: 1 Mbit/s, swing: 1 Mbit/s, period: 1 s", "rate: cannot be combined with swing and period"),
        ("mean: 1 Mbit/s, swing: 1 Mbit/s", "period of a sine are missing"),
        ("start: 1 s", "rate: is required here and missing"),
    ],
)
def test_a_rate_is_constant_or_a_whole_sine(tmp_path: Path, keys: str, words: str) -> None:
    (problem,) = problems(tmp_path, (SINE, keys), SWEPT)
    assert words in problem


def test_receivers_may_be_further_away_than_the_first(tmp_path: Path) -> None:
    found = spec(load(tmp_path, ("receivers: 2}", "receivers: 2, further_delays: [0 ms, 100 ms]}")))
    delays = {link.b.node: link.a.egress.delay_us for link in found.links}
    assert delays["switch2"] == 35_000
    assert (delays["server1"], delays["server2"]) == (0, 100_000)


def test_each_receiver_needs_its_further_delay(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, ("receivers: 2}", "receivers: 2, further_delays: [100 ms]}"))
    assert "has 1 delays for 2 receivers" in problem


def test_further_delays_need_links_of_their_own(tmp_path: Path) -> None:
    more = "receivers: 2, reverse_queue: {limit: 9}, further_delays: [0 ms, 100 ms]}"
    (problem,) = problems(tmp_path, ("receivers: 2}", more))
    assert "cannot be combined with reverse_queue" in problem
