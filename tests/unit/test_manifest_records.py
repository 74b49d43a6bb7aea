# SPDX-License-Identifier: Apache-2.0
"""Paths, stacks, derived values, several zips, like and defaults: their values, and the places of their faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifests import keys_of, problems_of, study_of

from longfat.study.models import Experiment, FlowDefaults
from longfat.study.queues.red import Red
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
defaults: {repetitions: 3, probes: {sockets: 1 s, queues: 1 s}, memory: 2 GiB}
experiments:
  # Along every path.
  - id: first
    path: "${path}"
    topology: {bottleneck_queue: {limit: "${limit}"}}
    flows:
    - {name: f, from: client1, to: server, algorithm: "${stack.algorithm}", streams: "${stack.streams}", duration: 9 s}
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


def test_single_keys_are_laid_over_a_path_at_any_depth(tmp_path: Path) -> None:
    first, _ = study_of(tmp_path, GOOD).experiments
    short, long = first.points[0].experiment.topology, first.points[-1].experiment.topology
    assert isinstance(short, Dumbbell) and isinstance(long, Dumbbell)
    assert (str(short.host_rate), str(short.rtt)) == ("1 Gbit/s", "10 ms")
    assert isinstance(long.bottleneck_queue, Red)
    assert (long.bottleneck_queue.min, long.bottleneck_queue.limit) == (3, 354)


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


def test_a_formula_may_take_what_stands_above_it(tmp_path: Path) -> None:
    formula = "{limit: round(path.rate * path.rtt / packet / 4)}"
    first, _ = study_of(
        tmp_path, GOOD, (formula, "{whole: path.rate * path.rtt, limit: round(whole / packet)}")
    ).experiments
    assert limit_of(first.points[-1].experiment) == 1417


# fmt: off
CASES = [
    ("path: long\n", "path: lonng\n", 30, "experiments[1].path"),
    ("rtt: 170 ms", "rtt: 170", 10, "paths.long.rtt"),
    ("{kind: dumbbell, rate: 100 Mbit/s, rtt: 170 ms", "{rate: 100 Mbit/s, rtt: 170 ms", 10, "paths.long.kind"),
    ("  swift: {", "  short: {", 15, "stacks.short"),
    ("queue: 2000", "queue: [1]", 14, "stacks.many.queue"),
    ("streams: 16", "streams: 0", 14, "stacks.many.streams"),
    ("algorithm: fast, streams: 1}", "algorithm: fst, streams: 1}", 15, "stacks.swift.algorithm"),
    ("streams: 1}\n  many", "stream: 1}\n  many", 13, "stacks.one"),
    ("stack: [one, many, swift]", "stack: [one, many, swft]", 25, "experiments[0].sweep.product.stack[2]"),
    ("{name: own, algorithm", "{algorithm", 35, "experiments[1].sweep.zip[0].stack[1].name"),
    ("packet / 4)", "packet / )", 26, "experiments[0].sweep.derived.limit"),
    ("path.rate * path.rtt / packet", "path.rate + path.rtt", 26, "experiments[0].sweep.derived.limit"),
    ("round(path.rate * path.rtt / packet / 4)", "path.rate * path.rtt / packet / 4",
     26, "experiments[0].sweep.derived.limit"),
    ('{limit: "${limit}"}', "{limit: 9}", 26, "experiments[0].sweep.derived.limit"),
    ("derived: {limit: round(", "derived: {stack: 1 * 1, limit: round(", 26, "experiments[0].sweep.derived.stack"),
    ("{kind: [a, b]", "{stack: [a, b]", 36, "experiments[1].sweep.zip[1].stack"),
    ("{kind: [a, b]", "{kind: [a]", 36, "experiments[1].sweep.zip[1]"),
    ("like: first", "like: frst", 29, "experiments[1].like"),
    ("to: server", "to: sever", 23, "experiments[0].flows[0].to"),
    ("sockets: 1 s", "sockets: 1", 16, "defaults.probes.sockets"),
    ("topology: {bottleneck", "topology: {kind: delay, bottleneck", 21, "experiments[0].topology.kind"),
    ('path: "${path}"', "path: long", 20, "experiments[0].path"),
]
# fmt: on


@pytest.mark.parametrize(("old", "new", "line", "key"), CASES)
def test_a_fault_is_reported_where_it_can_be_mended(tmp_path: Path, old: str, new: str, line: int, key: str) -> None:
    assert (line, key) in [(one.line, one.key) for one in problems_of(tmp_path, GOOD, (old, new))]


def test_a_fault_that_many_inherit_is_one_problem(tmp_path: Path) -> None:
    found = keys_of(tmp_path, GOOD, ("duration: 9 s", "duration: 9"), ("limit: 99", "limit: 0"))
    assert found == ["paths.long.bottleneck_queue.limit", "experiments[0].flows[0].duration"]


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


def text(limit: str = "100", length: str = '"${packets}"', hosts: str = "{}", flow: str = FLOW) -> str:
    return STUDY.format(limit=limit, length=length, hosts=hosts, flow=flow)


def test_a_flow_takes_every_key_but_its_name_from_the_defaults(tmp_path: Path) -> None:
    assert {*Flow.model_fields} - {*FlowDefaults.model_fields} == {"name"}
    first, second = study_of(tmp_path, text()).experiments[0].points[0].experiment.every_flow
    assert (first.algorithm, str(first.start), first.streams, str(first.send_window)) == ("cubic", "2 s", 4, "64 KiB")
    assert (second.algorithm, second.streams, second.sender, str(second.start)) == ("reno", 1, "client2", "2 s")


@pytest.mark.parametrize(
    ("key", "value"), [("algorithm", "vegas"), ("streams", "0"), ("name", "f"), ("windows", "1 MiB")]
)
def test_a_fault_of_the_defaults_is_named_where_it_is(tmp_path: Path, key: str, value: str) -> None:
    faulty = text(flow=f"{{from: client1, to: server, duration: 5 s, {key}: {value}}}")
    assert f"defaults.flow.{key}" in keys_of(tmp_path, faulty)


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"limit": '"${packets}"', "length": "100"}, "paths.short.bottleneck_queue.limit"),
        ({"hosts": '{tx_ring: "${packets}"}', "length": "100"}, "hosts.tx_ring"),
    ],
)
def test_a_reference_outside_the_experiments_is_the_only_fault(
    tmp_path: Path, keys: dict[str, str], place: str
) -> None:
    assert keys_of(tmp_path, text(**keys)) == [place]
