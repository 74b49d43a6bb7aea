# SPDX-License-Identifier: Apache-2.0
"""The shipped studies load, have the artifacts they promise, and keep to their time."""

from pathlib import Path

import pytest

from longfat.data.study_folder import StudyFolder
from longfat.plan import build_plan, estimate
from longfat.plan.resolve import resolve
from longfat.relations.syntax import parse
from longfat.study.catalog.stacks import STACKS
from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.system.errors import StudyError

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


STUDIES = ("sandia-2003", "kelly-2003", "trinh-2004", "slac-2003", "vista-2006")


def study(name: str) -> Study:
    return load_study(EXPERIMENTS / name / "study.yaml")


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
    assert "'tab-44'; allowed: tab-1, tab-2" in problems[0] and "did you mean 'tab-4'?" in problems[0]
    assert "'one-irland'" in problems[1] and "did you mean 'one-ireland'?" in problems[1]
    assert problems[2].startswith("--only: 'tab-1' has no experiment")


def test_a_table_rests_on_the_experiments_that_its_cells_read() -> None:
    vista, slac = (StudyFolder(EXPERIMENTS / name) for name in ("vista-2006", "slac-2003"))
    assert vista.figures.figure("tab-8").experiments(vista.study) == ("variants-one", "variants-two", "variants-eight")
    assert vista.figures.figure("tab-1").experiments(vista.study) == ()  # texts alone
    assert slac.figures.figure("slide-27-inter-fairness-results").experiments(slac.study) == ("pairs",)
