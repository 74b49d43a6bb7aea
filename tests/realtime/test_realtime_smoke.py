# SPDX-License-Identifier: Apache-2.0
"""The smoke study in real time, by the command that users give: in namespaces and in containers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pytest
from scarce_backends import longest_wait, realtime, skip_if_starved

pytestmark = [pytest.mark.root, pytest.mark.virtual, pytest.mark.slow]

CHECKOUT = Path(__file__).parents[2]
CALM = 0.12  # what the laboratory's own programs wait for each other on an idle machine, and a little more


@pytest.fixture(params=["mininet", pytest.param("containernet", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, str]]]:
    """The name of a backend and the environment of its command."""
    with realtime(request.param) as (_, environment):
        yield request.param, environment


def test_the_smoke_study_runs_in_real_time(backend: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    name, environment = backend
    results = tmp_path / "results"
    command = [sys.executable, "-m", "longfat", "smoke", "--backend", name, "--results", str(results)]
    done = run(
        command,
        cwd=CHECKOUT,
        env=environment | {"PYTHONPATH": str(CHECKOUT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    skip_if_starved(results)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = json.loads((results / "verdicts.json").read_text())["verdicts"]
    verdicts = {item["claim"]: item["verdict"] for item in told}  # those that compare backends have nothing here
    measured = {claim for claim, word in verdicts.items() if word != "not_measured"}
    assert measured == {"payload-of-the-rate", "the-same-for-another-algorithm"}
    waited = longest_wait(results)
    if waited > CALM and "inconclusive" in verdicts.values():
        pytest.skip(f"tasks waited for a CPU up to {waited:.0%} of the time, and so the runs differ too much")
    assert {verdicts[claim] for claim in measured} == {"reproduced"}
    assert name in (results / "report.html").read_text()
