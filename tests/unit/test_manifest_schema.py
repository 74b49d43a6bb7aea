# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema for editors and the generated reference follow the models."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from longfat.study.load import load_study
from longfat.study.reference import PAGE, with_reference
from longfat.study.schema.source import read_source
from longfat.study.study_schema import json_schema
from longfat.system.errors import StudyError

ROOT = Path(__file__).parents[2]
SCHEMA = Draft202012Validator(json_schema())

GOOD = """\
format: 2
study: example
title: An example
stack: modern
seed: 1
algorithms:
  standard: {cca: reno}
  scalable: {cca: scalable, a: 0.02}
hosts: {mtu: 9000 B, txqueuelen: 100, offloads: [gro], sysctls: {net.ipv4.tcp_sack: 1}}
paths:
  long: {kind: dumbbell, rate: 1 Gbit/s, rtt: 30 ms, senders: 1, bottleneck_queue: {limit: 100}}
stacks:
  few: {streams: 2}
defaults: {repetitions: 2, flow: {duration: 10 s}}
experiments:
  - id: first
    path: long
    topology: {bottleneck_queue: {limit: "${limit}"}}
    flows:
      - {name: f1, from: client1, to: server, algorithm: "${algorithm}", window: 1 MiB, streams: "${stack.streams}"}
    web: [{name: users, from: server, to: client1, users: 5, algorithm: standard, duration: 5 s}]
    udp: [{name: wave, from: client1, to: server, mean: 2 Mbit/s, swing: 1 Mbit/s, period: 2 s, duration: 5 s}]
    sweep:
      product: {algorithm: [standard, scalable], stack: [few]}
      derived: {limit: round(path.rate * path.rtt / packet)}
      exclude: [{when: {algorithm: scalable}, reason: too large}]
    probes: {sockets: 1 s, capture: [f1], capture_loss: 5}
    drops: []
  - id: second
    like: first
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    sweep: {product: {algorithm: [standard]}}
    flows: [{name: f1, from: client1, to: server, algorithm: "${algorithm}"}]
    probes: {capture_loss: 0}
    drops: [{at: 3 s}]
    memory: 2 GiB
profiles:
  quick: {keep: {algorithm: [standard]}, duration: 5 s}
"""

# What `check` refuses and the schema, too.
REFUSED = [
    ("unit of no kind", "rate: 1 Gbit/s", "rate: 50 Mbps"),
    ("unit of another kind", "window: 1 MiB", "window: 1 s"),
    ("quantity without a unit", "rtt: 30 ms", "rtt: 30"),
    ("unit without a number", "rtt: 30 ms", "rtt: ms"),
    ("negative quantity", "rtt: 30 ms", "rtt: -30 ms"),
    ("quantity with two points", "rtt: 30 ms", "rtt: 3.0.1 ms"),
    ("unknown key", "title:", "titel: x\ntitle:"),
    ("unknown key of a flow", "window: 1 MiB", "windw: 1 MiB"),
    ("unknown key of a path", "senders: 1", "senders: 1, sendrs: 1"),
    ("unknown key over a path", '{bottleneck_queue: {limit: "${limit}"}}', "{bottleneck_que: {limit: 1}}"),
    ("unknown key of a queue over a path", '{limit: "${limit}"}', "{limt: 1}"),
    ("unknown key of defaults", "{repetitions: 2,", "{repetition: 2,"),
    ("unknown key of a probe", "sockets: 1 s", "socket: 1 s"),
    ("unknown key of a sweep", "derived:", "derive:"),
    ("missing title", "title: An example\n", ""),
    (
        "flow without a name",
        '{name: f1, from: client1, to: server, algorithm: "${algorithm}", w',
        "{algorithm: standard, w",
    ),
    ("experiment without an id", "  - id: first\n    path", "  - path"),
    ("unknown key of an experiment", "    probes: {s", "    artifacts: [fig-1]\n    probes: {s"),
    ("path without a kind", "{kind: dumbbell, ", "{"),
    ("unknown kind of a path", "kind: dumbbell", "kind: dumbell"),
    ("path without a rate", "dumbbell, rate: 1 Gbit/s", "dumbbell"),
    ("another format", "format: 2", "format: 1"),
    ("unknown stack", "stack: modern", "stack: modernn"),
    ("seed that is no number", "seed: 1", "seed: one"),
    ("seed below zero", "seed: 1", "seed: -1"),
    ("unknown congestion control", "{cca: reno}", "{cca: renno}"),
    ("unknown parameter", "a: 0.02", "aa: 0.02"),
    ("parameter out of range", "a: 0.02", "a: 2"),
    ("parameter that is no number", "a: 0.02", "a: much"),
    ("queue of nothing", "txqueuelen: 100", "txqueuelen: 0"),
    ("queue as a text", "txqueuelen: 100", 'txqueuelen: "100"'),
    ("unknown offload", "[gro]", "[groo]"),
    ("sysctl outside the network", "net.ipv4.tcp_sack: 1", "kernel.panic: 1"),
    ("list that is a text", "capture: [f1]", "capture: f1"),
    ("reference inside a text", '"${stack.streams}"', '"${stack.streams} of them"'),
    ("reference where none may stand", "duration: 10 s", 'duration: "${algorithm}"'),
    ("factor without values", "stack: [few]", "stack: []"),
    ("value twice", "stack: [few]", "stack: [few, few]"),
    ("factor with capitals", "stack: [few]}", "Stack: [few]}"),
    ("record without a name", "stack: [few]", "stack: [{streams: 2}]"),
    ("field that is no single value", "few: {streams: 2}", "few: {streams: [2]}"),
    ("exclusion without a reason", ", reason: too large", ""),
    ("exclusion of nothing", "{algorithm: scalable}, reason", "{}, reason"),
    ("capture that loses everything", "capture_loss: 5", "capture_loss: 100"),
    ("no web users", "users: 5", "users: 0"),
    ("unknown profile", "  quick:", "  quikc:"),
    ("profile that repeats nothing", "{keep: {algorithm: [standard]}, duration: 5 s}", "{repetitions: 0}"),
]
# What only `check` refuses: a schema knows one place at a time, and no arithmetic.
BEYOND_A_SCHEMA = [
    ("name of a path that is not there", "path: long", "path: lonng"),
    ("name of an algorithm that is not there", "[standard, scalable], stack", "[standard, scalabel], stack"),
    ("name of a factor that is not there", '"${stack.streams}"', '"${stak.streams}"'),
    ("field that a record lacks", '"${stack.streams}"', '"${stack.flows}"'),
    ("name of an earlier experiment that is not there", "like: first", "like: frst"),
    (
        "name of a host that is not there",
        'to: server, algorithm: "${algorithm}", w',
        "to: sever, algorithm: standard, w",
    ),
    ("bound of a quantity", "rate: 1 Gbit/s", "rate: 2 Tbit/s"),
    ("quantity that would be rounded", "rtt: 30 ms", "rtt: 0.5 us"),
    ("quantity that cannot be halved", "rtt: 30 ms", "rtt: 31 us"),
    ("parameter that would be rounded", "a: 0.02", "a: 0.0200001"),
    ("formula", "round(path.rate * path.rtt / packet)", "path.rate + path.rtt"),
    ("drop after the end", "at: 3 s", "at: 30 s"),
    ("factor that nothing refers to", "stack: [few]", "stack: [few], other: [1]"),
    ("name given twice", "id: second", "id: first"),
]


