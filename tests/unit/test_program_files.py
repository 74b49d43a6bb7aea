# SPDX-License-Identifier: Apache-2.0
"""Files that a study's programs leave: plain ones of a limited size come back, and anything else is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from longfat.guest.files import copy_file
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Probes, Program, RunSpec
from longfat.study.load import load_study
from longfat.study.traffic.programs import programs_left_their_files
from longfat.system.errors import StudyError

STUDY = """
format: 2
study: own
title: own
experiments:
  - id: one
    topology: {kind: direct, rate: 1 Mbit/s}
    programs:
      - {name: p, from: client1, to: server, send: a, receive: b, duration: 1 s, keep: KEPT}
"""


def test_a_plain_file_is_copied_byte_by_byte(tmp_path: Path) -> None:
    (tmp_path / "counts.bin").write_bytes(bytes(range(256)))
    assert copy_file(tmp_path / "counts.bin", tmp_path / "raw/p/counts.bin", 256) is None
    assert (tmp_path / "raw/p/counts.bin").read_bytes() == bytes(range(256))


def test_whatever_is_no_plain_file_or_too_long_is_not_copied_and_the_reason_returned(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    names = ("absent", "link", "pipe", "folder", "secret")
    reasons = {name: copy_file(tmp_path / name, tmp_path / "raw" / name, 5) for name in names}
    assert reasons == {
        "absent": "it is not there",
        "link": "it is a link",
        "pipe": "it is not a plain file",
        "folder": "it is not a plain file",
        "secret": "it has 6 bytes, allowed 5",
    }
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([{"programs": "p", "file": "a.csv", "reason": None}], None),
        ([{"programs": "p", "file": "a.csv", "reason": "it is a link"}], "it is a link"),
        ([{"programs": "q", "file": "a.csv", "reason": None}], "it was not looked for"),
    ],
)
def test_a_run_without_a_file_that_is_to_be_kept_is_invalid(found: list[dict[str, Any]], reason: str | None) -> None:
    program = Program("p", "client1", "server", ("a",), ("b",), 1, keep=("a.csv",))
    evidence = Evidence(RunSpec((), (), (), Probes(), 1, programs=(program,)), {"program_files": found}, [])
    expected = [] if reason is None else [f"file a.csv of program p was not kept: {reason}"]
    assert list(programs_left_their_files(evidence)) == expected


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ("[../spec.json]", "is not the name of a file, without a folder"),
        ("[/etc/passwd]", "is not the name of a file, without a folder"),
        ("[a.csv, b.csv, a.csv]", "'a.csv' is given twice"),
        (str([f"f{number}" for number in range(17)]), "17"),
    ],
)
def test_the_manifest_names_few_files_and_each_once_and_without_a_folder(
    kept: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "study.yaml").write_text(STUDY.replace("KEPT", kept))
    with pytest.raises(StudyError) as caught:
        load_study(tmp_path / "study.yaml")
    assert any(message in problem.message and "keep" in str(problem.key) for problem in caught.value.problems)
