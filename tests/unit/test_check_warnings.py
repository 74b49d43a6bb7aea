# SPDX-License-Identifier: Apache-2.0
"""Warnings of ``longfat check`` about a whole folder: its name, and repetitions that decide no claim."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from longfat.cli import app
from longfat.data.study_folder import StudyFolder

STUDY = """\
format: 2
study: cables
title: Cables
algorithms: {{reno: {{cca: reno}}}}
experiments:
  - id: first
    topology: {{kind: delay, rate: 10 Mbit/s, rtt: 20 ms}}
    flows: [{{name: f, from: client1, to: server, algorithm: reno, duration: 5 s, start_jitter: {jitter}}}]
    repetitions: {repetitions}
    {clocks}
"""
EXACT = "clock_tolerance: 0 ppm\n    phases: fixed"
CLAIMS = """\
format: 2
study: cables
claims:
  - id: full
    statement: The cable is full.
    relation: goodput[first] > 5
    {needs}
"""


def warnings(folder: Path, repetitions: int = 3, jitter: str = "1 s", clocks: str = "", needs: str = "") -> list[str]:
    folder.mkdir()
    text = STUDY.format(repetitions=repetitions, jitter=jitter, clocks=clocks)
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    (folder / "claims.yaml").write_text(CLAIMS.format(needs=needs), encoding="utf-8")
    return [str(one) for one in StudyFolder(folder).warnings]


def test_a_name_that_is_not_the_folder_s_is_warned_of(tmp_path: Path) -> None:
    (one,) = warnings(tmp_path / "h3-cables")
    assert "'cables' is not the name of the folder, 'h3-cables'" in one
    assert CliRunner().invoke(app, ["check", str(tmp_path / "h3-cables")]).output.startswith("h3-cables: ")
    assert warnings(tmp_path / "cables") == []


@pytest.mark.parametrize(
    ("keys", "needed"),
    [
        ({"repetitions": 2}, "3 are needed by 'full'"),
        ({"repetitions": 1}, "3 are needed by 'full'"),
        ({"repetitions": 1, "jitter": "0 s"}, "3 are needed by 'full'"),
        ({"repetitions": 1, "clocks": EXACT}, "3 are needed by 'full'"),
        ({"repetitions": 1, "jitter": "0 s", "clocks": EXACT}, None),
        ({"repetitions": 3}, None),
    ],
)
def test_repetitions_that_decide_no_claim_are_warned_of(
    tmp_path: Path, keys: dict[str, object], needed: str | None
) -> None:
    found = warnings(tmp_path / "cables", **keys)  # type: ignore[arg-type]
    assert [one for one in found if "decide no claim" in one] == [one for one in found if needed and needed in one]
    assert len(found) == (needed is not None)
