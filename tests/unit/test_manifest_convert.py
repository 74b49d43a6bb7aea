# SPDX-License-Identifier: Apache-2.0
"""Conversion from format 1: runs stay the same, repetitions are hoisted, comments stay; claims and figures follow."""

import json
from pathlib import Path

import pytest
from study_identities import COMMITTED, STUDIES, study_identities
from typer.testing import CliRunner

from longfat.cli import app
from longfat.manifest.load import load_study

FORMAT_1 = """\
# What the study is about.
format: 1
study: old
title: An old study
stack: linux-2.4

algorithms:
  reno: {cca: reno}
  p-tcp: {cca: reno}

# Settings of the hosts.
hosts: {mtu: 1500 B}

experiments:
  # One flow.
  - id: one
    artifacts: [fig-1]
    # The network.
    topology:
      kind: dumbbell
      rate: 100 Mbit/s
      rtt: 10 ms
      senders: 1
      bottleneck_queue: {limit: 50}
    hosts: {txqueuelen: "${txqueuelen}"}
    flows:
      - name: f
        from: client1
        to: server
        algorithm: "${stack}"
        window: "${window}"
        # As iperf has it.
        streams: "${streams}"
        duration: 9 s
        start_jitter: 1 ms
    sweep:
      product: {window: [64 KiB, 1 MiB]}
      zip:
        stack: [reno, p-tcp]
        streams: [1, 16]
        txqueuelen: [100, 2000]
    probes: {sockets: 1 s, queues: 1 s}
    repetitions: 2

  # The same, dropped on.
  - id: dropped
    pairs_with: one
    artifacts: [fig-2]
    topology:
      kind: dumbbell
      rate: 100 Mbit/s
      rtt: 10 ms
      senders: 1
      bottleneck_queue: {limit: 50}
    hosts: {txqueuelen: "${txqueuelen}"}
    flows:
      - name: f
        from: client1
        to: server
        algorithm: "${stack}"
        window: "${window}"
        streams: "${streams}"
        duration: 9 s
        start_jitter: 1 ms
    drops: [{at: 3 s}]
    sweep:
      product: {window: [64 KiB, 1 MiB]}
      zip:
        stack: [reno, p-tcp]
        streams: [1, 16]
        txqueuelen: [100, 2000]
    probes: {sockets: 1 s, queues: 1 s}
    repetitions: 2

# Thinned.
profiles:
  smoke: {keep: {stack: [reno]}}
"""

FORMAT_2 = """\
# What the study is about.
format: 2
study: old
title: An old study
stack: linux-2.4

algorithms:
  reno: {cca: reno}
  p-tcp: {cca: reno}

# Settings of the hosts.
hosts: {mtu: 1500 B}

paths:
  100m-10ms: {kind: dumbbell, rate: 100 Mbit/s, rtt: 10 ms, senders: 1, bottleneck_queue: {limit: 50}}

stacks:
  reno: {streams: 1, txqueuelen: 100}
  p-tcp: {streams: 16, txqueuelen: 2000}

defaults:
  repetitions: 2
  flow: {from: client1, to: server, duration: 9 s, start_jitter: 1 ms}
  probes: {sockets: 1 s, queues: 1 s}

experiments:
  # One flow.
  # The network.
  - id: one
    path: 100m-10ms
    hosts: {txqueuelen: "${stack.txqueuelen}"}
    flows:
      - name: f
        algorithm: "${stack}"
        window: "${window}"
        # As iperf has it.
        streams: "${stack.streams}"
    sweep: {product: {window: [64 KiB, 1 MiB], stack: [reno, p-tcp]}}

  # The same, dropped on.
  - id: dropped
    like: one
    pairs_with: one
    drops: [{at: 3 s}]

# Thinned.
profiles:
  smoke: {keep: {stack: [reno]}}
"""


def write(folder: Path, text: str, **others: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    for name, content in others.items():
        (folder / f"{name}.yaml").write_text(content, encoding="utf-8")
    return folder


def convert(folder: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["convert", str(folder), *options])
    return result.exit_code, result.output


def test_a_study_becomes_paths_stacks_defaults_and_like_with_its_comments(tmp_path: Path) -> None:
    folder = write(tmp_path / "old", FORMAT_1)
    status, output = convert(folder)
    assert status == 0, output
    assert "77 lines become 48; the runs of all 8 points are the same" in output.replace("\n", "")
    assert (folder / "study.yaml").read_text(encoding="utf-8") == FORMAT_2


def test_the_new_study_can_go_to_another_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "old", FORMAT_1)
    result = CliRunner().invoke(app, ["convert", str(folder), "--to", str(tmp_path / "new"), "--json"])
    assert json.loads(result.stdout)["written"] == [str(tmp_path / "new" / "study.yaml")]
    assert (folder / "study.yaml").read_text(encoding="utf-8") == FORMAT_1
    assert load_study(tmp_path / "new" / "study.yaml").name == "old"


