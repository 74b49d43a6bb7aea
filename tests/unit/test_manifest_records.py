# SPDX-License-Identifier: Apache-2.0
"""Paths, stacks, derived values, several zips, like and defaults: what they yield, and where their faults are shown."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longfat.errors import Problem, StudyError
from longfat.manifest.load import load_study
from longfat.manifest.models import Experiment
from longfat.manifest.study import Study
from longfat.manifest.topologies import Dumbbell
from longfat.queues.red import Red

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


def load(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


def problems(tmp_path: Path, *changes: tuple[str, str]) -> tuple[Problem, ...]:
    with pytest.raises(StudyError) as caught:
        load(tmp_path, changed(*changes))
    return caught.value.problems


def changed(*changes: tuple[str, str]) -> str:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def limit_of(experiment: Experiment) -> int:
    assert isinstance(experiment.topology, Dumbbell)
    return experiment.topology.bottleneck_queue.limit


def test_a_factor_whose_values_name_records_is_the_name_alone(tmp_path: Path) -> None:
    first, _ = load(tmp_path, GOOD).experiments
    assert [point.factors for point in first.points][:4] == [
        {"path": "short", "stack": "one"},
        {"path": "short", "stack": "many"},
        {"path": "short", "stack": "swift"},
        {"path": "long", "stack": "one"},
    ]
    assert first.points[0].labels == {"path": "short", "stack": "one"}
    assert first.factors == {"path": ("short", "long"), "stack": ("one", "many", "swift")}


def test_fields_of_records_stand_where_they_are_referred_to(tmp_path: Path) -> None:
    first, _ = load(tmp_path, GOOD).experiments
    assert [(flow.algorithm, flow.streams) for point in first.points[:3] for flow in point.experiment.flows] == [
        ("reno", 1),
        ("reno", 16),
        ("fast", 1),
    ]


def test_single_keys_are_laid_over_a_path_at_any_depth(tmp_path: Path) -> None:
    first, _ = load(tmp_path, GOOD).experiments
    short, long = first.points[0].experiment.topology, first.points[-1].experiment.topology
    assert isinstance(short, Dumbbell) and isinstance(long, Dumbbell)
    assert (str(short.host_rate), str(short.rtt)) == ("1 Gbit/s", "10 ms")
    assert isinstance(long.bottleneck_queue, Red)
    assert (long.bottleneck_queue.min, long.bottleneck_queue.limit) == (3, 354)


def test_a_derived_value_follows_from_path_and_packet_and_is_no_factor(tmp_path: Path) -> None:
    first, _ = load(tmp_path, GOOD).experiments
    assert [limit_of(point.experiment) for point in first.points] == [21, 21, 21, 354, 354, 354]
    assert first.derived == {"limit": "round(path.rate * path.rtt / packet / 4)"}


def test_a_packet_of_a_formula_is_the_mtu_of_the_experiment(tmp_path: Path) -> None:
    text = changed(("    flows:", "    hosts: {mtu: 9000 B}\n    flows:"))
    first, second = load(tmp_path, text).experiments
    assert limit_of(first.points[-1].experiment) == 59
    assert str(second.points[0].experiment.hosts.mtu) == "9 kB"


def test_several_zips_are_axes_of_their_own(tmp_path: Path) -> None:
    _, second = load(tmp_path, GOOD).experiments
    assert [tuple(point.factors.values()) for point in second.points] == [
        ("many", "a", 500_000),
        ("many", "b", 1_000_000),
        ("own", "a", 500_000),
        ("own", "b", 1_000_000),
    ]


def test_a_record_may_stand_in_the_sweep_itself(tmp_path: Path) -> None:
    _, second = load(tmp_path, GOOD).experiments
    assert [point.experiment.hosts.txqueuelen for point in second.points] == [2000, 2000, 7, 7]


def test_a_path_is_named_by_a_whole_factor_and_not_by_a_field(tmp_path: Path) -> None:
    with pytest.raises(
        StudyError, match=r"is a field of a record; the factor that names a path must be a separate one"
    ):
        load(tmp_path, GOOD.replace('path: "${path}"', 'path: "${stack.queue}"'))


def test_an_experiment_takes_from_an_earlier_one_what_it_does_not_give(tmp_path: Path) -> None:
    _, second = load(tmp_path, GOOD).experiments
    experiment = second.points[0].experiment
    assert experiment.flows[0].name == "f"
    assert limit_of(experiment) == 50


def test_defaults_stand_below_every_experiment_key_by_key(tmp_path: Path) -> None:
    first, second = load(tmp_path, GOOD).experiments
    assert (first.repetitions, second.repetitions) == (3, 1)
    probes = second.points[0].experiment.probes
    assert (str(probes.sockets), str(probes.ping)) == ("1 s", "100 ms")
    assert str(first.points[0].experiment.memory) == "2 GiB"


def test_a_whole_topology_replaces_the_path_of_the_earlier_experiment(tmp_path: Path) -> None:
    text = changed(
        ("    path: long\n", "    topology: {kind: delay, rate: 1 Gbit/s, rtt: 20 ms}\n"),
        ('      derived: {limit: "ceil(share * 100)"}\n', ""),
        ("streams: 2, queue: 7}", "streams: 2, queue: 7}]}"),
        ("]}\n        - {kind: [a, b], share: [50 %, 100 %]}", ""),
    )
    _, second = load(tmp_path, text).experiments
    assert second.points[0].experiment.topology.kind == "delay"


def test_a_formula_may_take_what_stands_above_it(tmp_path: Path) -> None:
    text = changed(
        (
            "derived: {limit: round(path.rate",
            "derived: {whole: path.rate * path.rtt, limit: round(whole / packet + 0 * path.rate",
        )
    ).replace("0 * path.rate * path.rtt / packet / 4", "0")
    first, _ = load(tmp_path, text).experiments
    assert limit_of(first.points[-1].experiment) == 1417


# fmt: off
CASES = [
    ("another format", "format: 2", "format: 1", 1, "format", "allowed: 2", None),
    ("unknown path", "path: long\n", "path: lonng\n", 30, "experiments[1].path",
     "unknown path 'lonng'; allowed: short, long", "did you mean 'long'?"),
    ("unknown path in the sweep", "path: [short, long]", "path: [short, longg]", 25,
     "experiments[0].sweep.product.path[1]", "unknown path 'longg'; allowed: short, long", "'long'"),
    ("fault of a path", "rtt: 170 ms", "rtt: 170", 10, "paths.long.rtt", "170 has no unit", "30 ms"),
    ("unknown key of a path", "rtt: 170 ms", "rtt: 170 ms, lenth: 1", 10, "paths.long.lenth",
     "unknown key 'lenth'", None),
    ("path without a kind", "{kind: dumbbell, rate: 100 Mbit/s, rtt: 170 ms", "{rate: 100 Mbit/s, rtt: 170 ms", 10,
     "paths.long.kind", "is required here but missing; allowed: direct, delay, dumbbell", None),
    ("record of two kinds", "  swift: {", "  short: {", 15, "stacks.short", "is also the name of a path", None),
    ("field that is no single value", "queue: 2000", "queue: [1]", 14, "stacks.many.queue",
     "is not a single value", None),
    ("fault of a field", "streams: 16", "streams: 0", 14, "stacks.many.streams",
     "as flows[0].streams: 0 is out of range; allowed: 1 or more", None),
    ("algorithm of a field", "algorithm: fast, streams: 1}", "algorithm: fst, streams: 1}", 15,
     "stacks.swift.algorithm",
     "as flows[0].algorithm: unknown algorithm 'fst'; allowed: reno, fast", "did you mean 'fast'?"),
    ("missing field", "streams: 1}\n  many", "stream: 1}\n  many", 13, "stacks.one",
     "as flows[0].streams: unknown field 'streams'; allowed: algorithm, stream in 'one'", "did you mean 'stream'?"),
    ("fault of an inline record", "queue: 7}", "queue: 0}", 35, "experiments[1].sweep.zip[0].stack[1].queue",
     "as hosts.txqueuelen: 0 is out of range", None),
    ("value that names no record", "stack: [one, many, swift]", "stack: [one, many, swft]", 25,
     "experiments[0].sweep.product.stack[2]",
     "'swft' is not the name of a path or stack; allowed: one, many, swift, short, long",
     "did you mean 'swift'?"),
    ("inline record without a name", "{name: own, algorithm", "{algorithm", 35,
     "experiments[1].sweep.zip[0].stack[1].name",
     "is required here but missing", None),
    ("formula with a slip", "packet / 4)", "packet / )", 26, "experiments[0].sweep.derived.limit",
     "column 39: ", None),
    ("formula of unlike amounts", "path.rate * path.rtt / packet", "path.rate + path.rtt", 26,
     "experiments[0].sweep.derived.limit",
     "column 7: + needs amounts of one kind, but these are a rate and a length", None),
    ("formula with an unknown name", "packet / 4", "pakket / 4", 26, "experiments[0].sweep.derived.limit",
     "unknown name 'pakket'; allowed: path, stack, limit, packet", "did you mean 'packet'?"),
    ("formula with a text", "packet / 4", "stack", 26, "experiments[0].sweep.derived.limit",
     "column 30: stack is 'one'; a formula takes numbers and quantities", None),
    ("formula with a field that is missing", "packet / 4", "path.mtu", 26, "experiments[0].sweep.derived.limit",
     "column 30: unknown field 'mtu'; allowed: kind, rate", None),
    ("formula that gives a share of a packet", "round(path.rate * path.rtt / packet / 4)",
     "path.rate * path.rtt / packet / 4", 26, "experiments[0].sweep.derived.limit",
     "as topology.bottleneck_queue.limit: 20.8", None),
    ("derived value that nothing uses", '{limit: "${limit}"}', "{limit: 9}", 26, "experiments[0].sweep.derived.limit",
     "derived value 'limit' is never used", None),
    ("derived value that is a factor", "derived: {limit: round(", "derived: {stack: 1 * 1, limit: round(", 26,
     "experiments[0].sweep.derived.stack", "'stack' is also a factor", None),
    ("factor of two zips", "{kind: [a, b]", "{stack: [a, b]", 36, "experiments[1].sweep.zip[1].stack",
     "'stack' is also in another zip", None),
    ("zips of unequal length", "{kind: [a, b]", "{kind: [a]", 36, "experiments[1].sweep.zip[1]",
     "lists of unequal length: kind has 1, share has 2", None),
    ("like an unknown one", "like: first", "like: frst", 29, "experiments[1].like",
     "unknown earlier experiment 'frst'; allowed: first", "did you mean 'first'?"),
    ("like itself", "like: first", "like: second", 29, "experiments[1].like",
     "unknown earlier experiment 'second'; allowed: first", None),
    ("fault of an inherited key", "to: server", "to: sever", 23, "experiments[0].flows[0].to",
     "unknown node 'sever'", None),
    ("fault of a default", "sockets: 1 s", "sockets: 1", 16, "defaults.probes.sockets", "1 has no unit", None),
    ("unknown default", "memory: 2 GiB}", "memry: 2 GiB}", 16, "defaults.memry", "unknown key 'memry'", "'memory'"),
    ("path beside a whole topology", "topology: {bottleneck", "topology: {kind: delay, bottleneck", 21,
     "experiments[0].topology.kind", "'delay' makes this a whole topology, but a path is given too", "give one"),
    ("path that is not the factor", 'path: "${path}"', "path: long", 20, "experiments[0].path",
     "'long' is not the factor of that name", 'write "${path}"'),
]
# fmt: on


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message", "hint"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_fault_is_reported_where_it_can_be_mended(
    tmp_path: Path, old: str, new: str, line: int, key: str, message: str, hint: str | None
) -> None:
    found = problems(tmp_path, (old, new))
    matching = [problem for problem in found if problem.key == key and message in problem.message]
    assert matching, "\n".join(str(problem) for problem in found)
    assert matching[0].line == line
    if hint:
        assert hint in (matching[0].hint or "")


def test_a_fault_that_many_inherit_is_one_problem(tmp_path: Path) -> None:
    found = problems(tmp_path, ("duration: 9 s", "duration: 9"), ("limit: 99", "limit: 0"))
    assert [problem.key for problem in found] == [
        "paths.long.bottleneck_queue.limit",
        "experiments[0].flows[0].duration",
    ]


def test_a_field_may_be_missing_where_nothing_refers_to_it(tmp_path: Path) -> None:
    assert "queue" not in load(tmp_path, GOOD).header.stacks["one"]


WORDS = [
    "",
    "null",
    "0",
    "[]",
    "{}",
    "x",
    "path",
    "5 ms",
    "${stack.x}",
    "${limit.y}",
    "name: z",
    "(",
    " / 0 ",
    "like: first",
]


@settings(derandomize=True, database=None, deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.integers(min_value=0, max_value=len(GOOD) - 1), st.integers(0, 12), st.sampled_from(WORDS))
def test_whatever_is_changed_the_outcome_is_a_study_or_a_study_error(
    tmp_path: Path, at: int, removed: int, word: str
) -> None:
    text = GOOD[:at] + word + GOOD[at + removed :]
    try:
        experiments, message = load(tmp_path, text).experiments, ""
    except StudyError as error:
        experiments, message = (), str(error)
    assert bool(experiments) != bool(message)
