# SPDX-License-Identifier: Apache-2.0
"""A study's own programs: what a manifest says of them, their files, their gates, their metric."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from longfat.backends import own_files
from longfat.cli.run import files_of
from longfat.data.study_folder import StudyFolder
from longfat.plan import build_plan
from longfat.spec.gates import Evidence
from longfat.spec.runspec import RunSpec
from longfat.study.load import load_study
from longfat.study.traffic import misses
from longfat.system.errors import RigError, SettledError, StudyError

MANIFEST = """\
format: 2
study: pieces
title: Traffic in pieces
algorithms: {{standard: {{cca: reno}}}}
experiments:
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
    for old, new in changes:
        assert old in entry
        entry = entry.replace(old, new)
    (folder / "study.yaml").write_text(MANIFEST.format(entry=entry), encoding="utf-8")
    return build_plan(load_study(folder / "study.yaml"), profile="paper", pins={}).runs[0].spec


def test_a_program_is_its_words_and_the_digests_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "send.py").write_text("pass")
    (one,) = spec(tmp_path, OWN).programs
    assert one.send == ("python3", "send.py", "{address}", "{port}")
    assert one.receive == ("./receive", "{port}", "a b")
    assert one.files == {"send.py": hashlib.sha256(b"pass").hexdigest()}
    before = spec(tmp_path, OWN).run_id
    (tmp_path / "send.py").write_text("pass  # otherwise")
    assert spec(tmp_path, OWN).run_id != before


def test_a_program_suffices_for_an_experiment(tmp_path: Path) -> None:
    (tmp_path / "send.py").write_text("pass")
    text = "".join(line for line in MANIFEST.splitlines(keepends=True) if "beside" not in line)
    (tmp_path / "study.yaml").write_text(text.format(entry=OWN), encoding="utf-8")
    (run,) = build_plan(load_study(tmp_path / "study.yaml"), profile="paper", pins={}).runs
    assert [one.name for one in run.spec.sent] == ["own"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("{address}", "{host}"), "programs[0].send: unknown word {host}; allowed: {address}, {port}"),
        (("'a b'", "'a b"), "programs[0].receive: "),
        (("send.py]", "send.py, send.py]"), "programs[0].files: 'send.py' is given twice"),
        (("send.py]", "absent]"), "programs[0].files[0]: "),
        (("send.py]", "../send.py]"), "programs[0].files[0]: "),
    ],
)
def test_faults_are_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    (tmp_path / "send.py").write_text("pass")
    with pytest.raises(StudyError) as caught:
        spec(tmp_path, OWN, change)
    found = [f"{problem.key}: {problem.message}" for problem in caught.value.problems]
    assert any(said in problem for problem in found), found


def test_a_file_of_a_study_leads_to_no_other_of_the_users(tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    (tmp_path / "key").write_text("secret")
    (study / "send.py").symlink_to("../key")
    with pytest.raises(StudyError, match=r"'send\.py' is not in the study's folder"):
        spec(study, OWN)


EVIDENCE = {
    "nodes": {name: {"sysctls": {}, "offloads_on": []} for name in ("client1", "server")},
    "interfaces": [],
    "flows": [],
    "capture": {},
    "cpu_pressure_us": None,
    "memory_pressure": 0,
}


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


def test_a_file_that_is_absent_or_damaged_is_named(kept: tuple[Path, RunSpec], tmp_path: Path) -> None:
    cache, run = kept
    (reason,) = own_files.missing(run, tmp_path / "other")
    assert "lacks the file send.py" in reason
    (digest,) = run.programs[0].files.values()
    (cache / "files" / digest).write_text("something else")
    (tmp_path / "task").mkdir()
    with pytest.raises(RigError, match="the file is damaged"):
        own_files.copy(run, cache, tmp_path / "task")


def test_a_clock_that_stands_still_is_the_program_s_fault_where_there_is_one(kept: tuple[Path, RunSpec]) -> None:
    stopped = RigError("the guest's virtual clock stood still")
    told = own_files.explain_hang(stopped, kept[1])
    assert isinstance(told, SettledError)
    assert "while every program waits: own" in told.message
    assert own_files.explain_hang(stopped, RunSpec((), (), (), kept[1].probes, 1)) is stopped


def test_gates_of_programs_name_packets_and_endings_that_were_missed(kept: tuple[Path, RunSpec]) -> None:
    achieved = {
        **EVIDENCE,
        "programs": [{"programs": "own", "role": "send", "status": 3, "asked": False, "said": "no"}],
    }
    found = misses(Evidence(kept[1], achieved, [], {"programs": [{"programs": "own", "received_packets": 0}]}))
    assert "no packet of program own arrived for port 4433" in found
    assert "what sends of program own ended with status 3; it said: no" in found
