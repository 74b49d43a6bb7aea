# SPDX-License-Identifier: Apache-2.0
"""What ``check`` warns of: a study that is allowed as it is, and hardly meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from longfat.cli import app
from longfat.data.study_folder import StudyFolder
from longfat.system.errors import Problem

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
MANIFEST = """\
format: 2
study: buffers
title: A sweep of the switch's buffer
algorithms: {standard: {cca: reno}}
experiments:
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
FLOW = "      - {name: stream, from: client1, to: server, algorithm: standard, duration: 60 s}\n"
SECOND = FLOW.replace("stream", "other").replace("client1", "client2")
BACK = "      - {name: back, from: server, to: client1, algorithm: standard, duration: 60 s}\n"


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder with the study's name."""
    folder = tmp_path / "buffers"
    folder.mkdir()
    return folder


def warnings(folder: Path, *changes: tuple[str, str]) -> tuple[Problem, ...]:
    text = MANIFEST
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return StudyFolder(path.parent).warnings


def test_a_swept_buffer_behind_a_host_of_the_same_rate_is_a_warning_that_names_both(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path)
    assert (warning.file, warning.line) == (str(tmp_path / "study.yaml"), 12)
    assert warning.key == "experiments[0].topology.bottleneck_queue"
    assert warning.message == (
        "the queue of 'switch', 10 packets, cannot fill: 'client1' before it sends at 100 Mbit/s and 'switch' at "
        "100 Mbit/s; packets wait in its own queue of 1000 packets; so in 2 of 3 scenarios, the first with queue=10"
    )
    assert warning.hint == "a host_rate above the rate of 'switch', or more senders, fill it"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("      rtt", "      host_rate: 101 Mbit/s\n      rtt"),  # faster than the switch
        (FLOW, FLOW + SECOND),  # two hosts, each as fast as the switch
        ("title:", "hosts: {txqueuelen: 10}\ntitle:"),  # no longer than the shortest queue of the switch
        ("kind: dumbbell", "kind: delay"),  # no switch at all
    ],
    ids=["fast host", "two hosts", "short host queue", "no switch"],
)
def test_a_queue_that_can_fill_or_is_the_longer_one_is_none(tmp_path: Path, old: str, new: str) -> None:
    further = [("      senders: 4\n", ""), ('      bottleneck_queue: {limit: "${queue}"}\n', "")]
    further.append(("    sweep: {product: {queue: [10, 100, 2000]}}\n", ""))
    assert warnings(tmp_path, (old, new), *(further if "delay" in new else [])) == ()


def test_hosts_that_together_are_no_faster_are_all_named(tmp_path: Path) -> None:
    third = SECOND.replace("other", "third").replace("client2", "client3")
    (warning,) = warnings(
        tmp_path, (FLOW, FLOW + SECOND + third), ("      rtt", "      host_rate: 33 Mbit/s\n      rtt")
    )
    assert "'client1' to 'client3' before it send at 99 Mbit/s together" in warning.message
    assert "in their own queue of 1000 packets" in warning.message


def test_the_cards_ring_counts_as_a_part_of_the_hosts_queue(tmp_path: Path) -> None:
    settings = ("title:", "hosts: {txqueuelen: 5, tx_ring: 6}\ntitle:")
    (warning,) = warnings(tmp_path, settings)
    assert "its own queue of 11 packets; so in 1 of 3 scenarios, the first with queue=10" in warning.message


def test_a_host_that_sends_nothing_does_not_help_to_fill_the_queue(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path, (FLOW, FLOW + BACK))
    assert "'client1' before it sends at 100 Mbit/s" in warning.message


def test_udp_traffic_fills_a_queue_too(tmp_path: Path) -> None:
    wave = "{name: wave, from: client2, to: server, mean: 4 Mbit/s, swing: 1 Mbit/s, period: 1 s, duration: 60 s}"
    udp = f"    udp: [{wave}]\n    flows:\n"
    assert warnings(tmp_path, ("    flows:\n", udp)) == ()


def test_the_queue_of_the_way_back_is_looked_at_where_data_goes_that_way(tmp_path: Path) -> None:
    reverse = ('      bottleneck_queue: {limit: "${queue}"}\n', '      reverse_queue: {limit: "${queue}"}\n')
    two_ways = (FLOW, FLOW + SECOND + BACK)
    (warning,) = warnings(tmp_path, reverse, two_ways)
    assert warning.key == "experiments[0].topology.reverse_queue"
    assert "the queue of 'switch2', 10 packets, cannot fill: 'server' before it" in warning.message
    assert warnings(tmp_path, reverse, (FLOW, FLOW + SECOND)) == ()


def test_check_prints_warnings_and_succeeds(tmp_path: Path) -> None:
    warnings(tmp_path)
    for name in ("claims", "figures"):
        (tmp_path / f"{name}.yaml").write_text(f"format: 2\nstudy: buffers\n{name}: []\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(tmp_path)], env={"COLUMNS": "400"})
    assert result.exit_code == 0, result.output
    assert "no problems, 1 warning\n" in result.output
    assert f"warning: {tmp_path}/study.yaml:12: experiments[0].topology.bottleneck_queue: the queue" in result.output


def test_the_shipped_studies_warn_only_of_what_they_do_on_purpose() -> None:
    """Kelly's machines have 1 Gbit/s each before 2.4 Gbit/s; slac-2003 compares cards of 100 Mbit/s and 1 Gbit/s."""
    paths = sorted(EXPERIMENTS.glob("*/study.yaml"))
    found = {path.parent.name: len(StudyFolder(path.parent).warnings) for path in paths}
    warned = {name: count for name, count in found.items() if count}
    assert warned == {"_laws": 25, "kelly-2003": 7, "sandia-2003": 1, "slac-2003": 1}
    assert len(found) == 11
