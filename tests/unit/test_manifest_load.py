# SPDX-License-Identifier: Apache-2.0
"""Loading of a study: its values, the places of its problems, names that lead to no path or shell; exact sysctls."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from manifests import keys_of, problems_of, study_of

from longfat.study.catalog.ccas import CCAS
from longfat.study.load import load_study
from longfat.study.schema.source import MAX_BYTES, read_source
from longfat.study.traffic.algorithm import Algorithm
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


SECOND = "- {name: f2, from: client1, to: server, algorithm: {cca: scalable, a: 0.5}, duration: 1 s}\n"
# Each case: what is replaced in GOOD, by what, then line and key of the problem.
# fmt: off
CASES = [
    ("title:", "titel: x\ntitle:", 3, "titel"),
    ("duration: 10 s}", "duration: 10 s, windw: 1 B}", 14, "experiments[0].flows[0].windw"),
    ("title: An example\n", "", 1, "title"),
    ("rtt: 30 ms", "rtt: 30", 11, "experiments[0].topology.rtt"),
    ("rtt: 30 ms", "rtt: -30 ms", 11, "experiments[0].topology.rtt"),
    ("txqueuelen: 100", "<<: x", 7, "hosts.<<"),
    ("txqueuelen: 100", "txqueuelen: 0", 7, "hosts.txqueuelen"),
    ("txqueuelen: 100", 'txqueuelen: "9"', 7, "hosts.txqueuelen"),
    ("net.ipv4.tcp_sack: 1", "kernel.panic: 1", 7, "hosts.sysctls.kernel.panic"),
    ("net.ipv4.tcp_sack: 1", "net.ipv4.tcp_sack: true", 7, "hosts.sysctls.net.ipv4.tcp_sack"),
    ("{cca: reno}", "{cca: renno}", 5, "algorithms.standard.cca"),
    ("{cca: reno}", "{cca: reno, a: 0}", 5, "algorithms.standard.a"),
    ("{cca: reno}", "{cca: highspeed, hi_window: 9}", 5, "algorithms.standard.hi_window"),
    ("{cca: reno}", "{cca: highspeed, high_window: 2000001}", 5, "algorithms.standard.high_window"),
    ("{cca: reno}", "{cca: highspeed, high_p: 1e-10}", 5, "algorithms.standard.high_p"),
    ("{cca: reno}", "{cca: fast, alpha: many}", 5, "algorithms.standard.alpha"),
    ("{cca: reno}", "{cca: fast, alpha: true}", 5, "algorithms.standard.alpha"),
    ("{cca: reno}", "{cca: fast, alpha: [1]}", 5, "algorithms.standard.alpha"),
    ("{cca: reno}", "{cca: compound, burst: mutd}", 5, "algorithms.standard.burst"),
    ("{cca: reno}", "{cca: compound, burst: 1}", 5, "algorithms.standard.burst"),
    ("{cca: reno}", "{cca: reno, local_congestion: quarter}", 5, "algorithms.standard.local_congestion"),
    ("a: 0.02", "a: 2", 6, "algorithms.scalable.a"),
    ("study: example", "stack: linux-2.5\nstudy: example", 2, "stack"),
    ("txqueuelen: 100", "offloads: [tsoo]", 7, "hosts.offloads[0]"),
    ("kind: delay", "kind: dely", 11, "experiments[0].topology.kind"),
    ('"${window}"', '"${window} B"', 14, "experiments[0].flows[0].window"),
    ("[512 KiB, 1 MiB]", "[]", 16, "experiments[0].sweep.product.window"),
    ("capture: [f1]", "capture: [f1], capture_loss: 100", 18, "experiments[0].probes.capture_loss"),
    ("  quick:", "  quikc:", 21, "profiles.quikc"),
    ("capture: [f1]", "capture: f1", 18, "experiments[0].probes.capture"),
    ("format: 2", "format: 3", 1, "format"),
    ("study: example", "study: example\nunknowns: {u: {what: x, default: 8, between: [8], source: s}}", 3,
     "unknowns.u.between"),
    ("{mtu: 1500 B}", "{per_host: {client1: {mtu: 9000 B}}}", 12, "experiments[0].hosts.per_host.client1.mtu"),
    ("txqueuelen: 100", "per_host: {client1: {sysctls: {kernel.panic: 5}}}", 7,
     "hosts.per_host.client1.sysctls.kernel.panic"),
]
# Faults that a schema, which sees one place at a time and no arithmetic, cannot find.
BEYOND_A_SCHEMA = [
    ("study: example", "study: example\nstudy: b", 2, "study"),
    ("[512 KiB, 1 MiB]", "[512 KiB, 1.5.5 MiB, 1.5.5 MiB]", 16, "experiments[0].sweep.product.window[2]"),
    ("study: example", "study: example\nbackends: [virtual, ns3, virtual]", 3, "backends"),
    ("    repetitions:", "      zip: {p: [8000, 8 kB], q: [1, 2]}\n    repetitions:", 17,
     "experiments[0].sweep.zip.p[1]"),
    ("[512 KiB, 1 MiB]", "[0 B, 1 MiB]", 16, "experiments[0].sweep.product.window[0]"),
    ("rate: 1 Gbit/s", "rate: 0 bit/s", 11, "experiments[0].topology.rate"),
    ("rtt: 30 ms", "rtt: 0.5 us", 11, "experiments[0].topology.rtt"),
    ("rtt: 30 ms", "rtt: 31 us", 11, "experiments[0].topology.rtt"),
    ("net.ipv4.tcp_sack: 1", "net.ipv4.tcp_scalable.a_ppm: 1", 7, "hosts.sysctls.net.ipv4.tcp_scalable.a_ppm"),
    ("net.ipv4.tcp_sack: 1", "net.ipv4.tcp_cc_info: 0", 7, "hosts.sysctls.net.ipv4.tcp_cc_info"),
    ("{cca: reno}", "{cca: highspeed, high_window: 8.0001}", 5, "algorithms.standard.high_window"),
    ("{cca: reno}", "{cca: fast, alpha: 20.5}", 5, "algorithms.standard.alpha"),
    ("to: server", "to: sever", 14, "experiments[0].flows[0].to"),
    ("to: server", "to: client1", 14, "experiments[0].flows[0].to"),
    ("[standard, scalable]", "[standard, scalable, standrad]", 16, "experiments[0].sweep.product.algorithm[2]"),
    ('"${window}"', '"${windw}"', 14, "experiments[0].flows[0].window"),
    ('"${window}"', "1 MiB", 16, "experiments[0].sweep.product.window"),
    ("[512 KiB, 1 MiB]", "[512 KiB, 1 MiB, 99999 B]", 16, "experiments[0].sweep.product.window[2]"),
    ("profiles:", "  - {id: first, topology: {kind: direct, rate: 1 Gbit/s}}\nprofiles:", 20, "experiments[1].id"),
    ("    sweep:", f"      {SECOND.replace('f2', 'f1')}    sweep:", 15, "experiments[0].flows[1].name"),
    ("    sweep:", f"      {SECOND}    sweep:", 15, "experiments[0].flows[1].algorithm"),
    ("[512 KiB, 1 MiB]", "[512 KiB, 1 MiB, 1024 KiB]", 16, "experiments[0].sweep.product.window[2]"),
    ("    repetitions:", "      zip: {p: [1, 2], q: [1]}\n    repetitions:", 17, "experiments[0].sweep.zip"),
    ("at: 3 s", "at: 10 s", 19, "experiments[0].drops[0].at"),
    ("kind: delay", "kind: direct", 19, "experiments[0].drops"),
    ("{first: {", "{frist: {", 22, "profiles.smoke.experiments.frist"),
    ("{mtu: 1500 B}", "{per_host: {client9: {txqueuelen: 5}}}", 12, "experiments[0].hosts.per_host.client9"),
    ("{mtu: 1500 B}", "{per_host: {delay: {txqueuelen: 5}}}", 12, "experiments[0].hosts.per_host.delay"),
    ("txqueuelen: 100", "per_host: {sender: {txqueuelen: 5}}", 7, "hosts.per_host.sender"),
    ("txqueuelen: 100", "per_host: {client1: {sysctls: {net.core.wmem_max: 5}}}", 7,
     "hosts.per_host.client1.sysctls.net.core.wmem_max"),
    ("duration: 4 s", "duration: 2 s", 22, "profiles.smoke.duration"),
    ("rtt: 30 ms", "rtt: 30 ms, changes: [{at: 5 s, rtt: 8 ms}]", 22, "profiles.smoke.duration"),
]
# fmt: on


@pytest.mark.parametrize(("old", "new", "line", "key"), [*CASES, *BEYOND_A_SCHEMA])
def test_a_fault_is_reported_with_line_and_key(tmp_path: Path, old: str, new: str, line: int, key: str) -> None:
    found = problems_of(tmp_path, GOOD, (old, new))
    assert (str(tmp_path / "study.yaml"), line, key) in [(one.file, one.line, one.key) for one in found]


def test_all_problems_are_reported_at_once_and_in_the_order_of_the_file(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        ("{cca: scalable, a: 0.01, b: 0.125, lwnd: 16}", {"a": 0.01, "b": 0.125, "lwnd": 16}),
        ("{cca: highspeed, high_window: 8.3, high_p: 1e-7}", {"high_window": 8.3, "high_p": 1e-7}),
        ("{cca: fast, alpha: 20, gamma: 1}", {"alpha": 20, "gamma": 1}),
        ("{cca: compound, burst: muted, autotune: off}", {"burst": "muted", "autotune": "off"}),
    ],
)
def test_parameters_are_numbers_and_words(tmp_path: Path, given: str, parameters: dict[str, float | str]) -> None:
    assert study_of(tmp_path, GOOD, ("{cca: reno}", given)).algorithm("standard").parameters == parameters


def test_a_parameter_may_be_a_word_of_the_sweep(tmp_path: Path) -> None:
    used = ('"${algorithm}"', '{cca: compound, burst: "${burst}"}')
    swept = ("algorithm: [standard, scalable]", "burst: [plain, muted]")
    (experiment,) = study_of(tmp_path, GOOD, used, swept).experiments
    algorithms = [point.experiment.flows[0].algorithm for point in experiment.points[::2]]
    assert [a.parameters for a in algorithms if isinstance(a, Algorithm)] == [{"burst": "plain"}, {"burst": "muted"}]
    (loud,) = problems_of(tmp_path, GOOD, used, swept, ("muted", "loud"))
    assert (loud.line, loud.key) == (16, "experiments[0].sweep.product.burst[1]")


def test_the_reaction_to_a_full_local_queue_is_a_parameter_of_every_algorithm(tmp_path: Path) -> None:
    study = study_of(tmp_path, GOOD, ("a: 0.02", "local_congestion: half"))
    sysctl = "net.ipv4.tcp_local_congestion"
    assert study.algorithm("scalable").sysctls[sysctl] == "1"
    assert sysctl not in study.algorithm("standard").sysctls


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
        ("study: example", "example"),
        ("name: f1", "f1"),
        ("id: first", "first"),
        ("from: client1", "client1"),
        ("standard: {cca", "standard"),
        ("cca: reno", "reno"),
    ],
)
def test_no_name_leads_to_a_path_or_a_shell(tmp_path: Path, of: str, was: str, name: str) -> None:
    quoted = "'" + name.replace("'", "''") + "'"
    assert keys_of(tmp_path, GOOD, (of, of.replace(was, quoted)))


def test_each_unit_of_highspeed_keeps_its_last_digit() -> None:
    given = {"low_window": 8, "high_window": 8.3, "high_p": 1e-7, "high_decrease": 0.1}
    assert list(CCAS["highspeed"].sysctls(given).items()) == [
        ("net.ipv4.tcp_highspeed.low_window", "8"),
        ("net.ipv4.tcp_highspeed.high_window_milli", "8300"),
        ("net.ipv4.tcp_highspeed.high_p_ppb", "100"),
        ("net.ipv4.tcp_highspeed.high_decrease_ppm", "100000"),
        ("net.ipv4.tcp_highspeed.current_window", "0"),
        ("net.ipv4.tcp_highspeed.count_segments", "0"),
    ]


def test_giving_every_default_is_the_same_as_giving_nothing() -> None:
    for cca in CCAS.values():
        given = {n: p.default_text if p.words else float(p.default_text) for n, p in cca.parameters.items()}
        assert cca.sysctls(given) == cca.sysctls({})
