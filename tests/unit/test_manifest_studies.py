# SPDX-License-Identifier: Apache-2.0
"""The shipped studies load, have the artifacts they promise, and keep to their time."""

from pathlib import Path

import pytest

from longfat.analysis.figures import load_figures
from longfat.manifest import Study, load_study
from longfat.plan import build_plan, estimate

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def study(name: str) -> Study:
    return load_study(EXPERIMENTS / name / "study.yaml")


def test_sandia_has_every_figure_and_table_of_the_paper() -> None:
    drawn = [figure.artifact for figure in load_figures(EXPERIMENTS / "sandia-2003" / "figures.yaml").figures]
    paper = {*(f"fig-{number}" for number in range(1, 49)), "tab-1", "tab-2", "tab-3"}
    assert paper <= set(drawn)
    assert len(drawn) == len(set(drawn))


def test_the_papers_grid_is_ten_runs_of_three_algorithms_at_thirteen_windows() -> None:
    plan = build_plan(study("sandia-2003"), profile="paper", only=["fig-11"], pins={})
    assert len(plan.runs) == 10 * 3 * 13
    for run in plan.runs:
        assert run.spec.flows[0].duration_us == 10_000_000
        assert run.spec.links[0].a.egress.queue.limit_packets == 100 + 85  # txqueuelen and ring


def test_windows_are_asked_for_as_the_paper_names_them() -> None:
    plan = build_plan(study("sandia-2003"), profile="paper", only=["fig-11"], pins={})
    requested = {run.factors["window"]: run.spec.flows[0].window_bytes for run in plan.runs}
    assert requested[16 << 20] == 16 << 20
    assert requested[512 << 10] == 512 << 10


def test_the_drops_of_figures_2_to_4_stand_where_the_paper_has_them() -> None:
    plan = build_plan(study("sandia-2003"), profile="smoke", only=["fig-1", "fig-2", "fig-3", "fig-4"], pins={})
    drops = {
        run.artifacts[0]: [drop.at_us for link in run.spec.links for drop in link.a.egress.drops] for run in plan.runs
    }
    assert drops == {"fig-1": [], "fig-2": [3_000_000], "fig-3": [1_000_000], "fig-4": [1_400_000]}


@pytest.mark.parametrize(
    ("name", "profile", "minutes"),
    [
        ("_smoke", "quick", 1),
        ("sandia-2003", "smoke", 2),
        ("sandia-2003", "quick", 15),
        ("trinh-2004", "smoke", 2),
        ("trinh-2004", "quick", 15),
    ],
)
def test_a_profile_keeps_to_its_time_on_two_cores(name: str, profile: str, minutes: int) -> None:
    plan = build_plan(study(name), profile=profile, pins={"backend": "virtual"})
    assert estimate(plan, jobs=2).wall_seconds < minutes * 60


def test_what_only_the_papers_simulator_can_do_is_planned_for_it_alone() -> None:
    plans = {name: build_plan(study("trinh-2004"), pins={"backend": name}) for name in ("virtual", "ns2")}
    versions = {name: {run.factors.get("version") for run in plan.runs} - {None} for name, plan in plans.items()}
    assert versions == {"virtual": {"sack", "newreno"}, "ns2": {"sack", "newreno", "reno"}}
    assert plans["ns2"].excluded == ()


def test_high_window_fits_each_link_of_the_study() -> None:
    plan = build_plan(study("trinh-2004"), profile="paper", only=["mixture"], pins={})
    for run in plan.runs:
        highspeed = run.spec.flows[0]
        declared = float(run.spec.cca_parameters(highspeed)["high_window_milli"])
        assert declared == pytest.approx(float(run.factors["rate"]) * 0.1 / 8 / 1500 * 1000, abs=1)
