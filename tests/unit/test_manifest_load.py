# SPDX-License-Identifier: Apache-2.0
"""Loading of a study: its values, the places of its problems, and names that lead to no path and no shell."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fabricated_results import MANIFEST, write_study
from manifests import keys_of, problems_of, study_of

from longfat.spec.units import Size
from longfat.study.load import load_study
from longfat.study.schema.source import MAX_BYTES, read_source
from longfat.system.errors import StudyError

GOOD = """\
format: 2
study: example
title: An example
algorithms:
  standard: {cca: reno}
  scalable: {cca: scalable, a: 0.02}
hosts: {mtu: 9000 B, txqueuelen: 100, sysctls: {net.ipv4.tcp_sack: 1}}
experiments:
  # One flow beside another.
  - id: first
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    hosts: {mtu: 1500 B}
    flows:
      - {name: f1, from: client1, to: server, algorithm: "${algorithm}", window: "${window}", duration: 10 s}
    sweep:
      product: {algorithm: [standard, scalable], window: [512 KiB, 1 MiB]}
    repetitions: 2
    probes: {capture: [f1]}
    drops: [{at: 3 s}]
profiles:
  quick: {keep: {window: [1 MiB]}}
  smoke: {repetitions: 1, experiments: {first: {duration: 4 s}}}
