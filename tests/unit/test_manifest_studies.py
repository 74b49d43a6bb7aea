# SPDX-License-Identifier: Apache-2.0
"""The shipped studies load, have the artifacts they promise, and keep to their time."""

from pathlib import Path

import pytest

from longfat.catalog.stacks import STACKS
from longfat.errors import StudyError
from longfat.manifest.load import load_study
from longfat.manifest.study import Study
from longfat.plan import build_plan, estimate
from longfat.plan.resolve import resolve
from longfat.relations.syntax import parse
from longfat.studies import StudyFolder

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


STUDIES = ("sandia-2003", "kelly-2003", "trinh-2004", "slac-2003", "vista-2006")


def study(name: str) -> Study:
    return load_study(EXPERIMENTS / name / "study.yaml")


def test_sandia_has_every_figure_and_table_of_the_paper() -> None:
    drawn = [figure.artifact for figure in StudyFolder(EXPERIMENTS / "sandia-2003").figures.figures]
    paper = {*(f"fig-{number}" for number in range(1, 49)), "tab-1", "tab-2", "tab-3"}
    assert paper <= set(drawn)
    assert len(drawn) == len(set(drawn))


def test_the_papers_grid_is_ten_runs_of_three_algorithms_at_thirteen_windows() -> None:
    plan = build_plan(study("sandia-2003"), profile="paper", only=["delay-9000"], pins={})
    assert len(plan.runs) == 10 * 3 * 13
    for run in plan.runs:
        assert run.spec.flows[0].duration_us == 10_000_000
        assert run.spec.links[0].a.egress.queue.limit_packets == 100 + 85  # txqueuelen and ring


def test_windows_are_asked_for_as_the_paper_names_them() -> None:
    plan = build_plan(study("sandia-2003"), profile="paper", only=["delay-9000"], pins={})
    requested = {run.factors["window"]: run.spec.flows[0].window_bytes for run in plan.runs}
    assert requested[16 << 20] == 16 << 20
    assert requested[512 << 10] == 512 << 10


def test_the_drops_of_figures_2_to_4_stand_where_the_paper_has_them() -> None:
    shown = StudyFolder(EXPERIMENTS / "sandia-2003").experiments_by_artifact()
    plan = build_plan(study("sandia-2003"), profile="smoke", pins={})
    drops = {
        artifact: [drop.at_us for link in run.spec.links for drop in link.a.egress.drops]
        for artifact in ("fig-1", "fig-2", "fig-3", "fig-4")
        for run in plan.runs
        if run.experiment == shown[artifact][0]
    }
    assert drops == {"fig-1": [], "fig-2": [3_000_000], "fig-3": [1_000_000], "fig-4": [1_400_000]}


def test_kelly_has_every_slide_with_a_figure_or_table() -> None:
    drawn = [figure.artifact for figure in StudyFolder(EXPERIMENTS / "kelly-2003").figures.figures]
    slides = ("2-table", "4-recovery", "5-algorithm", "6-fairness", "7-stability", "8-variance", "10-bulk", "11-web")
    assert {f"slide-{name}" for name in slides} <= set(drawn)
    assert len(drawn) == len(set(drawn))


def test_the_papers_transfers_are_of_2_gigabytes_for_1200_seconds_in_one_to_sixteen_flows() -> None:
    plan = build_plan(study("kelly-2003"), profile="paper", only=["bulk"], pins={})
    assert sorted({len(run.spec.flows) for run in plan.runs}) == [1, 2, 4, 8, 16]
    assert {(flow.transfer_bytes, flow.duration_us) for run in plan.runs for flow in run.spec.flows} == {
        (2_000_000_000, 1_200_000_000)
    }


def test_the_papers_web_users_are_4200_beside_four_flows_on_two_machines() -> None:
    plan = build_plan(study("kelly-2003"), profile="paper", only=["web"], pins={})
    for run in plan.runs:
        assert sum(users.users for users in run.spec.web) == 4200
        assert [(flow.sender, flow.streams) for flow in run.spec.flows] == [("client1", 2), ("client2", 2)]


