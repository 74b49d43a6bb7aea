# SPDX-License-Identifier: Apache-2.0
"""Paths, stacks, derived values, several zips, like and defaults: their values, and the places of their faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifests import keys_of, problems_of, study_of

from longfat.study.models import Experiment, FlowDefaults
from longfat.study.topologies import Dumbbell
from longfat.study.traffic.flows import Flow

GOOD = """\
format: 2
study: records
title: Records
algorithms:
  reno: {cca: reno}
  fast: {cca: fast}
hosts: {mtu: 1500 B}
paths:
  short: {kind: dumbbell, rate: 100 Mbit/s, host_rate: 1 Gbit/s, rtt: 10 ms, senders: 1, bottleneck_queue: {limit: 50}}
  long: {kind: dumbbell, rate: 100 Mbit/s, rtt: 170 ms, senders: 2, bottleneck_queue: {
    kind: red, limit: 99, min: 3, max: 9, probability: 9 %, ecn: true}}
stacks:
  one: {algorithm: reno, streams: 1}
  many: {algorithm: reno, streams: 16, queue: 2000}
  swift: {algorithm: fast, streams: 1}
defaults: {repetitions: 3, probes: {sockets: 1 s}, memory: 2 GiB, flow: {to: server, duration: 9 s, streams: 4}}
experiments:
  # Along every path.
  - id: first
    path: "${path}"
    topology: {bottleneck_queue: {limit: "${limit}"}}
    flows:
    - {name: f, from: client1, algorithm: "${stack.algorithm}", streams: "${stack.streams}"}
    sweep:
      product: {path: [short, long], stack: [one, many, swift]}
      derived: {limit: round(path.rate * path.rtt / packet / 4)}
  # Along one.
  - id: second
    like: first
    path: long
    hosts: {txqueuelen: "${stack.queue}"}
    probes: {ping: 100 ms}
    sweep:
      zip:
        - {stack: [many, {name: own, algorithm: fast, streams: 2, queue: 7}]}
        - {kind: [a, b], share: [50 %, 100 %]}
      derived: {limit: "ceil(share * 100)"}
    repetitions: 1
