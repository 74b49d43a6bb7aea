# SPDX-License-Identifier: Apache-2.0
"""What stands outside the experiments: defaults of flows, and references that have no value there."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.study.load import load_study
from longfat.study.models import FlowDefaults
from longfat.study.study import Study
from longfat.study.traffic.flows import Flow
from longfat.system.errors import Problem, StudyError

STUDY = """\
format: 2
study: example
title: An example
algorithms: {{reno: {{cca: reno}}, cubic: {{cca: cubic}}}}
hosts: {hosts}
paths:
  short: {{kind: dumbbell, rate: 10 Mbit/s, rtt: 20 ms, senders: 2, bottleneck_queue: {{limit: {limit}}}}}
defaults:
  path: short
  flow: {flow}
experiments:
  - id: first
    flows: [{{name: f}}, {{name: g, from: client2, algorithm: reno, streams: 1}}]
    hosts: {{txqueuelen: {length}}}
    sweep: {{product: {{packets: [50, 100]}}}}
"""
FLOW = "{from: client1, to: server, duration: 5 s, algorithm: cubic, start: 2 s, streams: 4, send_window: 64 KiB}"


def load(
    tmp_path: Path, limit: str = "100", length: str = '"${packets}"', hosts: str = "{}", flow: str = FLOW
) -> Study:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(limit=limit, length=length, hosts=hosts, flow=flow), encoding="utf-8")
    return load_study(path)


def problems(tmp_path: Path, **keys: str) -> tuple[Problem, ...]:
    with pytest.raises(StudyError) as caught:
        load(tmp_path, **keys)
    return caught.value.problems


def test_a_flow_takes_every_key_but_its_name_from_the_defaults(tmp_path: Path) -> None:
    assert {*Flow.model_fields} - {*FlowDefaults.model_fields} == {"name"}
    first, second = load(tmp_path).experiments[0].points[0].experiment.every_flow
    assert (first.algorithm, str(first.start), first.streams, str(first.send_window)) == ("cubic", "2 s", 4, "64 KiB")
    assert (second.algorithm, second.streams, second.sender, str(second.start)) == ("reno", 1, "client2", "2 s")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("algorithm: vegas", "unknown algorithm 'vegas'; allowed: reno, cubic"),
        ("streams: 0", "0 is out of range; allowed: 1 or more"),
        ("name: f", "unknown key 'name'"),
        ("windows: 1 MiB", "unknown key 'windows'"),
    ],
)
def test_a_fault_of_the_defaults_is_named_where_it_is(tmp_path: Path, key: str, message: str) -> None:
    found = problems(tmp_path, flow=f"{{from: client1, to: server, duration: 5 s, {key}}}")
    assert any(message in one.message and one.key.startswith("defaults.flow.") for one in found)


@pytest.mark.parametrize(
    ("keys", "place", "hint"),
    [
        (
            {"limit": '"${packets}"', "length": "100"},
            "paths.short.bottleneck_queue.limit",
            "`topology` of an experiment",
        ),
        ({"hosts": '{tx_ring: "${packets}"}', "length": "100"}, "hosts.tx_ring", "in an experiment"),
    ],
)
def test_a_reference_outside_the_experiments_is_the_only_fault(
    tmp_path: Path, keys: dict[str, str], place: str, hint: str
) -> None:
    (one,) = problems(tmp_path, **keys)
    assert one.key == place
    assert "references belong into experiments" in one.message
    assert hint in (one.hint or "")
