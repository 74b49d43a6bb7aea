# SPDX-License-Identifier: Apache-2.0
"""Studies that always fail are refused, studies that are hardly meant are warned of, and all files of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import DRAWN, EXACT, write_study
from fabricated_results import MANIFEST as SMALL
from manifests import HEAD, Change, changed, keys_of, study_of, warnings_of
from tiny_study import call

from longfat.cli.study import require_effects
from longfat.data.study_folder import StudyFolder, studies_in

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
MANIFEST = (
    HEAD
    + """\
  - id: buffer
    topology:
      kind: dumbbell
      rate: 100 Mbit/s
      rtt: 70 ms
      senders: 4
      bottleneck_queue: {limit: "${queue}"}
    flows:
      - {name: stream, from: client1, to: server, algorithm: standard, duration: 60 s}
    sweep: {product: {queue: [10, 100, 2000]}}
"""
)
FLOW = "      - {name: stream, from: client1, to: server, algorithm: standard, duration: 60 s}\n"
SECOND = FLOW.replace("stream", "other").replace("client1", "client2")
WAVE = "{name: wave, from: client2, to: server, mean: 4 Mbit/s, swing: 1 Mbit/s, period: 1 s, duration: 60 s}"
BACK = "      - {name: back, from: server, to: client1, algorithm: standard, duration: 60 s}\n"


QUEUE = "experiments[0].topology.bottleneck_queue"
THIRD = SECOND.replace("other", "third").replace("client2", "client3")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ([], 12),
        ([("title:", "hosts: {txqueuelen: 5, tx_ring: 6}\ntitle:")], 13),  # the card's ring is a part of its queue
        ([(FLOW, FLOW + BACK)], 12),
        ([(FLOW, FLOW + SECOND + THIRD), ("      rtt", "      host_rate: 33 Mbit/s\n      rtt")], 13),
    ],
)
def test_a_swept_buffer_behind_hosts_that_are_no_faster_is_a_warning(
    tmp_path: Path, changes: list[Change], line: int
) -> None:
    assert (line, QUEUE) in warnings_of(tmp_path, MANIFEST, *changes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("      rtt", "      host_rate: 101 Mbit/s\n      rtt"),  # faster than the switch
        (FLOW, FLOW + SECOND),  # two hosts, each as fast as the switch
        ("title:", "hosts: {txqueuelen: 10}\ntitle:"),  # no longer than the shortest queue of the switch
        ("    flows:\n", f"    udp: [{WAVE}]\n    flows:\n"),
    ],
)
def test_a_queue_that_can_fill_or_is_the_longer_one_is_not_warned_of(tmp_path: Path, old: str, new: str) -> None:
    assert warnings_of(tmp_path, MANIFEST, (old, new)) == []


def test_the_queue_of_the_way_back_is_looked_at_where_data_goes_that_way(tmp_path: Path) -> None:
    reverse = ('      bottleneck_queue: {limit: "${queue}"}\n', '      reverse_queue: {limit: "${queue}"}\n')
    (warning,) = warnings_of(tmp_path, MANIFEST, reverse, (FLOW, FLOW + SECOND + BACK))
    assert warning[1] == "experiments[0].topology.reverse_queue"
    assert warnings_of(tmp_path, MANIFEST, reverse, (FLOW, FLOW + SECOND)) == []


def test_every_key_of_the_shipped_studies_has_an_effect_and_only_intended_warnings_are_left() -> None:
    """Kelly's machines have 1 Gbit/s each before 2.4 Gbit/s; slac-2003 compares cards of 100 Mbit/s and 1 Gbit/s."""
    folders = [*studies_in(EXPERIMENTS)]
    for folder in folders:
        require_effects(folder)
    warned = {folder.path.name: len(folder.warnings) for folder in folders if folder.warnings}
    assert warned == {"_laws": 28, "kelly-2003": 9, "sandia-2003": 1, "slac-2003": 1}
    assert folders


