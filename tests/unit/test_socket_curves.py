# SPDX-License-Identifier: Apache-2.0
"""Curves from the samples of sockets: the acknowledged rate and the windows of a flow."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import make_results, write_study

from longfat.data.opened import OpenedStudy
from longfat.figures.drawing import Drawing

MANIFEST = """\
format: 2
study: small
title: Competing flows
algorithms: {standard: {cca: reno}, ctcp: {cca: compound}}
hosts: {mtu: 9000 B, txqueuelen: 100}
experiments:
  - id: pairs
    topology: {kind: dumbbell, rate: 1 Gbit/s, rtt: 30 ms, senders: 2, bottleneck_queue: {limit: 100}}
    flows:
      - {name: stream1, from: client1, to: server, algorithm: "${first}", window: 8 MiB, duration: 1 s}
      - {name: stream2, from: client2, to: server, algorithm: standard, window: 8 MiB, duration: 1 s}
    sweep: {product: {first: [standard, ctcp]}}
"""

FIGURES = """\
format: 2
study: small
figures:
  - timeseries: rates
    title: acknowledged rate of both flows
    runs: pairs, first=ctcp
    what: acknowledged_rate
    interval: 100 ms
    flows: {stream1: CTCP, stream2: Standard TCP}
    labels: {x: time (s), y: acknowledged rate (Mb/s)}
    paper: no number stated
  - timeseries: windows
    title: windows of one flow
    runs: pairs, flow=stream1
    what: cwnd
    also: [ssthresh, dwnd]
    panels: first
    labels: {x: time (s), y: segments}
    paper: no number stated
"""


def write(folder: Path, figures: str = FIGURES) -> Path:
    study = write_study(folder, claims="format: 1\nstudy: small\nclaims: []\n", figures=figures)
    (study / "study.yaml").write_text(MANIFEST, encoding="utf-8")
    return study


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedStudy:
    folder = tmp_path_factory.mktemp("results")
    return make_results(write(folder), folder)


def labels(drawing: Drawing) -> list[str]:
    return [text.get_text() for text in drawing.figure.legends[0].get_texts()]


def test_the_acknowledged_rate_is_a_mean_over_each_interval(opened: OpenedStudy) -> None:
    drawing = opened.show("rates")
    assert drawing.data.columns == ("scenario", "repetition", "run_id", "flow", "t_s", "acknowledged_mbps")
    times = [row[4] for row in drawing.data.rows if (row[1], row[3]) == (1, "stream1")]
    # The last of ten intervals is left out: the socket was not sampled up to its end.
    assert times == pytest.approx([0.05 + 0.1 * place for place in range(9)])
    assert 0 < max(row[-1] for row in drawing.data.rows) < 1000
    assert labels(drawing) == ["CTCP", "Standard TCP"]


def test_each_window_has_its_curve_and_only_compound_has_a_delay_window(opened: OpenedStudy) -> None:
    drawing = opened.show("windows")
    assert drawing.data.columns == ("scenario", "repetition", "run_id", "first", "flow", "window", "t_s", "segments")
    found = {(row[3], row[5]) for row in drawing.data.rows}
    assert {("standard", "cwnd"), ("ctcp", "cwnd"), ("ctcp", "dwnd")} <= found
    assert ("standard", "dwnd") not in found
    assert {"congestion window", "delay window"} <= set(labels(drawing))
