# SPDX-License-Identifier: Apache-2.0
"""Study ``tiny`` of one flow with two windows, and calls of the command."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from longfat.cli import app

STUDY = """
format: 2
study: tiny
title: One flow with two windows
stack: modern
seed: 1
algorithms:
  reno: {cca: reno}
hosts: {mtu: 1500 B, txqueuelen: 100}
experiments:
  - id: delay
    topology: {kind: delay, rate: 100 Mbit/s, rtt: 20 ms}
    flows:
      - {name: flow1, from: client1, to: server, algorithm: reno, window: "${window}", duration: 1 s}
    sweep:
      product: {window: [64 KiB, 1 MiB]}
    repetitions: 2
"""


def write_tiny(root: Path, text: str = STUDY) -> Path:
    """Write the manifest into a repository and return the study's folder."""
    folder = root / "experiments" / "tiny"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    return folder


def call(*arguments: object) -> Result:
    """Call the command."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
