# SPDX-License-Identifier: Apache-2.0
"""The whole chain on real guests: the smoke study ends with the numbers that the repository keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from longfat.data.study_folder import StudyFolder
from longfat.report.reference import compare

pytestmark = pytest.mark.virtual

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "experiments" / "_smoke"


def reproduce(results: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "longfat", "reproduce", "_smoke", "--results", str(results)]
    environment = {**os.environ, "LONGFAT_ROOT": str(ROOT), "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "120"}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.fixture
def busy_cores() -> Iterator[None]:
    """Other work on every core, two processes each, ended by their ids."""
    cores = len(os.sched_getaffinity(0))
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * cores)]
    yield
    for spinner in spinners:
        spinner.kill()
        spinner.wait()


def test_the_smoke_study_ends_with_the_reference_of_the_repository(tmp_path: Path) -> None:
    done = reproduce(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    match = compare(tmp_path, StudyFolder(STUDY))
    if match.status == "no_reference":
        pins = json.loads((tmp_path / "lock.json").read_text())["pins"]
        pytest.skip(f"no reference for kernel {pins['kernel'][:12]} and image {pins['image'][:12]}")
    assert match.status == "identical", match.lines
    assert "reference: identical" in done.stdout


def test_a_busy_machine_gives_the_same_dataset(tmp_path: Path, busy_cores: None) -> None:
    assert reproduce(tmp_path / "busy").returncode == 0
    reference = compare(tmp_path / "busy", StudyFolder(STUDY))
    if reference.status == "no_reference":
        assert reproduce(tmp_path / "again").returncode == 0
        files = [sorted((tmp_path / name / "dataset").iterdir()) for name in ("busy", "again")]
        assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]
    else:
        assert reference.status == "identical", reference.lines
