# SPDX-License-Identifier: Apache-2.0
"""A key that a manifest states changes some run, or is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from longfat.cli.study import require_effects
from longfat.data.study_folder import StudyFolder
from longfat.system.errors import StudyError

STUDY = """\
format: 2
study: stated
title: Stated keys
algorithms: {{a: {{cca: reno}}}}
hosts: {hosts}
paths:
  lines: {{kind: dumbbell, rate: 10 Mbit/s, rtt: 20 ms, senders: 2{path}}}
experiments:
  - id: one
    path: lines
    topology: {topology}
    flows:
      - {{name: f, from: client1, to: server, algorithm: a, duration: 5 s{flow}}}
  - id: two
    {second}
    repetitions: 3
"""
OTHER = """topology: {kind: direct, rate: 3 Mbit/s}
    flows: [{name: g, from: client1, to: server, algorithm: a, duration: 5 s}]"""


def refused(folder: Path, **given: str) -> list[str]:
    """Return line and key of each problem of a study that is whole but for what is given."""
    parts = {"hosts": "{}", "path": "", "topology": "{}", "flow": "", "second": "like: one"} | given
    (folder / "study.yaml").write_text(STUDY.format(**parts), encoding="utf-8")
    try:
        require_effects(StudyFolder(folder))
    except StudyError as error:
        return [f"{problem.line} {problem.key}" for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"hosts": "{txqueuelen: 1000, mtu: 1500 B}", "path": ", delay_placement: split"}, None),  # its defaults
        ({"hosts": "{txqueuelen: 50}", "path": ", host_rate: unlimited", "second": OTHER}, None),
        ({"hosts": "{window_meaning: requested}", "flow": ", window: 64 KiB"}, None),
        ({"hosts": "{txqueuelen: 50}", "path": ", host_rate: unlimited"}, "5 hosts.txqueuelen"),
        ({"hosts": "{tx_ring: 9}", "topology": "{host_rate: unlimited}"}, "5 hosts.tx_ring"),
        ({"hosts": "{window_meaning: requested}"}, "5 hosts.window_meaning"),
        ({"hosts": "{mtu: 9000 B}", "topology": "{jitter_order: kept}"}, "11 experiments[0].topology.jitter_order"),
        ({"path": ", reverse_rate: 1 Mbit/s"}, "7 paths.lines.reverse_rate"),
        ({"hosts": "{input_queue: 5}"}, "5 hosts.input_queue"),
    ],
)
def test_a_key_that_matters_in_no_experiment_is_refused_at_its_place(
    tmp_path: Path, given: dict[str, str], where: str | None
) -> None:
    assert refused(tmp_path, **given) == ([where] if where else [])