@pytest.mark.parametrize(
    ("name", "profile", "minutes"),
    [
        ("_smoke", "quick", 1),
        *((name, profile, minutes) for name in STUDIES for profile, minutes in (("smoke", 2), ("quick", 15))),
    ],
)
def test_a_profile_keeps_to_its_time_on_two_cores(name: str, profile: str, minutes: int) -> None:
    plan = build_plan(study(name), profile=profile, pins={"backend": "virtual"})
    assert estimate(plan, jobs=2).wall_seconds < minutes * 60


@pytest.mark.parametrize("name", STUDIES)
def test_experiments_of_a_study_that_need_the_same_run_pair_so_that_it_is_run_once(name: str) -> None:
    loaded = study(name)
    drawing: dict[str, set[str]] = {}
    for point in (point for swept in loaded.experiments for point in swept.points):
        scenario = resolve(point.experiment, loaded, STACKS[loaded.header.stack], {}).to_json()
        jitters = [str(flow.start_jitter) for flow in point.experiment.every_flow]
        experiment = point.experiment.pairs_with or point.experiment.id
        drawing.setdefault(" ".join([scenario, *jitters]), set()).add(experiment)
    assert [experiments for experiments in drawing.values() if len(experiments) > 1] == []


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


def test_vista_has_every_figure_and_table_of_the_paper() -> None:
    drawn = [figure.artifact for figure in StudyFolder(EXPERIMENTS / "vista-2006").figures.figures]
    paper = {*(f"fig-{number}" for number in range(1, 16)), *(f"tab-{number}" for number in range(1, 14))}
    assert paper <= set(drawn)
    assert len(drawn) == len(set(drawn))


def test_the_papers_eight_flows_start_in_pairs_and_send_together_for_fifteen_minutes() -> None:
    plan = build_plan(study("vista-2006"), profile="paper", only=["eight-florida"], pins={})
    for run in plan.runs:
        starts = [flow.start_us // 1_000_000 for flow in run.spec.flows]
        ends = [(flow.start_us + flow.duration_us) // 1_000_000 for flow in run.spec.flows]
        assert starts == [0, 0, 300, 300, 600, 600, 900, 900]
        assert ends == [2700, 2700, 2400, 2400, 2100, 2100, 1800, 1800]


def test_an_artifact_names_the_experiments_of_its_figures_and_claims() -> None:
    slac = StudyFolder(EXPERIMENTS / "slac-2003")
    assert slac.experiments_named(["slide-19-throughput"]) == ("single-short", "single-middle", "single-long")
    assert slac.experiments_named(["intra", "slide-18-txqueuelen"]) == ("intra", "txqueuelen")


def test_a_loop_over_experiments_is_about_each_of_them() -> None:
    vista = study("vista-2006")
    relation = parse(
        "together[test, ctcp] > together[test, other] for test in [one-caltech, pair] for other in [standard]"
    )
    assert relation.experiments(vista) == ("one-caltech", "pair")
    assert relation.first_experiment(vista) == "one-caltech"


def test_a_name_that_is_neither_artifact_nor_experiment_is_refused_with_the_nearest() -> None:
    with pytest.raises(StudyError) as caught:
        StudyFolder(EXPERIMENTS / "vista-2006").experiments_named(["tab-44", "one-irland", "tab-1"])
    problems = [str(problem) for problem in caught.value.problems]
    assert len(problems) == 3
    assert "'tab-44'; allowed: tab-1 to tab-13, fig-1 to fig-15" in problems[0] and "did you mean" not in problems[0]
    assert "'one-irland'" in problems[1] and "did you mean 'one-ireland'?" in problems[1]
    assert problems[2].startswith("--only: 'tab-1' rests on no experiment")


def test_a_table_rests_on_the_experiments_that_its_cells_read() -> None:
    vista, slac = (StudyFolder(EXPERIMENTS / name) for name in ("vista-2006", "slac-2003"))
    assert vista.figures.figure("tab-8").experiments(vista.study) == ("variants-one", "variants-two", "variants-eight")
    assert vista.figures.figure("tab-1").experiments(vista.study) == ()  # texts alone
    assert slac.figures.figure("slide-27-inter-fairness-results").experiments(slac.study) == ("pairs",)
