# SPDX-License-Identifier: Apache-2.0
"""The container image under Apptainer, as a normal user, whose own environment and packages must not reach it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from longfat.cli.build import build_container as build
from longfat.report.reference import compare
from longfat.studies import StudyFolder

STUDY = Path(__file__).parents[2] / "experiments" / "_smoke"
USER = 12345
BROKEN = 'raise ImportError("a package of the user")\n'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("apptainer") and shutil.which("buildah")), reason="apptainer or buildah is not installed"
    ),
]


@pytest.fixture
def home() -> Iterator[Path]:
    """The home of a normal user, outside of pytest's folders, which are this user's alone."""
    with tempfile.TemporaryDirectory(prefix="apptainer-") as folder:
        Path(folder).chmod(0o755)
        home = Path(folder, "home")
        for place in ("results", "tmp", "path", ".local/lib/python3.11/site-packages"):
            (home / place).mkdir(parents=True)
        for place in ("path", ".local/lib/python3.11/site-packages"):
            (home / place / "numpy.py").write_text(BROKEN, encoding="utf-8")
        if os.geteuid() == 0:
            for path in (home, *home.rglob("*")):
                os.chown(path, USER, USER)
        yield home


def apptainer(home: Path, *arguments: str | Path) -> None:
    """Call it as the user, with the environment of one who uses Python and Longfat outside too."""
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "PYTHONPATH": str(home / "path"),
        "LONGFAT_CACHE": str(home / "nothing"),
    }
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 else []
    done = subprocess.run([*user, "apptainer", *arguments], env=own, cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_smoke_study_ends_under_apptainer_as_it_does_outside(home: Path) -> None:
    sif = home / "longfat.sif"
    apptainer(home, "build", sif, f"docker-archive:{build(Console())}")
    apptainer(home, "run", "--bind", f"{home}/results:/results", sif, "reproduce", "_smoke")
    match = compare(home / "results/_smoke", StudyFolder(STUDY))
    assert match.status in ("identical", "no_reference"), match.lines
