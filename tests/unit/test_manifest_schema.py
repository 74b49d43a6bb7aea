# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas for editors, and the generated reference, follow the models."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import CLAIMS, FIGURES, write_study
from jsonschema import Draft202012Validator

from longfat.cli.check import check, schema_of
from longfat.cli.console import Output
from longfat.data.study_folder import StudyFolder
from longfat.metrics import METRICS
from longfat.study.load import load_study
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
    ("window: 1 MiB", "window: 1 s"),
    ("rtt: 30 ms", "rtt: -30 ms"),
    ("title:", "titel: x\ntitle:"),
    ("window: 1 MiB", "windw: 1 MiB"),
    ('{limit: "${limit}"}', "{limt: 1}"),
    ("{repetitions: 2,", "{repetition: 2,"),
    ("title: An example\n", ""),
    ("  - id: first\n    path", "  - path"),
    ("{kind: dumbbell, ", "{"),
    ("dumbbell, rate: 1 Gbit/s", "dumbbell"),
    ("{cca: reno}", "{cca: renno}"),
    ("a: 0.02", "a: 2"),
    ("txqueuelen: 100", 'txqueuelen: "100"'),
    ("net.ipv4.tcp_sack: 1", "kernel.panic: 1"),
    ("capture: [f1]", "capture: f1"),
    ('"${stack.streams}"', '"${stack.streams} of them"'),
    ("duration: 10 s", 'duration: "${algorithm}"'),
    ("stack: [few]", "stack: []"),
    ("stack: [few]", "stack: [{streams: 2}]"),
    ("capture_loss: 5", "capture_loss: 100"),
    ("  quick:", "  quikc:"),
]
# What only `check` refuses: a schema knows one place at a time, and no arithmetic.
BEYOND_A_SCHEMA = [
    ("path: long", "path: lonng"),
    ('"${stack.streams}"', '"${stack.flows}"'),
    ("rate: 1 Gbit/s", "rate: 2 Tbit/s"),
    ("rtt: 30 ms", "rtt: 31 us"),
    ("round(path.rate * path.rtt / packet)", "path.rate + path.rtt"),
    ("at: 3 s", "at: 30 s"),
    ("id: second", "id: first"),
]


def outcomes(tmp_path: Path, old: str, new: str) -> tuple[bool, bool]:
    """Return whether the loader and the schema accept GOOD with a change."""
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


@pytest.mark.parametrize(("changes", "by_schema"), [(REFUSED, True), (BEYOND_A_SCHEMA, False)], ids=["both", "loader"])
def test_the_schema_refuses_what_the_loader_refuses_as_far_as_it_can(
    tmp_path: Path, changes: list[tuple[str, str]], by_schema: bool
) -> None:
    assert outcomes(tmp_path, "format: 2", "format: 2") == (True, True)
    found = {change: outcomes(tmp_path, *change) for change in changes}
    assert found == dict.fromkeys(changes, (False, not by_schema))


SCHEMAS = {"claims": Draft202012Validator(schema_of("claims")), "figures": Draft202012Validator(schema_of("figures"))}
TEXTS = {"claims": CLAIMS, "figures": FIGURES}
SHIPPED = sorted(path for name in SCHEMAS for path in (ROOT / "experiments").glob(f"*/{name}.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_shipped_file_is_accepted(path: Path) -> None:
    assert list(SCHEMAS[path.stem].iter_errors(read_source(path).data)) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "by_schema"),
    [
        ("claims", "format: 2", "format: 3", True),
        ("claims", "claims:", "claim:", True),
        ("claims", "    statement: A drop halves the window.\n", "", True),
        ("claims", "statement: A drop", "statment: A drop", True),
        ("claims", "artifact: fig-2", "artifact: [fig-2]", True),
        ("claims", "paper: {value: 0.5, where: figure 2}", "paper: figure 2", True),
        ("claims", "relation: drop_ratio[one-drop, at=1500 ms] = 0.5", "relation: []", True),
        ("figures", "bars: fig-1", "bar: fig-1", True),
        ("figures", "    title: goodput\n", "", True),
        ("figures", "series: algorithm", "serie: algorithm", True),
        ("figures", "value: 940,", "value: much,", True),
        ("figures", "runs: one-drop", "runs: one-drop\n    what: speed", True),
        ("claims", "drop_ratio[one-drop", "drop_ratoi[one-drop", False),
        ("claims", "at=1500 ms", "at=1500", False),
        ("claims", "id: halves", "id: window-limits", False),
        ("figures", "x: window in MiB", "x: window in MIB", False),
        ("figures", "timeseries: fig-2", "timeseries: fig-1", False),
    ],
)
def test_the_schema_refuses_what_check_refuses_as_far_as_it_can(
    tmp_path: Path, file: str, old: str, new: str, by_schema: bool
) -> None:
    assert old in TEXTS[file]
    study = write_study(tmp_path, **{file: TEXTS[file].replace(old, new, 1)})
    with pytest.raises(StudyError):
        _ = StudyFolder(study).claims if file == "claims" else StudyFolder(study).figures
    assert SCHEMAS[file].is_valid(read_source(study / f"{file}.yaml").data) is not by_schema


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ("dumbbell, rate", "dumbel, reverse_rate: 1Gbps, rate", {"kind": "dumbbell", "reverse_rate": "Mbit/s"}),
        ("{limit: 100}", "{kind: pie, limit: 100, interval: 1 s}", {"interval": "tupdate"}),
        ("{limit: 100}", "{kind: sqf, limit: 5 apples}", {"kind": "sfq", "limit": "packets"}),
        ("{limit: 100}", "{kind: red, limit: 100, min: 5 ms, ecn: true}", {"min": "", "max": "", "probability": ""}),
        ("rtt: 30 ms, senders: 1", "rtt: 30 ms, sendres: 1", {"sendres": "bottleneck_queue", "senders": ""}),
        ("rtt: 30 ms", "rtt: 30 ms, loss: {enter: 1 %, leaves: 2 %}", {"leave": "", "leaves": "in_burst"}),
        ("{duration: 10 s}", "{duration: 10 s, start_jiter: 1 ms}", {"start_jiter": "start_jitter"}),
    ],
)
def test_errors_are_of_the_kind_that_is_given_or_meant(
    tmp_path: Path, old: str, new: str, keys: dict[str, str]
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        load_study(path)
    found = {one.key.rpartition(".")[2]: f"{one.message} {one.hint}" for one in caught.value.problems}
    assert len(caught.value.problems) == len(found)
    assert {key for key, word in keys.items() if word in found.get(key, ())} == keys.keys() == found.keys()
    by_schema = [*SCHEMA.iter_errors(read_source(path).data)]
    assert by_schema and not any("valid under any" in error.message for error in by_schema)


def test_the_keys_of_a_figure_are_those_of_its_kind(tmp_path: Path) -> None:
    study = write_study(tmp_path, figures=FIGURES.replace("series: algorithm", "serie: algorithm", 1))
    with pytest.raises(StudyError) as caught:
        _ = StudyFolder(study).figures
    (problem,) = caught.value.problems
    assert problem.key.endswith(".serie")
    assert "bars" in problem.message and "cells" not in problem.message


def test_the_tables_of_all_keys_have_every_model_and_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(Output(), keys=True)
    tables = capsys.readouterr().out
    for title in ("hosts.per_host.NAME", "topology.bottleneck_queue: cake", "requests[]", "profiles.NAME"):
        assert f"\n## `{title}`\n" in tables
    assert all(f"\n| `{name}` | " in tables for name, metric in METRICS.items() if metric.shipped)