@pytest.mark.parametrize(
    ("interval", "claim", "warned"),
    [
        ("80 ms", "cuts[buffer, queue=10] >= 0.5", True),
        ("80 ms", "window_growth[buffer, queue=100] > 1", False),  # counts no cuts
        ("71 ms", "cut_interval[buffer, queue=10] > 1", False),  # 70 ms and ten packets
    ],
)
def test_samples_that_are_rarer_than_round_trips_are_a_warning_where_claims_count_cuts(
    tmp_path: Path, interval: str, claim: str, warned: bool
) -> None:
    study = tmp_path / "example"
    study.mkdir()
    (study / "study.yaml").write_text(MANIFEST + f"    probes: {{sockets: {interval}}}\n", encoding="utf-8")
    text = f"claims:\n  - {{id: a, statement: s, paper: {{value: none, where: none}}, relation: '{claim}'}}\n"
    (study / "claims.yaml").write_text(f"format: 2\nstudy: example\n{text}", encoding="utf-8")
    found = [one for one in StudyFolder(study).warnings if "misses cuts of the window" in one.message]
    assert [(one.line, "'a'" in one.message) for one in found] == ([(16, True)] if warned else [])


IDLE = """\
format: 2
study: idle
title: Repetitions of one run
algorithms: {reno: {cca: reno}, bbr: {cca: bbr}}
experiments:
  # Two flows that may come to differ.
  - id: pair
    topology:
      {kind: dumbbell, senders: 2, rate: 10 Mbit/s, host_rate: 1 Gbit/s, rtt: 20 ms, bottleneck_queue: {limit: 50}}
    flows: [{name: f1, from: client1, to: server, algorithm: "${algorithm}", duration: 5 s}]
    sweep: {product: {algorithm: [reno]}}
    repetitions: 3
    clock_tolerance: 0 ppm
    phases: fixed
"""


@pytest.mark.parametrize("changes", [[], [("[reno]", "[reno, bbr]")]], ids=["every point", "one of two points"])
def test_repetitions_that_repeat_nothing_are_warned_of(tmp_path: Path, changes: list[Change]) -> None:
    assert warnings_of(tmp_path, IDLE, *changes) == [(12, "experiments[0].repetitions")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("duration: 5 s}", "duration: 5 s, start_jitter: 1 ms}"),
        ("repetitions: 3", "repetitions: 1"),
        ("0 ppm", "1 ppm"),
        ("phases: fixed", "phases: drawn"),
        ("repetitions: 3", "repetitions: 3\n    hosts: {processing_time: {jitter: 10 us}}"),
        ("repetitions: 3", "web: [{name: w, from: client2, to: server, users: 1, algorithm: reno, duration: 5 s}]"),
        ("repetitions: 3", "repetitions: 3\n    probes: {capture: [f1], capture_loss: 1}"),
        ("{limit: 50}", "{kind: red, limit: 50, min: 5, max: 15, probability: 10 %, ecn: false}"),
        ("[reno]", "[bbr]"),
    ],
)
def test_repetitions_in_which_something_is_drawn_are_not(tmp_path: Path, before: str, after: str) -> None:
    keys = {key for _, key in warnings_of(tmp_path, IDLE, (before, after))}
    assert "experiments[0].repetitions" not in keys


STUDY = """\
format: 2
study: extreme
title: What cannot be
algorithms: {reno: {cca: reno}}
hosts: {mtu: 1500 B}
experiments:
  - id: one
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 20 ms}
    flows: [{name: f, from: client1, to: server, algorithm: reno, duration: 5 s}]
"""


SLOW, LONG, SHORT, LAST = "10 Mbit/s", "rtt: 20 ms", "duration: 5 s", "duration: 5 s}]"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ([(SHORT, "duration: 50 ms")], "duration"),
        ([(SLOW, "100 Gbit/s"), (SHORT, "duration: 20 ms")], "duration"),
        ([(SHORT, "duration: 5 s, start: 1 s"), (LONG, "rtt: 5900 ms")], "duration"),
        ([(SHORT, "duration: 5 s, streams: 1000")], "flows"),
        ([(LAST, "duration: 5 s, streams: 200}]\n    memory: 256 MiB")], "memory"),
        ([(SHORT, "duration: 5 s, transfer: 1 B")], "transfer"),
    ],
)
def test_a_run_that_always_fails_is_refused_at_its_key(tmp_path: Path, changes: list[Change], key: str) -> None:
    (found,) = keys_of(tmp_path, STUDY, *changes)
    assert str(found).endswith(f".{key}")
    study_of(tmp_path, STUDY, (LONG, "rtt: 25 s"), (SHORT, "duration: 300 s"))
    study_of(tmp_path, STUDY, (SHORT, "duration: 5 s, streams: 100"))


