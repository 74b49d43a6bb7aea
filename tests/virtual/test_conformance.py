# SPDX-License-Identifier: Apache-2.0
"""The kernel's congestion controls against the published laws of the study `_laws`.

At least one experiment for each algorithm, and TCP's timers: a third of the runs, a fifth of their time. After a change
of a kernel `./just reproduce _laws` judges all laws.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from guests import virtual

from longfat.cli.console import Output
from longfat.cli.reproduce import reproduce
from longfat.relations.judge import read_verdicts

pytestmark = [pytest.mark.virtual, pytest.mark.slow]

EXPERIMENTS = (
    *("reno", "reno-parallel", "scalable-two", "scalable-lwnd-16", "highspeed-plain", "htcp-queue", "bic", "cubic"),
    *("vegas", "westwood", "lp", "hstcp-lp-idle", "fast-two", "compound-idle"),
    *("timer-ack", "timer-reordering", "timer-probe", "timer-timeout"),
)


def test_the_kernel_meets_the_laws_or_deviates_as_stated(tmp_path: Path) -> None:
    virtual()
    with open(os.devnull, "w") as nowhere:
        assert reproduce(Output(file=nowhere), "_laws", only=",".join(EXPERIMENTS), results=tmp_path)
    found = [verdict for verdict in read_verdicts(tmp_path) if verdict.why != "runs missing"]
    assert len(found) >= 30
    assert {verdict.claim for verdict in found if verdict.verdict != "reproduced" and not verdict.deviation} == set()
