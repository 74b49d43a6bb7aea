# SPDX-License-Identifier: Apache-2.0
"""A repository with a small study, its kernel checks and the evidence of its runs, all made by the fake backend."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from fabricated_results import write_results, write_study
from fake_backend import FakeBackend
from test_kernel_check import STUDY as CANARIES

from longfat.cli import evidence
from longfat.cli.console import Output
from longfat.data.study_folder import StudyFolder
from longfat.evidence.baselines import FOLDER, read_baselines
from longfat.evidence.judged import Evidenced, evidence_of

ANOTHER = FakeBackend(achieved_rate_factor=1 + 1e-12)  # another digest, and no number differs


def repository(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The study's folder in a repository at ``root``, which the verbs then take for theirs."""
    monkeypatch.setenv("LONGFAT_ROOT", str(root))
    monkeypatch.setenv("LONGFAT_CACHE", str(root / "cache"))
    canaries = root / "experiments" / "_canary"
    canaries.mkdir(parents=True)
    (canaries / "study.yaml").write_text(CANARIES, encoding="utf-8")
    return write_study(root)


def with_evidence(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make such a repository with the evidence of all runs; the results are in ``results/small``."""
    study = repository(root, monkeypatch)
    write_results(study, root / "results" / "small")
    add(root / "results" / "small")
    return study


def copied(made: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of such a repository at ``root``, and the study's folder in it."""
    monkeypatch.setenv("LONGFAT_ROOT", str(root))
    monkeypatch.setenv("LONGFAT_CACHE", str(root / "cache"))
    shutil.copytree(made, root, dirs_exist_ok=True)
    return root / "experiments" / "small"


def add(results: Path, *, new_baseline: bool = False) -> str:
    """Add results to the evidence; give what was printed."""
    return printed(lambda console: evidence.add(console, "small", results, 1, new_baseline))


def printed(command: Callable[[Output], object], *, as_json: bool = False) -> str:
    """Return what a command prints, except its result as JSON."""
    output = io.StringIO()
    command(Output(as_json=as_json, file=output, width=200))
    return output.getvalue()


def evidence_in(study: Path) -> Evidenced:
    """What the evidence of a study in such a repository says."""
    found = evidence_of(StudyFolder(study), read_baselines(study.parents[1] / FOLDER))
    assert found is not None
    return found


def files_of(study: Path) -> list[Path]:
    """The files of a study's evidence."""
    return sorted((study / "evidence").rglob("*.jsonl"))


def file_of(study: Path, experiment: str) -> Path:
    """The one file of an experiment."""
    (path,) = (path for path in files_of(study) if path.stem == experiment)
    return path


def change(path: Path, before: str, after: str, count: int = 1) -> None:
    """Replace the first occurrences of a text in a file."""
    text = path.read_text(encoding="ascii")
    assert before in text
    path.write_text(text.replace(before, after, count), encoding="ascii")


def git(folder: Path, *arguments: str) -> str:
    """Call git in a folder; return its output."""
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def committed(root: Path) -> None:
    """Commit all files twice, so that the evidence has a parent commit."""
    for arguments in (("init",), ("add", "experiments"), ("commit", "-m", "a"), ("commit", "--allow-empty", "-m", "b")):
        git(root, *arguments)
