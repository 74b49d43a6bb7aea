# SPDX-License-Identifier: Apache-2.0
"""A study's own programs: their entry in a manifest, their files, their gates."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from fabricated_results import READ_BACK
from manifests import HEAD, changed, refused, spec_of

from longfat.backends import own_files
from longfat.cli.run import files_of
from longfat.data.study_folder import StudyFolder
from longfat.guest.files import copy_file
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Probes, Program, RunSpec
from longfat.study.traffic import misses
from longfat.study.traffic.programs import programs_left_their_files
from longfat.system.errors import RigError, StudyError

MANIFEST = """\
  - id: one
    topology: {{kind: dumbbell, rate: 10 Mbit/s, rtt: 40 ms, senders: 2}}
    flows: [{{name: beside, from: client2, to: server, algorithm: standard, duration: 60 s}}]
    {entry}
"""
OWN = (
    'programs: [{name: own, from: client1, to: server, send: "python3 send.py {address} {port}", '
    "receive: \"./receive {port} 'a b'\", files: [send.py], duration: 60 s}]"
)


def spec(folder: Path, entry: str, *changes: tuple[str, str]) -> RunSpec:
    return spec_of(folder, HEAD + MANIFEST.format(entry=changed(entry, *changes)))


def test_a_program_is_its_words_and_the_digests_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "send.py").write_text("pass")
    (one,) = spec(tmp_path, OWN).programs
    assert one.send == ("python3", "send.py", "{address}", "{port}")
    assert one.receive == ("./receive", "{port}", "a b")
    assert one.files == {"send.py": hashlib.sha256(b"pass").hexdigest()}
    before = spec(tmp_path, OWN).run_id
    (tmp_path / "send.py").write_text("pass  # otherwise")
    assert spec(tmp_path, OWN).run_id != before


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("{address}", "{host}", "send"),
        ("'a b'", "'a b", "receive"),
        ("send.py]", "send.py, send.py]", "files"),
        ("send.py]", "absent]", "files[0]"),
        ("send.py]", "../send.py]", "files[0]"),
        ("send.py]", "send.py], keep: [../spec.json]", "keep[0]"),
        ("send.py]", "send.py], keep: [/etc/passwd]", "keep[0]"),
        ("send.py]", "send.py], keep: [a.csv, b.csv, a.csv]", "keep"),
        ("send.py]", f"send.py], keep: {[f'f{number}' for number in range(17)]}", "keep"),
    ],
)
def test_faults_are_named(tmp_path: Path, old: str, new: str, key: str) -> None:
    (tmp_path / "send.py").write_text("pass")
    problems = refused(lambda: spec(tmp_path, OWN, (old, new)))
    assert [problem.key for problem in problems] == [f"experiments[0].programs[0].{key}"]


def test_a_file_of_a_study_leads_to_no_other_of_the_users(tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    (tmp_path / "key").write_text("secret")
    (study / "send.py").symlink_to("../key")
    with pytest.raises(StudyError, match=r"'send\.py' is not in the study's folder"):
        spec(study, OWN)


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Path, RunSpec]:
    """A cache folder that has the file of a run's program, and the run."""
    (tmp_path / "send.py").write_text("pass")
    run = spec(tmp_path, OWN)
    own_files.keep(files_of(StudyFolder(tmp_path)), tmp_path / "cache")
    return tmp_path / "cache", run


def test_files_of_a_study_reach_the_folder_of_a_run(kept: tuple[Path, RunSpec], tmp_path: Path) -> None:
    cache, run = kept
    (tmp_path / "task").mkdir()
    own_files.copy(run, cache, tmp_path / "task")
    assert [path.read_text() for path in (tmp_path / "task/files").iterdir()] == ["pass"]
    assert list(own_files.missing(run, cache)) == []
    assert len(list(own_files.missing(run, tmp_path / "other"))) == 1


def test_a_damaged_file_is_refused(kept: tuple[Path, RunSpec], tmp_path: Path) -> None:
    cache, run = kept
    (digest,) = run.programs[0].files.values()
    (cache / "files" / digest).write_text("something else")
    (tmp_path / "task").mkdir()
    with pytest.raises(RigError):
        own_files.copy(run, cache, tmp_path / "task")


def test_gates_of_programs_name_packets_and_endings_that_were_missed(kept: tuple[Path, RunSpec]) -> None:
    achieved = {
        **READ_BACK,
        "capture": {},
        "programs": [{"programs": "own", "role": "send", "status": 3, "asked": False, "said": "no"}],
    }
    found = misses(Evidence(kept[1], achieved, [], {"programs": [{"programs": "own", "received_packets": 0}]}))
    assert "no packet of program own arrived for port 4433" in found
    assert "what sends of program own ended with status 3; it said: no" in found


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
    ("found", "missed"),
    [
        ({"programs": "p", "file": "a.csv", "reason": None}, 0),
        ({"programs": "p", "file": "a.csv", "reason": "it is a link"}, 1),
        ({"programs": "q", "file": "a.csv", "reason": None}, 1),
    ],
)
def test_a_run_without_a_file_that_is_to_be_kept_is_invalid(found: dict[str, Any], missed: int) -> None:
    program = Program("p", "client1", "server", ("a",), ("b",), 1, keep=("a.csv",))
    evidence = Evidence(RunSpec((), (), (), Probes(), 1, programs=(program,)), {"program_files": [found]}, [])
    assert ["a.csv" in miss for miss in programs_left_their_files(evidence)] == [True] * missed