"""


def limit_of(experiment: Experiment) -> int:
    assert isinstance(experiment.topology, Dumbbell)
    return experiment.topology.bottleneck_queue.limit


def test_a_factor_whose_values_name_records_is_the_name_alone(tmp_path: Path) -> None:
    first, _ = study_of(tmp_path, GOOD).experiments
    assert [tuple(point.factors.values()) for point in first.points] == [
        (path, stack) for path in ("short", "long") for stack in ("one", "many", "swift")
    ]
    assert first.points[0].labels == {"path": "short", "stack": "one"}
    assert first.factors == {"path": ("short", "long"), "stack": ("one", "many", "swift")}
    flows = [(flow.algorithm, flow.streams) for point in first.points[:3] for flow in point.experiment.flows]
    assert flows == [("reno", 1), ("reno", 16), ("fast", 1)], "fields stand where they are referred to"


def test_a_derived_value_follows_from_path_and_packet_and_is_no_factor(tmp_path: Path) -> None:
    first, _ = study_of(tmp_path, GOOD).experiments
    assert [limit_of(point.experiment) for point in first.points] == [21, 21, 21, 354, 354, 354]
    assert first.derived == {"limit": "round(path.rate * path.rtt / packet / 4)"}


def test_a_packet_of_a_formula_is_the_mtu_of_the_experiment(tmp_path: Path) -> None:
    first, second = study_of(tmp_path, GOOD, ("    flows:", "    hosts: {mtu: 9000 B}\n    flows:")).experiments
    assert limit_of(first.points[-1].experiment) == 59
    assert str(second.points[0].experiment.hosts.mtu) == "9 kB"


def test_several_zips_are_axes_of_their_own(tmp_path: Path) -> None:
    _, second = study_of(tmp_path, GOOD).experiments
    assert [tuple(point.factors.values()) for point in second.points] == [
        ("many", "a", 500_000),
        ("many", "b", 1_000_000),
        ("own", "a", 500_000),
        ("own", "b", 1_000_000),
    ]
    assert [point.experiment.hosts.txqueuelen for point in second.points] == [2000, 2000, 7, 7]


def test_defaults_stand_below_every_experiment_key_by_key(tmp_path: Path) -> None:
    first, second = study_of(tmp_path, GOOD).experiments
    assert (first.repetitions, second.repetitions) == (3, 1)
    probes = second.points[0].experiment.probes
    assert (str(probes.sockets), str(probes.ping)) == ("1 s", "100 ms")
    assert str(first.points[0].experiment.memory) == "2 GiB"
    assert {*Flow.model_fields} - {*FlowDefaults.model_fields} == {"name"}
    (flow,) = first.points[1].experiment.flows
    assert (flow.receiver, str(flow.duration), flow.streams) == ("server", "9 s", 16)


# fmt: off
CASES = [
    ("rtt: 170 ms", "rtt: 170", 10, "paths.long.rtt"),
    ("{kind: dumbbell, rate: 100 Mbit/s, rtt: 170 ms", "{rate: 100 Mbit/s, rtt: 170 ms", 10, "paths.long.kind"),
    ("queue: 2000", "queue: [1]", 14, "stacks.many.queue"),
    ("{name: own, algorithm", "{algorithm", 35, "experiments[1].sweep.zip[0].stack[1].name"),
    ("sockets: 1 s", "sockets: 1", 16, "defaults.probes.sockets"),
    ("{repetitions: 3", "{repetition: 3", 16, "defaults.repetition"),
    ("flow: {to", "flow: {windows: 1 MiB, to", 16, "defaults.flow.windows"),
    ("flow: {to", "flow: {name: f, to", 16, "defaults.flow.name"),
    ("streams: 4", "streams: 0", 16, "defaults.flow.streams"),
    ("memory: 2 GiB", 'memory: "${limit}"', 16, "defaults.memory"),
    ('{limit: "${limit}"}', '{limit: "${limit}", limt: 1}', 21, "experiments[0].topology.bottleneck_queue.limt"),
    ("topology: {bottleneck", "topology: {kind: delay, bottleneck", 21, "experiments[0].topology.kind"),
]
BEYOND_A_SCHEMA = [
    ("path: long\n", "path: lonng\n", 30, "experiments[1].path"),
    ("  swift: {", "  short: {", 15, "stacks.short"),
    ("streams: 16", "streams: 0", 14, "stacks.many.streams"),
    ("algorithm: fast, streams: 1}", "algorithm: fst, streams: 1}", 15, "stacks.swift.algorithm"),
    ("streams: 1}\n  many", "stream: 1}\n  many", 13, "stacks.one"),
    ("stack: [one, many, swift]", "stack: [one, many, swft]", 25, "experiments[0].sweep.product.stack[2]"),
    ("packet / 4)", "packet / )", 26, "experiments[0].sweep.derived.limit"),
    ("path.rate * path.rtt / packet", "path.rate + path.rtt", 26, "experiments[0].sweep.derived.limit"),
    ("round(path.rate * path.rtt / packet / 4)", "path.rate * path.rtt / packet / 4",
     26, "experiments[0].sweep.derived.limit"),
    ('{limit: "${limit}"}', "{limit: 9}", 26, "experiments[0].sweep.derived.limit"),
    ("derived: {limit: round(", "derived: {stack: 1 * 1, limit: round(", 26, "experiments[0].sweep.derived.stack"),
    ("{kind: [a, b]", "{stack: [a, b]", 36, "experiments[1].sweep.zip[1].stack"),
    ("{kind: [a, b]", "{kind: [a]", 36, "experiments[1].sweep.zip[1]"),
    ("like: first", "like: frst", 29, "experiments[1].like"),
    ("- id: second\n    like: first", "- like: first", 28, "experiments[1].id"),
    ("/ 4)}", '/ 4), late: packet * 2}\n    hosts: {mtu: "${late}"}', 26, "experiments[0].sweep.derived.limit"),
    ("to: server", "to: sever", 16, "defaults.flow.to"),
    ("limit: 50", 'limit: "${limit}"', 9, "paths.short.bottleneck_queue.limit"),
    ("{mtu: 1500 B}", '{mtu: 1500 B, tx_ring: "${limit}"}', 7, "hosts.tx_ring"),
    ('path: "${path}"', "path: long", 20, "experiments[0].path"),
]
# fmt: on


@pytest.mark.parametrize(("old", "new", "line", "key"), [*CASES, *BEYOND_A_SCHEMA])
def test_a_fault_is_reported_where_it_can_be_mended(tmp_path: Path, old: str, new: str, line: int, key: str) -> None:
    assert (line, key) in [(one.line, one.key) for one in problems_of(tmp_path, GOOD, (old, new))]


def test_a_fault_that_many_inherit_is_one_problem(tmp_path: Path) -> None:
    found = keys_of(tmp_path, GOOD, ("duration: 9 s", "duration: 9"), ("limit: 99", "limit: 0"))
    assert found == ["paths.long.bottleneck_queue.limit", "defaults.flow.duration"]