def test_a_factor_that_claims_or_figures_name_stays_a_factor(tmp_path: Path) -> None:
    claims = "claims: [{of: {experiment: one, where: {txqueuelen: 100}}, by: window}]"
    folder = write(tmp_path / "old", FORMAT_1, claims=claims)
    assert convert(folder)[0] == 0
    one, dropped = load_study(folder / "study.yaml").experiments
    assert list(one.factors) == ["window", "stack", "txqueuelen"]
    assert list(dropped.factors) == ["window", "stack"]


def test_a_list_that_does_not_follow_from_the_named_one_stays_a_factor(tmp_path: Path) -> None:
    text = FORMAT_1.replace("stack: [reno, p-tcp]", "stack: [reno, reno]")
    folder = write(tmp_path / "old", text)
    assert convert(folder)[0] == 0
    assert list(load_study(folder / "study.yaml").experiments[0].factors) == [
        "window",
        "stack",
        "streams",
        "txqueuelen",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FORMAT_2, "there is no study of format 1"),
        (FORMAT_1.replace("rtt: 10 ms", "rtt: 10"), "experiments[0].topology.rtt: 10 has no unit"),
        ("- a", "there is no study of format 1"),
    ],
)
def test_what_is_no_sound_study_of_format_1_is_refused_and_kept(tmp_path: Path, text: str, message: str) -> None:
    folder = write(tmp_path / "old", text)
    status, output = convert(folder)
    assert status == 2
    assert message in output
    assert (folder / "study.yaml").read_text(encoding="utf-8") == text


CLAIMS_1 = """\
format: 1
study: old
claims:
  - id: more-streams
    kind: ratio
    statement: Parallel streams carry more.
    paper: {value: more, where: figure 1}
    test:
      kind: ratio
      of: {metric: goodput, experiment: one, where: {streams: 16}}
      to: {metric: goodput, experiment: one, where: {streams: 1}}
      above: 1
"""
CLAIMS_2 = """\
format: 2
study: old
claims:
  - id: more-streams
    statement: Parallel streams carry more.
    paper: {value: more, where: figure 1}
    relation: goodput[streams=16] / goodput[streams=1] > 1 in one
"""
FIGURES_1 = """\
format: 1
study: old
figures:
  - {artifact: fig-1, kind: topology, title: the path, experiment: one, paper: {text: One bottleneck.}}
"""
FIGURES_2 = """\
format: 2
study: old
figures:
  - topology: fig-1
    title: the path
    experiment: one
    paper: One bottleneck.
"""


def texts(folder: Path) -> list[str]:
    return [(folder / f"{name}.yaml").read_text(encoding="utf-8") for name in ("study", "claims", "figures")]


@pytest.mark.parametrize("options", [(), ("--to", "new")])
def test_claims_and_figures_are_converted_with_their_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write(tmp_path / "old", FORMAT_1, claims=CLAIMS_1, figures=FIGURES_1)
    status, output = convert(folder, *options)
    assert status == 0, output
    study, claims, figures = texts(tmp_path / (options[-1] if options else "old"))
    assert "streams: [1, 16]" in study
    assert (claims, figures) == (CLAIMS_2, FIGURES_2)


def test_what_is_left_of_format_1_beside_a_converted_study_is_converted(tmp_path: Path) -> None:
    claims = CLAIMS_1.replace("streams: 16", "stack: p-tcp").replace("streams: 1}", "stack: reno}")
    folder = write(tmp_path / "old", FORMAT_2, claims=claims, figures=FIGURES_2)
    status, output = convert(folder)
    assert status == 0, output
    assert texts(folder) == [FORMAT_2, CLAIMS_2.replace("streams=16", "p-tcp").replace("streams=1", "reno"), FIGURES_2]


def test_nothing_is_written_unless_all_of_it_is_right(tmp_path: Path) -> None:
    before = [FORMAT_2, CLAIMS_1, FIGURES_1.replace("experiment: one", "experiment: none")]
    folder = write(tmp_path / "old", before[0], claims=before[1], figures=before[2])
    status, output = convert(folder)
    assert status == 2
    said = " ".join(output.split())
    assert "nothing is converted: 3 problems" in said
    assert "claim 'more-streams': 'streams' is no factor of 'one' in the converted study; factors there:" in said
    assert "figure 'fig-1': unknown experiment 'none'" in said
    assert texts(folder) == before


@pytest.mark.parametrize("name", STUDIES)
def test_the_shipped_studies_have_the_runs_that_are_committed(name: str) -> None:
    """Where a change is meant, ``python tests/unit/study_identities.py`` renews them."""
    assert study_identities(name) == json.loads(COMMITTED.read_text(encoding="utf-8"))[name]