"""


def test_a_study_has_the_points_of_its_sweep(tmp_path: Path) -> None:
    (experiment,) = study_of(tmp_path, GOOD).experiments
    assert [tuple(point.factors.values()) for point in experiment.points] == [
        *(("standard", 524288), ("standard", 1048576), ("scalable", 524288), ("scalable", 1048576))
    ]
    assert experiment.points[0].experiment.flows[0].window == Size(524288)
    assert experiment.points[0].labels == {"algorithm": "standard", "window": "512 KiB"}


def test_a_zip_goes_side_by_side_and_one_that_nothing_refers_to_names_its_rows(tmp_path: Path) -> None:
    (experiment,) = study_of(
        tmp_path,
        GOOD,
        ("    repetitions:", "      zip: {name: [small, large], q: [5, 6]}\n    repetitions:"),
        ("hosts: {mtu: 1500 B}", 'hosts: {mtu: 1500 B, txqueuelen: "${q}"}'),
    ).experiments
    rows = {(point.factors["name"], point.factors["q"]) for point in experiment.points}
    assert rows == {("small", 5), ("large", 6)}


# Each case: what is replaced in GOOD, by what, then line and key of the problem.
# fmt: off
CASES = [
    ("title:", "titel: x\ntitle:", 3, "titel"),
    ("duration: 10 s}", "duration: 10 s, windw: 1 B}", 14, "experiments[0].flows[0].windw"),
    ("title: An example\n", "", 1, "title"),
    ("study: example", "study: example\nstudy: b", 2, "study"),
    ("rtt: 30 ms", "rtt: 30", 11, "experiments[0].topology.rtt"),
    ("[512 KiB, 1 MiB]", "[0 B, 1 MiB]", 16, "experiments[0].sweep.product.window[0]"),
    ("rate: 1 Gbit/s", "rate: 0 bit/s", 11, "experiments[0].topology.rate"),
    ("rtt: 30 ms", "rtt: -30 ms", 11, "experiments[0].topology.rtt"),
    ("rtt: 30 ms", "rtt: 0.5 us", 11, "experiments[0].topology.rtt"),
    ("rtt: 30 ms", "rtt: 31 us", 11, "experiments[0].topology.rtt"),
    ("txqueuelen: 100", "txqueuelen: 0", 7, "hosts.txqueuelen"),
    ("txqueuelen: 100", 'txqueuelen: "9"', 7, "hosts.txqueuelen"),
    ("net.ipv4.tcp_sack: 1", "kernel.panic: 1", 7, "hosts.sysctls.kernel.panic"),
    ("net.ipv4.tcp_sack: 1", "net.ipv4.tcp_scalable.a_ppm: 1", 7, "hosts.sysctls.net.ipv4.tcp_scalable.a_ppm"),
    ("net.ipv4.tcp_sack: 1", "net.ipv4.tcp_cc_info: 0", 7, "hosts.sysctls.net.ipv4.tcp_cc_info"),
    ("net.ipv4.tcp_sack: 1", "net.ipv4.tcp_sack: true", 7, "hosts.sysctls.net.ipv4.tcp_sack"),
    ("{cca: reno}", "{cca: renno}", 5, "algorithms.standard.cca"),
    ("{cca: reno}", "{cca: scalable, aa: 1}", 5, "algorithms.standard.aa"),
    ("a: 0.02", "a: 2", 6, "algorithms.scalable.a"),
    ("study: example", "stack: linux-2.5\nstudy: example", 2, "stack"),
    ("txqueuelen: 100", "offloads: [tsoo]", 7, "hosts.offloads[0]"),
    ("kind: delay", "kind: dely", 11, "experiments[0].topology.kind"),
    ("to: server", "to: sever", 14, "experiments[0].flows[0].to"),
    ("to: server", "to: client1", 14, "experiments[0].flows[0].to"),
    ("[standard, scalable]", "[standard, scalable, standrad]", 16, "experiments[0].sweep.product.algorithm[2]"),
    ('"${window}"', '"${windw}"', 14, "experiments[0].flows[0].window"),
    ('"${window}"', "1 MiB", 16, "experiments[0].sweep.product.window"),
    ('"${window}"', '"${window} B"', 14, "experiments[0].flows[0].window"),
    ("[512 KiB, 1 MiB]", "[]", 16, "experiments[0].sweep.product.window"),
    ("[512 KiB, 1 MiB]", "[512 KiB, 1 MiB, 1024 KiB]", 16, "experiments[0].sweep.product.window[2]"),
    ("    repetitions:", "      zip: {p: [1, 2], q: [1]}\n    repetitions:", 17, "experiments[0].sweep.zip"),
    ("capture: [f1]", "capture: [f1], capture_loss: 100", 18, "experiments[0].probes.capture_loss"),
    ("at: 3 s", "at: 10 s", 19, "experiments[0].drops[0].at"),
    ("kind: delay", "kind: direct", 19, "experiments[0].drops"),
    ("{first: {", "{frist: {", 22, "profiles.smoke.experiments.frist"),
    ("duration: 4 s", "duration: 2 s", 22, "profiles.smoke.duration"),
    ("  quick:", "  quikc:", 21, "profiles.quikc"),
    ("capture: [f1]", "capture: f1", 18, "experiments[0].probes.capture"),
    ("format: 2", "format: 3", 1, "format"),
]
# fmt: on


@pytest.mark.parametrize(("old", "new", "line", "key"), CASES)
def test_a_fault_is_reported_with_line_and_key(tmp_path: Path, old: str, new: str, line: int, key: str) -> None:
    found = problems_of(tmp_path, GOOD, (old, new))
    assert (str(tmp_path / "study.yaml"), line, key) in [(one.file, one.line, one.key) for one in found]


def test_the_message_of_a_problem_is_one_line_with_place_and_remedy(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, GOOD, ("to: server", "to: sever"))
    assert str(problem) == (
        f"{tmp_path}/study.yaml:14: experiments[0].flows[0].to: unknown node 'sever'; "
        "allowed: client1, server (did you mean 'server'?)"
    )


def test_all_problems_are_reported_at_once_and_in_the_order_of_the_file(tmp_path: Path) -> None:
    second = "  - id: first\n    topology: {kind: direct, rate: 1 Gbit/s}\n    flows:\n"
    flow = "      - {name: f1, from: client1, to: server, algorithm: scalable, duration: 1 s}\n"
    changes = {
        "titel": ("title:", "titel: x\ntitle:"),
        "algorithms.standard.cca": ("{cca: reno}", "{cca: renno}"),
        "hosts.mtu": ("mtu: 9000 B", "mtu: 9000"),
        "experiments[0].topology.rate": ("rate: 1 Gbit/s", "rate: 0 bit/s"),
        "experiments[0].flows[0].to": ("to: server", "to: sever"),
        "experiments[0].sweep.product.window[2]": ("[512 KiB, 1 MiB]", "[512 KiB, 1 MiB, 0 B]"),
        "experiments[0].probes.capture[0]": ("capture: [f1]", "capture: [f2]"),
        "profiles.smoke.experiments.frist": ("{first: {", "{frist: {"),
    }
    assert keys_of(tmp_path, GOOD, *changes.values()) == list(changes)
    twice = keys_of(tmp_path, GOOD, ("profiles:", f"{second}{flow * 2}profiles:"))
    assert {"experiments[1].id", "experiments[1].flows[1].name"} <= set(twice)


def test_two_flows_of_one_host_cannot_have_different_parameters(tmp_path: Path) -> None:
    line = "      - {name: f2, from: client1, to: server, algorithm: {cca: scalable, a: 0.5}, duration: 1 s}\n"
    found = keys_of(tmp_path, GOOD, ("    sweep:", f"{line}    sweep:"))
    assert found == ["experiments[0].flows[1].algorithm"]


def test_an_effective_window_of_odd_size_is_refused_and_a_requested_one_is_not(tmp_path: Path) -> None:
    odd = ("[512 KiB, 1 MiB]", "[512 KiB, 1 MiB, 99999 B]")
    assert keys_of(tmp_path, GOOD, odd) == ["experiments[0].sweep.product.window[2]"]
    assert study_of(tmp_path, GOOD, odd, ("txqueuelen: 100", "window_meaning: requested")).name == "example"


@pytest.mark.parametrize(
    "content",
    [
        *(b"a: [1", b"a: &x 1\nb: *x\n", b"a: !!python/object:os.system x", b"a: !!binary aGk=", b"a: 1\n---\nb: 1\n"),
        *(b"\0", b"[" * 5000, b"", b"- a", b"format: \xff\xfe", None),
    ],
)
def test_a_file_that_is_not_such_yaml_is_a_study_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "study.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StudyError) as caught:
        load_study(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("line", ["key{}: 1\n", "a{}: [1, 2, 3, 4]\n"])
def test_the_longest_file_that_is_read_takes_less_than_2_s_of_cpu(tmp_path: Path, line: str) -> None:
    path = tmp_path / "study.yaml"
    text = "".join(line.format(number) for number in range(MAX_BYTES // len(line)))
    path.write_text(text[: text.rindex("\n", 0, MAX_BYTES)])
    start = time.process_time()
    source = read_source(path)
    assert time.process_time() - start < 2
    assert len(source.data) > 10_000


def test_only_true_and_false_are_truth_values(tmp_path: Path) -> None:
    """YAML 1.1 would read ``no`` as false and 1:30 as a number."""
    study = study_of(tmp_path, GOOD, ("title: An example", "title: no"), ("tcp_sack: 1", "tcp_sack: 1:30"))
    assert study.header.title == "no"
    assert study.header.hosts.sysctls["net.ipv4.tcp_sack"] == "1:30"


@pytest.mark.parametrize(
    "name", ["../up", "/etc", "a b", "$(id)", "a;id", "a|b", "a`id`", "a'b", 'a"b', "-rf", "a\\nb"]
)
@pytest.mark.parametrize(
    ("of", "was"),
    [
        ("study: small", "small"),
        ("name: stream1", "stream1"),
        ("id: delay", "delay"),
        ("from: client1", "client1"),
        ("standard: {cca", "standard"),
        ("cca: reno", "reno"),
    ],
)
def test_no_name_leads_to_a_path_or_a_shell(tmp_path: Path, of: str, was: str, name: str) -> None:
    quoted = "'" + name.replace("'", "''") + "'"
    assert of in MANIFEST
    study = write_study(tmp_path)
    (study / "study.yaml").write_text(MANIFEST.replace(of, of.replace(was, quoted), 1), encoding="utf-8")
    with pytest.raises(StudyError):
        load_study(study / "study.yaml")
