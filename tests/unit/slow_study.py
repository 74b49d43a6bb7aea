# SPDX-License-Identifier: Apache-2.0
"""A study of slow runs in a process of its own, to be looked at or killed while it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

STUDY = """
import sys
from pathlib import Path
from conftest import plan_of
from fake_backend import FakeBackend
from longfat.execute.attempt import Attempt, attempt_run
from longfat.execute.results import open_results
from longfat.execute.study import execute

if __name__ == "__main__":
    with open_results(Path(sys.argv[1])) as results:
        execute(plan_of(8), FakeBackend(wall_seconds=0.4), results, jobs=2)
"""


def start_study(tmp_path: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a slow study of 8 runs in a process of its own; return when at least two runs are recorded."""
    script, results = tmp_path / "study.py", tmp_path / "results"
    script.write_text(STUDY)
    tests = Path(__file__).parents[1]
    path = os.pathsep.join(map(str, (tests, tests / "fake", tests.parent / "src")))
    process = subprocess.Popen(
        [sys.executable, str(script), str(results)], env=os.environ | {"PYTHONPATH": path, "TMPDIR": str(tmp_path)}
    )
    deadline = time.monotonic() + 30
    while len(list((results / "raw").glob("one-flow*"))) < 2:
        assert time.monotonic() < deadline and process.poll() is None, "the study did not get going"
        time.sleep(0.02)
    return process, results


def workers_of(process: int) -> list[str]:
    """The process numbers of all workers of a study, whichever thread started them."""
    tasks = Path("/proc", str(process), "task").iterdir()
    return [pid for task in tasks for pid in (task / "children").read_text().split()]