def test_a_sysctl_that_the_projects_kernel_lacks_is_doubted_with_the_nearest(tmp_path: Path) -> None:
    sysctls = "mtu: 1500 B, sysctls: {net.ipv4.tcp_sak: 1, net.ipv4.conf.all.rp_filter: 0}"
    study_of(tmp_path, STUDY, ("mtu: 1500 B", sysctls))
    (warning,) = (one for one in StudyFolder(tmp_path).warnings if "sysctls" in one.key)
    assert (warning.line, warning.key) == (5, "hosts.sysctls.net.ipv4.tcp_sak")
    assert "net.ipv4.tcp_sack" in str(warning.hint)


def test_a_name_that_is_not_the_folder_s_is_warned_of(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    words = "'small' is not the name of the folder, 'h3-small'"
    assert words not in str(StudyFolder(study).warnings)
    study = study.rename(study.with_name("h3-small"))
    assert words in str(StudyFolder(study).warnings[0])
    assert call("check", str(study)).output.startswith("h3-small: ")


def test_problems_of_the_other_files_come_with_those_of_the_manifest(tmp_path: Path) -> None:
    study = write_study(tmp_path, claims="format: 2\nstudy: small\nclaims: 7\n")
    (study / "study.yaml").write_text(changed(SMALL, ("repetitions: 2", "repetitions: x")), encoding="utf-8")
    (study / "figures.yaml").write_text("format: 2\nfigures: []\n", encoding="utf-8")
    said = call("check", str(study)).output
    assert [f"/{name}.yaml:" in said for name in ("study", "claims", "figures")] == [True] * 3


def test_an_unknown_backend_in_the_manifest_is_named_by_check(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, claims="format: 2\nstudy: small\nclaims: []\n", figures="format: 2\nstudy: small\nfigures: []\n"
    )
    text = SMALL.replace("study: small\n", "study: small\nbackends: [virtual, ns22]\n")
    (study / "study.yaml").write_text(text, encoding="utf-8")
    assert "study.yaml:3: backends: unknown backend 'ns22'" in call("check", str(study)).output


@pytest.mark.parametrize(
    ("axis", "problem"),
    [
        ("window", "the axis has no unit, and 'window' the value '8 MiB' (write `window in MiB`)"),
        ("window in ms", "'window' cannot be drawn in ms: it has the value '1 MiB'"),
        ("window in kB", "no problems"),
        ("algorithm", "no problems"),
    ],
)
def test_an_axis_has_the_unit_of_its_factor(tmp_path: Path, axis: str, problem: str) -> None:
    figure = f"[{{bars: all, title: Goodput, of: 'goodput[delay]', x: {axis}, paper: none}}]"
    study = write_study(tmp_path, figures=f"format: 2\nstudy: small\nfigures: {figure}\n")
    assert problem in call("check", str(study)).output


@pytest.mark.parametrize(
    ("changes", "claims"),
    [
        ([], []),
        ([(EXACT, "")], ["window-limits"]),
        ([(EXACT, DRAWN)], ["window-limits"]),
        ([(EXACT, ""), ("repetitions: 2", "repetitions: 3")], []),
        ([("0 ppm #", "1 ppm #"), ("0 ppm\n", "1 ppm\n")], ["window-limits", "halves"]),
    ],
)
def test_idle_repetitions_are_warned_of(tmp_path: Path, changes: list[Change], claims: list[str]) -> None:
    study = write_study(tmp_path)
    (study / "study.yaml").write_text(changed(SMALL, *changes), encoding="utf-8")
    found = [str(one) for one in StudyFolder(study).warnings if "decide no claim" in str(one)]
    assert len(found) == len(claims)
    assert all(f"3 are needed by {claim!r}" in one for one, claim in zip(found, claims, strict=True))
