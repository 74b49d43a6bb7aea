# SPDX-License-Identifier: Apache-2.0
"""A small study of format 2 beside which claims and figures of format 1 are converted."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from longfat.manifest.load import load_study
from longfat.manifest.study import Study

STUDY = """\
format: 2
study: small
title: Two experiments
stack: linux-2.4
algorithms:
  standard: {cca: reno}
  highspeed: {cca: highspeed}
  scalable: {cca: scalable}
paths:
  cable: {kind: dumbbell, rate: 100 Mbit/s, rtt: 10 ms, senders: 2, bottleneck_queue: {limit: 50}}
defaults:
  flow: {from: client1, to: server, duration: 9 s}
experiments:
  - id: single
    path: cable
    flows: [{name: stream, algorithm: "${algorithm}", window: "${window}"}]
    sweep: {product: {algorithm: [standard, highspeed, scalable], window: [64 KiB, 1 MiB, 4 MiB]}}
    probes: {sockets: 100 ms, capture: [stream]}
  - id: pairs
    path: cable
    flows:
      - {name: one, algorithm: "${first}"}
      - {name: two, from: client2, algorithm: "${second}"}
    sweep: {product: {first: [standard, highspeed], second: [standard, highspeed]}}
    probes: {sockets: 100 ms}
"""


@cache
def study() -> Study:
    """The study above."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "study.yaml"
        path.write_text(STUDY, encoding="utf-8")
        return load_study(path)
