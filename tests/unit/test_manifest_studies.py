# SPDX-License-Identifier: Apache-2.0
"""The shipped studies load, have the artifacts they promise, and keep to their time."""

from pathlib import Path

import pytest

from longfat.manifest import Study, load_study
from longfat.plan import build_plan, estimate

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def study(name: str) -> Study:
    return load_study(EXPERIMENTS / name / "study.yaml")


def test_sandia_has_its_first_figures() -> None:
    assert study("sandia-2003").artifacts == (
        *("fig-1", "fig-2", "fig-3", "fig-4"),
        *("fig-7", "fig-8", "fig-10", "fig-11"),
    )


def test_the_papers_grid_is_ten_runs_of_three_algorithms_at_thirteen_windows() -> None:
    plan = build_plan(study("sandia-2003"), profile="paper", pins={})
    assert len(plan.runs) == 4 + 4 * 10 * 3 * 13
    for run in plan.runs:
        if run.experiment == "delay-9000":
            assert run.spec.flows[0].duration_us == 10_000_000
            assert run.spec.links[0].a.egress.queue.limit_packets == 100


def test_windows_are_requested_by_half() -> None:
    plan = build_plan(study("sandia-2003"), profile="paper", only=["fig-11"], pins={})
    requested = {run.factors["window"]: run.spec.flows[0].window_bytes for run in plan.runs}
    assert requested[16 << 20] == 8 << 20
    assert requested[512 << 10] == 256 << 10


def test_the_drops_of_figures_2_to_4_stand_where_the_paper_has_them() -> None:
    plan = build_plan(study("sandia-2003"), profile="smoke", only=["fig-1", "fig-2", "fig-3", "fig-4"], pins={})
    drops = {
        run.artifacts[0]: [drop.at_us for link in run.spec.links for drop in link.a.egress.drops] for run in plan.runs
    }
    assert drops == {"fig-1": [], "fig-2": [3_000_000], "fig-3": [1_000_000], "fig-4": [1_400_000]}


@pytest.mark.parametrize(
    ("name", "profile", "minutes"),
    [("_smoke", "quick", 1), ("sandia-2003", "smoke", 2), ("sandia-2003", "quick", 10)],
)
def test_a_profile_keeps_to_its_time_on_two_cores(name: str, profile: str, minutes: int) -> None:
    assert estimate(build_plan(study(name), profile=profile, pins={}), jobs=2).wall_seconds < minutes * 60