def outcomes(tmp_path: Path, old: str, new: str) -> tuple[bool, bool]:
    """Whether the loader, and whether the schema, accepts GOOD with a change."""
    assert old in GOOD
    path = tmp_path / "study.yaml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    try:
        load_study(path)
    except StudyError:
        return False, SCHEMA.is_valid(read_source(path).data)
    return True, SCHEMA.is_valid(read_source(path).data)


@pytest.mark.parametrize("path", sorted(ROOT.glob("experiments/*/study.yaml")), ids=lambda path: path.parent.name)
def test_the_schema_accepts_every_shipped_study(path: Path) -> None:
    assert [error.message for error in SCHEMA.iter_errors(read_source(path).data)] == []


def test_the_schema_accepts_the_study_whose_slips_follow(tmp_path: Path) -> None:
    assert outcomes(tmp_path, "format: 2", "format: 2") == (True, True)


@pytest.mark.parametrize(("old", "new"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_the_schema_refuses_what_the_loader_refuses(tmp_path: Path, old: str, new: str) -> None:
    assert outcomes(tmp_path, old, new) == (False, False)


@pytest.mark.parametrize(
    ("old", "new"), [case[1:] for case in BEYOND_A_SCHEMA], ids=[case[0] for case in BEYOND_A_SCHEMA]
)
def test_what_a_schema_cannot_say_the_loader_refuses(tmp_path: Path, old: str, new: str) -> None:
    assert outcomes(tmp_path, old, new) == (False, True)


def test_the_schema_is_plain_json_and_closed() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert schema["additionalProperties"] is False
    assert "format" in schema["required"]
    assert schema["$defs"]["Flow"]["required"] == ["name"]  # the others may stand in `defaults`


def test_the_schema_admits_a_reference_in_place_of_a_swept_value() -> None:
    definitions = json_schema()["$defs"]
    for name, key in (("Flow", "streams"), ("Delay", "rtt"), ("Hosts", "txqueuelen"), ("Drop", "at")):
        assert {"$ref": "#/$defs/Reference"} in definitions[name]["properties"][key]["anyOf"]
    assert "anyOf" not in definitions["Experiment"]["properties"]["id"]


def test_the_schema_words_defaults_as_a_manifest_does() -> None:
    definitions = json_schema()["$defs"]
    assert definitions["Direct"]["properties"]["rtt"]["default"] == "100 us"
    assert definitions["Dumbbell"]["properties"]["bottleneck_queue"]["default"] == {
        "kind": "pfifo",
        "limit": 100,
    }


def test_the_committed_reference_is_what_the_models_give() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_reference(page) == page
