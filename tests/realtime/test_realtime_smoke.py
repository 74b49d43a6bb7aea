# SPDX-License-Identifier: Apache-2.0
"""Two runs of the study `_crosscheck` in real time, by the command that users give, from the lock to the dataset.

No noise excuses an exit status other than 0 or a flow that lacks more of its rate than the machine took from it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scarce_backends import STARVED, realtime, skip_if_busy, skip_if_starved

from longfat.dataset.build import build_dataset
from longfat.spec.gates.behaviour import STARVED_SHARE

pytestmark = [pytest.mark.alone, pytest.mark.root, pytest.mark.virtual]

CHECKOUT = Path(__file__).parents[2]
PAYLOAD_BPS = 94.1e6  # of 100 Mbit/s, as the claims of the study have it
TOLERANCE = 0.05
LIMIT_S = "240"  # most of it for a machine that is calm again
TIMED_OUT = 124  # exit status of timeout(1)
RUNS = 3  # three pairs of algorithms, one repetition


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """The study with one repetition."""
    folder = tmp_path / "_crosscheck"
    folder.mkdir()
    text = (CHECKOUT / "experiments/_crosscheck/study.yaml").read_text(encoding="utf-8")
    assert "    repetitions: 8" in text and "duration: 6 s" in text
    text = text.replace("    repetitions: 8", "    repetitions: 1").replace("duration: 6 s", "duration: 3 s")
    (folder / "study.yaml").write_text(text.partition("\nprofiles:")[0] + "\n", encoding="utf-8")
    return folder


def lacking(run: Path) -> float:
    """Return the share of the payload of the rate that the flows of a run did not carry."""
    flows = json.loads((run / "flows.json").read_text(encoding="utf-8"))
    return float(1 - sum(flow["goodput_bps"] for flow in flows) / PAYLOAD_BPS)


def waited(run: Path) -> float:
    """Return the share of a run's time in which tasks had no CPU, at most the share of a valid run."""
    achieved, outcome = (json.loads((run / f"{name}.json").read_text()) for name in ("achieved", "outcome"))
    return float(min((achieved["cpu_pressure_us"] or 0) / outcome["end_us"], STARVED_SHARE))


def test_the_command_runs_a_study_in_real_time(study: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    options = ["--only", "pair", "--profile", "paper", "--backend", "mininet", "--results", str(results)]
    with realtime("mininet"):
        skip_if_busy()
        done = subprocess.run(
            ["timeout", "--signal=INT", LIMIT_S, sys.executable, "-m", "longfat", "run", str(study), *options],
            env=os.environ | {"PYTHONPATH": str(CHECKOUT / "src")},
            capture_output=True,
            text=True,
        )
    starved = STARVED.search((results / "events.jsonl").read_text(encoding="utf-8"))
    if done.returncode == TIMED_OUT and starved:
        pytest.skip(f"the machine was not calm again in {LIMIT_S} s: {starved[0]}")
    build_dataset(results)
    skip_if_starved(results)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    runs = sorted((results / "raw").glob("pair*"))
    assert len(runs) == RUNS
    assert {run.name: lacking(run) for run in runs if lacking(run) > waited(run) + TOLERANCE} == {}
