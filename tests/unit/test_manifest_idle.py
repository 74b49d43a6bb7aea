# SPDX-License-Identifier: Apache-2.0
"""Repetitions that repeat nothing are warned of, and only these."""

from pathlib import Path

import pytest

from longfat.data.study_folder import StudyFolder
from longfat.system.errors import Problem

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


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder with the study's name."""
    folder = tmp_path / "idle"
    folder.mkdir()
    return folder


def warnings(folder: Path, text: str) -> tuple[Problem, ...]:
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return StudyFolder(path.parent).warnings


def test_repetitions_that_repeat_nothing_are_warned_of_with_their_line_and_what_could_vary(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path, IDLE)
    assert (warning.line, warning.key) == (12, "experiments[0].repetitions")
    assert warning.message.startswith("3 repetitions of experiment 'pair' are the same run")
    assert warning.hint and "start_jitter" in warning.hint


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
    ids=["jitter", "once", "clocks", "phases", "processing", "web", "capture-loss", "red", "bbr"],
)
def test_repetitions_in_which_something_is_drawn_are_not(tmp_path: Path, before: str, after: str) -> None:
    keys = {warning.key for warning in warnings(tmp_path, IDLE.replace(before, after))}
    assert "experiments[0].repetitions" not in keys


def test_points_of_a_sweep_that_draw_nothing_are_counted(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path, IDLE.replace("[reno]", "[reno, bbr]"))
    assert "are the same run at 1 of 2 points: no draw" in warning.message
