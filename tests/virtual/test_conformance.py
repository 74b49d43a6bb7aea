# SPDX-License-Identifier: Apache-2.0
"""The kernel's congestion controls against the published laws of the study `_laws`.

At least one experiment for each algorithm, and TCP's timers: a third of the runs, a fifth of their time. After a change
of a kernel `./just reproduce _laws` judges all laws.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from guests import virtual

from longfat.cli.console import Output
from longfat.cli.reproduce import reproduce
from longfat.relations.judge import read_verdicts

pytestmark = [pytest.mark.virtual, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
EXPERIMENTS = (
    *("reno", "reno-parallel", "scalable-two", "scalable-lwnd-16", "highspeed-plain", "htcp-queue", "bic", "cubic"),
    *("vegas", "westwood", "lp", "hstcp-lp-idle", "fast-two", "compound-idle"),
    *("timer-ack", "timer-reordering", "timer-probe", "timer-timeout"),
)


def test_the_kernel_meets_the_laws_or_deviates_as_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    virtual()
    study = shutil.copytree(ROOT / "experiments/_laws", tmp_path / "experiments/_laws") / "study.yaml"
    (tmp_path / "kernels").symlink_to(ROOT / "kernels")
    text = study.read_text(encoding="utf-8")
    assert "  repetitions: 2\n  clock_tolerance: 0 ppm" in text  # exact: one decides
    study.write_text(text.replace("  repetitions: 2\n", "  repetitions: 1\n", 1), encoding="utf-8")
    monkeypatch.setenv("LONGFAT_ROOT", str(tmp_path))
    with open(os.devnull, "w") as nowhere:
        assert reproduce(Output(file=nowhere), "_laws", only=",".join(EXPERIMENTS), results=tmp_path / "results")
    found = [verdict for verdict in read_verdicts(tmp_path / "results") if verdict.why != "runs missing"]
    assert len(found) >= 30
    assert {verdict.claim for verdict in found if verdict.verdict != "reproduced" and not verdict.deviation} == set()
