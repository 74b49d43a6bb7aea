# SPDX-License-Identifier: Apache-2.0
"""Loading of a study: what it yields, and which problems it reports, with file, line and key."""

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longfat.errors import Problem, StudyError
from longfat.manifest.load import load_study
from longfat.manifest.study import Study
from longfat.schema.source import MAX_BYTES, read_source
from longfat.units import Size

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
      exclude: [{when: {algorithm: scalable, window: 1024 KiB}, reason: too large}]
    repetitions: 2
    probes: {capture: [f1]}
    drops: [{at: 3 s}]
profiles:
  quick: {keep: {window: [1 MiB]}}
  smoke: {repetitions: 1, experiments: {first: {duration: 4 s}}}
"""


def load(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


def problems(tmp_path: Path, text: str) -> tuple[Problem, ...]:
    with pytest.raises(StudyError) as caught:
        load(tmp_path, text)
    return caught.value.problems


def changed(*changes: tuple[str, str]) -> str:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_a_study_has_the_points_of_its_sweep_without_the_excluded_one(tmp_path: Path) -> None:
    (experiment,) = load(tmp_path, GOOD).experiments
    assert [point.factors for point in experiment.points] == [
        {"algorithm": "standard", "window": 524288},
        {"algorithm": "standard", "window": 1048576},
        {"algorithm": "scalable", "window": 524288},
    ]
    assert [(point.factors, point.reason) for point in experiment.excluded] == [
        ({"algorithm": "scalable", "window": 1048576}, "too large")
    ]


def test_a_reference_is_replaced_by_a_typed_value(tmp_path: Path) -> None:
    (experiment,) = load(tmp_path, GOOD).experiments
    assert experiment.points[0].experiment.flows[0].window == Size(524288)
    assert experiment.points[0].labels == {"algorithm": "standard", "window": "512 KiB"}


def test_a_zipped_factor_that_nothing_refers_to_names_its_rows(tmp_path: Path) -> None:
    text = changed(
        ("      exclude:", "      zip: {name: [small, large], q: [5, 6]}\n      exclude:"),
        ("hosts: {mtu: 1500 B}", 'hosts: {mtu: 1500 B, txqueuelen: "${q}"}'),
    )
    (experiment,) = load(tmp_path, text).experiments
    rows = {(point.factors["name"], point.factors["q"]) for point in experiment.points}
    assert rows == {("small", 5), ("large", 6)}


def test_zip_goes_side_by_side_and_in_product_with_the_rest(tmp_path: Path) -> None:
    text = changed(
        (
            "product: {algorithm: [standard, scalable], window: [512 KiB, 1 MiB]}",
            "product: {algorithm: [standard]}",
        ),
        (
            "      exclude: [{when: {algorithm: scalable, window: 1024 KiB}, reason: too large}]\n",
            "      zip: {window: [1 MiB, 2 MiB], q: [5, 6]}\n",
        ),
        ("hosts: {mtu: 1500 B}", 'hosts: {mtu: 1500 B, txqueuelen: "${q}"}'),
    )
    (experiment,) = load(tmp_path, text).experiments
    assert [(point.factors["window"], point.factors["q"]) for point in experiment.points] == [
        (1 << 20, 5),
        (2 << 20, 6),
    ]


def test_an_algorithm_may_be_spelt_out_in_a_flow_with_factors(tmp_path: Path) -> None:
    text = changed(
        ('algorithm: "${algorithm}"', 'algorithm: {cca: scalable, a: "${algorithm}"}'),
        ("[standard, scalable]", "[0.01, 0.02]"),
        ("      exclude: [{when: {algorithm: scalable, window: 1024 KiB}, reason: too large}]\n", ""),
    )
    (experiment,) = load(tmp_path, text).experiments
    algorithm = experiment.points[-1].experiment.flows[0].algorithm
    assert not isinstance(algorithm, str)
    assert algorithm.parameters == {"a": 0.02}


# Each case: what is replaced in GOOD, by what, then line, key, and parts of message and hint.
# fmt: off
CASES = [
    ("unknown key", "title:", "titel: x\ntitle:", 3, "titel", "unknown key 'titel'", "did you mean 'title'?"),
    ("unknown key of a flow", "duration: 10 s}", "duration: 10 s, windw: 1 B}", 14,
     "experiments[0].flows[0].windw",
     "allowed: name, from, to, duration, start, algorithm, window, send_window, start_jitter, streams",
     "did you mean 'window'?"),
    ("missing key", "title: An example\n", "", 1, "title", "is required here but missing", None),
    ("key twice", "study: example", "study: example\nstudy: b", 2, "study", "on lines 2 and 3", None),
    ("unit missing", "rtt: 30 ms", "rtt: 30", 11, "experiments[0].topology.rtt", "30 has no unit", "30 ms"),
    ("unit wrong", "rate: 1 Gbit/s", "rate: 1 Gb/s", 11, "experiments[0].topology.rate",
     "'Gb/s' in '1 Gb/s' is not a unit of a rate", "did you mean 'Gbit/s'?"),
    ("unit of another dimension", "rate: 1 Gbit/s", "rate: 1 MiB", 11, "experiments[0].topology.rate",
     "'MiB' in '1 MiB' is not a unit of a rate", "bit/s, kbit/s"),
    ("window of zero in the sweep", "[512 KiB, 1 MiB]", "[0 B, 1 MiB]", 16,
     "experiments[0].sweep.product.window[0]",
     "as flows[0].window: '0 B' is out of range; allowed: 1 B to 1073741823 B", None),
    ("window without unit in the sweep", "[512 KiB, 1 MiB]", "[512, 1 MiB]", 16,
     "experiments[0].sweep.product.window[0]", "as flows[0].window: 512 has no unit", "4 MiB"),
    ("rate of zero", "rate: 1 Gbit/s", "rate: 0 bit/s", 11, "experiments[0].topology.rate",
     "'0 bit/s' is out of range; allowed: 1 bit/s to 1 Tbit/s", None),
    ("negative delay", "rtt: 30 ms", "rtt: -30 ms", 11, "experiments[0].topology.rtt", "is negative", None),
    ("lossy time", "rtt: 30 ms", "rtt: 0.5 us", 11, "experiments[0].topology.rtt", "never rounded", None),
    ("odd split", "rtt: 30 ms", "rtt: 31 us", 11, "experiments[0].topology.rtt",
     "31 us cannot be split into two whole microseconds", "delay_placement: forward"),
    ("duration of zero", "duration: 10 s}", "duration: 0 s}", 14, "experiments[0].flows[0].duration",
     "'0 s' is out of range", None),
    ("mtu too small", "mtu: 1500 B", "mtu: 575 B", 12, "experiments[0].hosts.mtu", "576 B to 9216 B", None),
    ("mtu too large", "mtu: 9000 B", "mtu: 9217 B", 7, "hosts.mtu", "576 B to 9216 B", None),
    ("empty queue", "txqueuelen: 100", "txqueuelen: 0", 7, "hosts.txqueuelen", "allowed: 1 or more", None),
    ("negative ring", "txqueuelen: 100", "tx_ring: -1", 7, "hosts.tx_ring", "allowed: 0 or more", None),
    ("queue as text", "txqueuelen: 100", 'txqueuelen: "9"', 7, "hosts.txqueuelen", "is not a whole number",
     None),
    ("sysctl outside the network", "net.ipv4.tcp_sack: 1", "kernel.panic: 1", 7, "hosts.sysctls.kernel.panic",
     "allowed: names of the form net.*", None),
    ("sysctl of an algorithm", "net.ipv4.tcp_sack: 1", "net.ipv4.tcp_scalable.a_ppm: 1", 7,
     "hosts.sysctls.net.ipv4.tcp_scalable.a_ppm", "is set by the algorithm of a flow", "under algorithms"),
    ("sysctl of the testbed on senders", "net.ipv4.tcp_sack: 1", "net.ipv4.tcp_cc_info: 0", 7,
     "hosts.sysctls.net.ipv4.tcp_cc_info", "is set by the testbed on every sender", None),
    ("sysctl of the testbed on receivers", "net.ipv4.tcp_sack: 1", "net.ipv4.tcp_recv_fill: 0", 7,
     "hosts.sysctls.net.ipv4.tcp_recv_fill", "is set by the testbed on every receiver", None),
    ("sysctl that is true", "net.ipv4.tcp_sack: 1", "net.ipv4.tcp_sack: true", 7,
     "hosts.sysctls.net.ipv4.tcp_sack", "true is not a sysctl value", None),
    ("unknown congestion control", "{cca: reno}", "{cca: renno}", 5, "algorithms.standard.cca",
     "unknown congestion control 'renno'; allowed: reno, cubic, bic, westwood, htcp,",
     "did you mean 'reno'?"),
    ("unknown parameter", "{cca: reno}", "{cca: scalable, aa: 1}", 5, "algorithms.standard.aa",
     "unknown parameter of scalable 'aa'; allowed: a, b, lwnd", None),
    ("parameter out of range", "a: 0.02", "a: 2", 6, "algorithms.scalable.a",
     "2 is out of range; allowed: 0.000001 to 1", None),
    ("b of one", "a: 0.02", "b: 1", 6, "algorithms.scalable.b", "allowed: 0.000001 to 0.999999", None),
    ("too fine", "a: 0.02", "a: 0.0200001", 6, "algorithms.scalable.a", "multiple of 1/1000000", None),
    ("unknown stack", "study: example", "stack: linux-2.5\nstudy: example", 2, "stack", "linux-2.5",
     "linux-2.4"),
    ("unknown offload", "txqueuelen: 100", "offloads: [tsoo]", 7, "hosts.offloads[0]", "tso, gso, gro",
     "'tso'"),
    ("unknown kind", "kind: delay", "kind: dely", 11, "experiments[0].topology.kind",
     "unknown kind 'dely'; allowed: direct, delay, dumbbell", "did you mean 'delay'?"),
    ("unknown node", "to: server", "to: sever", 14, "experiments[0].flows[0].to",
     "unknown node 'sever'; allowed: client1, server", "did you mean 'server'?"),
    ("flow to itself", "to: server", "to: client1", 14, "experiments[0].flows[0].to", "to itself", None),
    ("unknown algorithm in the sweep", "[standard, scalable]", "[standard, scalable, standrad]", 16,
     "experiments[0].sweep.product.algorithm[2]", "unknown algorithm 'standrad'; allowed: standard, scalable",
     "did you mean 'standard'?"),
    ("unknown factor", '"${window}"', '"${windw}"', 14, "experiments[0].flows[0].window",
     "unknown factor 'windw'; allowed: algorithm, window", "did you mean 'window'?"),
    ("factor never used", '"${window}"', "1 MiB", 16, "experiments[0].sweep.product.window",
     "factor 'window' is never used", None),
    ("reference inside a text", '"${window}"', '"${window} B"', 14, "experiments[0].flows[0].window",
     "is not a reference", None),
    ("factor without values", "[512 KiB, 1 MiB]", "[]", 16, "experiments[0].sweep.product.window", "nothing",
     None),
    ("value twice", "[512 KiB, 1 MiB]", "[512 KiB, 1 MiB, 1024 KiB]", 16,
     "experiments[0].sweep.product.window[2]", "'1024 KiB' is given twice", None),
    ("everything excluded", "when: {algorithm: scalable, window: 1024 KiB}, reason: too large}",
     "when: {algorithm: scalable}, reason: a}, {when: {algorithm: standard}, reason: b}", 15,
     "experiments[0].sweep", "yields nothing: all of its 4 points are excluded", None),
    ("exclusion of an unknown value", "window: 1024 KiB}", "window: 3 MiB}", 17,
     "experiments[0].sweep.exclude[0].when.window", "window never is '3 MiB'; its values: 512 KiB, 1 MiB",
     "did you mean '1 MiB'?"),
    ("exclusion of an unknown factor", "window: 1024 KiB}", "windw: 1024 KiB}", 17,
     "experiments[0].sweep.exclude[0].when.windw", "unknown factor 'windw'", "did you mean 'window'?"),
    ("zip of unequal lengths", "      exclude:", "      zip: {p: [1, 2], q: [1]}\n      exclude:", 17,
     "experiments[0].sweep.zip", "lists of unequal length: p has 2, q has 1", None),
    ("capture of an unknown flow", "capture: [f1]", "capture: [f2]", 19, "experiments[0].probes.capture[0]",
     "unknown traffic 'f2'; allowed: f1", "did you mean 'f1'?"),
    ("capture that loses everything", "capture: [f1]", "capture: [f1], capture_loss: 100", 19,
     "experiments[0].probes.capture_loss", "100 is out of range; allowed: 0 to less than 100 percent", None),
    ("capture that gains packets", "capture: [f1]", "capture: [f1], capture_loss: -0.5", 19,
     "experiments[0].probes.capture_loss", "-0.5 is out of range; allowed: 0 to less than 100 percent", None),
    ("capture that loses a text", "capture: [f1]", "capture: [f1], capture_loss: much", 19,
     "experiments[0].probes.capture_loss", "'much' is not a number", None),
    ("drop after the end", "at: 3 s", "at: 10 s", 20, "experiments[0].drops[0].at",
     "10 s is not before the end of the last flow at 10 s", None),
    ("drop without a delay element", "kind: delay", "kind: direct", 20, "experiments[0].drops",
     "topology 'direct' has no delay element", None),
    ("profile of an unknown experiment", "{first: {", "{frist: {", 23, "profiles.smoke.experiments.frist",
     "unknown experiment 'frist'; allowed: first", "did you mean 'first'?"),
    ("profile of an unknown factor", "keep: {window:", "keep: {windo:", 22, "profiles.quick.keep.windo",
     "unknown factor 'windo'; allowed: algorithm, window", "did you mean 'window'?"),
    ("profile of an unknown value", "keep: {window: [1 MiB]}", "keep: {window: [9 MiB]}", 22,
     "profiles.quick.keep.window[0]", "window never is '9 MiB'", None),
    ("profile that loses a drop", "duration: 4 s", "duration: 2 s", 23, "profiles.smoke.duration",
     "experiment 'first' loses its drop", "its own duration"),
    ("unknown profile", "  quick:", "  quikc:", 22, "profiles.quikc", "allowed: smoke, quick", "'quick'"),
    ("text for a list", "capture: [f1]", "capture: f1", 19, "experiments[0].probes.capture",
     "not a list", None),
    ("other format", "format: 2", "format: 3", 1, "format", "3 is not allowed; allowed: 2", None),
]
# fmt: on


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message", "hint"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_a_fault_is_reported_with_line_key_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, line: int, key: str, message: str, hint: str | None
) -> None:
    found = problems(tmp_path, changed((old, new)))
    matching = [problem for problem in found if problem.key == key and message in problem.message]
    assert matching, "\n".join(str(problem) for problem in found)
    assert matching[0].line == line
    assert matching[0].file == str(tmp_path / "study.yaml")
    if hint:
        assert hint in (matching[0].hint or "")


def test_the_message_of_a_problem_is_one_line_with_place_and_remedy(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, changed(("to: server", "to: sever")))
    assert str(problem) == (
        f"{tmp_path}/study.yaml:14: experiments[0].flows[0].to: unknown node 'sever'; "
        "allowed: client1, server (did you mean 'server'?)"
    )


def test_all_problems_are_reported_at_once_and_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        changed(
            ("title:", "titel: x\ntitle:"),
            ("{cca: reno}", "{cca: renno}"),
            ("mtu: 9000 B", "mtu: 9000"),
            ("rate: 1 Gbit/s", "rate: 0 bit/s"),
            ("to: server", "to: sever"),
            ("[512 KiB, 1 MiB]", "[512 KiB, 1 MiB, 0 B]"),
            ("capture: [f1]", "capture: [f2]"),
            ("{first: {", "{frist: {"),
        ),
    )
    assert [problem.key for problem in found] == [
        "titel",
        "algorithms.standard.cca",
        "hosts.mtu",
        "experiments[0].topology.rate",
        "experiments[0].flows[0].to",
        "experiments[0].sweep.product.window[2]",
        "experiments[0].probes.capture[0]",
        "profiles.smoke.experiments.frist",
    ]


def test_names_of_experiments_and_flows_are_unique(tmp_path: Path) -> None:
    flow = "      - {name: f1, from: client1, to: server, algorithm: standard, duration: 1 s}\n"
    second = "  - id: first\n    topology: {kind: direct, rate: 1 Gbit/s}\n    flows:\n"
    found = problems(tmp_path, changed(("profiles:", f"{second}{flow * 2}profiles:")))
    texts = [f"{problem.key}: {problem.message}" for problem in found]
    assert "experiments[1].id: experiment 'first' is given twice; names are unique" in texts
    assert "experiments[1].flows[1].name: flow 'f1' is given twice; names are unique" in texts


def test_two_flows_of_one_host_cannot_have_different_parameters(tmp_path: Path) -> None:
    line = "      - {name: f2, from: client1, to: server, algorithm: {cca: scalable, a: 0.5}, duration: 1 s}\n"
    (problem,) = problems(tmp_path, changed(("    sweep:", f"{line}    sweep:")))
    assert problem.key == "experiments[0].flows[1].algorithm"
    assert "needs net.ipv4.tcp_scalable.a_ppm = 500000 on 'client1', where 'f1' needs 20000" in problem.message


def test_an_effective_window_of_odd_size_is_refused_and_a_requested_one_is_not(tmp_path: Path) -> None:
    text = changed(("[512 KiB, 1 MiB]", "[512 KiB, 1 MiB, 99999 B]"))
    (problem,) = problems(tmp_path, text)
    assert "99999 B cannot be halved" in problem.message
    assert load(tmp_path, text.replace("txqueuelen: 100", "window_meaning: requested")).name == "example"


def test_a_missing_file_is_a_study_error(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="the study cannot be read: no such file or directory"):
        load_study(tmp_path / "study.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "not YAML: did not find expected"),
        ("a: &x 1\nb: *x\n", "aliases are not part of the format; write the value out"),
        ("a: &x 1\n", "anchors and aliases are not part of the format"),
        ("a: !!python/object:os.system x", "tags are not part of the format"),
        ("a: !!binary aGk=", "tags are not part of the format"),
        ("a: 1\n---\nb: 1\n", "a file has one document, but another begins here"),
        ("\0", "control characters are not allowed"),
        ("[" * 5000, "the study cannot be read"),
        ("", "the study is not a mapping of keys to values"),
        ("- a", "the study is not a mapping of keys to values"),
    ],
)
def test_a_file_that_is_not_such_yaml_is_a_study_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        load(tmp_path, text)
    assert message in str(caught.value)


@pytest.mark.parametrize("line", ["key{}: 1\n", "- {{a: {}, b: 2}}\n", "- a{}\n", "a{}: [1, 2, 3, 4]\n"])
def test_the_longest_file_that_is_read_takes_less_than_2_s_of_cpu(tmp_path: Path, line: str) -> None:
    path = tmp_path / "study.yaml"
    text = "".join(line.format(number) for number in range(MAX_BYTES // len(line)))
    path.write_text(text[: text.rindex("\n", 0, MAX_BYTES)])
    start = time.process_time()
    source = read_source(path)
    assert time.process_time() - start < 2
    assert len(source.data) > 10_000


def test_a_binary_file_is_a_study_error(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(b"format: \xff\xfe")
    with pytest.raises(StudyError, match="the study is not UTF-8 text: byte 8 is 0xff"):
        load_study(path)


def test_only_true_and_false_are_truth_values(tmp_path: Path) -> None:
    """YAML 1.1 would read ``no`` as false and 1:30 as a number."""
    study = load(tmp_path, changed(("title: An example", "title: no"), ("tcp_sack: 1", "tcp_sack: 1:30")))
    assert study.header.title == "no"
    assert study.header.hosts.sysctls["net.ipv4.tcp_sack"] == "1:30"


WORDS = [
    "",
    "null",
    "0",
    "-1",
    "true",
    "[]",
    "{}",
    "[1]",
    "x",
    "1e400",
    '"${window}"',
    '"${x}"',
    "9 MiB",
    "5 ms",
]


@settings(derandomize=True, database=None, max_examples=150, suppress_health_check=list(HealthCheck))
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
