# SPDX-License-Identifier: Apache-2.0
"""A study's folder: its files, its faults, its artifacts; and the runs, time and pairs of the shipped studies."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
from fabricated_results import CLAIMS, FIGURES, MANIFEST, write_study
from manifests import refused
from study_identities import COMMITTED, study_identities
from study_identities import STUDIES as IDENTIFIED

from longfat.cli.study import find_study
from longfat.data.study_folder import StudyFolder, studies_in
from longfat.plan import Plan, build_plan, estimate
from longfat.plan.estimate import FIXED_SECONDS, run_seconds
from longfat.plan.resolve import resolve
from longfat.study.catalog.stacks import STACKS
from longfat.study.load import load_study
from longfat.study.study import Study


def test_faults_of_claims_and_figures_are_reported_together(tmp_path: Path) -> None:
    claims, figures = CLAIMS.replace("goodput[delay", "speed[delay"), FIGURES.replace("x: window", "x: length")
    folder = StudyFolder(write_study(tmp_path, claims=claims, figures=figures))
    assert {Path(problem.file).name for problem in refused(folder.check)} == {"claims.yaml", "figures.yaml"}


def test_a_study_without_claims_and_figures_has_none(tmp_path: Path) -> None:
    path = write_study(tmp_path)
    (path / "claims.yaml").unlink()
    (path / "figures.yaml").unlink()
    (folder,) = studies_in(path.parent)
    assert (folder.claims, folder.figures.figures) == ((), ())
    assert folder.digest("claims.yaml") == ""


def test_other_assumptions_leave_the_claims_as_they_are_and_may_be_of_some_experiments_alone(tmp_path: Path) -> None:
    unknowns = "unknowns:\n  way: {what: its length, default: 30 ms, between: [10 ms, 90 ms], source: a map}\n"
    folder = StudyFolder(write_study(tmp_path))
    text = MANIFEST.replace("rtt: 30 ms", 'rtt: "${way}"', 1).replace("experiments:\n", f"{unknowns}experiments:\n")
    (folder.path / "study.yaml").write_text(text, encoding="utf-8")
    other = folder.assuming({"way": "60 ms"}, ["delay"])
    assert other.claims is folder.claims
    assert [one.id for one in other.study.experiments] == ["delay"]
    assert str(other.study.experiments[0].points[0].experiment.topology.rtt) == "60 ms"
    assert {one.id for one in folder.assuming({"way": "60 ms"}).study.experiments} > {"delay"}


EXPERIMENTS = Path(__file__).parents[2] / "experiments"


STUDIES = ("sandia-2003", "kelly-2003", "trinh-2004", "slac-2003", "vista-2006", "ware-2019", "cao-2019", "philip-2021")


@functools.cache
def study(name: str) -> Study:
    return load_study(EXPERIMENTS / name / "study.yaml")


@functools.cache
def plan(name: str, profile: str) -> Plan:
    return build_plan(study(name), profile=profile, pins={"backend": "virtual"})


@pytest.mark.parametrize(
    ("name", "profile", "minutes"),
    [
        ("_smoke", "quick", 1),
        *((name, profile, minutes) for name in STUDIES for profile, minutes in (("smoke", 2), ("quick", 15))),
    ],
)
def test_a_profile_keeps_to_its_time_on_two_cores(name: str, profile: str, minutes: int) -> None:
    assert estimate(plan(name, profile), jobs=2).wall_seconds < minutes * 60


@pytest.mark.parametrize(
    ("name", "seconds_per_run"),  # as measured on two cores, with the report
    [("_smoke", 10 / 25), ("sandia-2003", 590 / 623), ("slac-2003", 310 / 415), ("trinh-2004", 212 / 118)],
)
def test_the_time_of_a_study_is_estimated_within_30_percent(name: str, seconds_per_run: float) -> None:
    cost = estimate(plan(name, "quick"), jobs=2)
    assert cost.whole_seconds / cost.distinct_runs == pytest.approx(seconds_per_run, rel=0.3)


@pytest.mark.parametrize(
    ("name", "scenario", "cpu_s"),  # as measured in turn on one busy machine
    [
        ("ware-2019", "fig-8a.cell-x64-n1.buffer-64.flows-1", 27.9),
        ("philip-2021", "edge.algorithm-reno.rtt-20ms.each-1", 57.8),
        ("slac-2003", "pairs.window-2125kb.first-p-tcp.second-bic-tcp", 5.0),
        ("pairs", "plain.first-illinois.second-htcp.rate-50mbit.buffer-4bdp", 4.7),
    ],
)
def test_estimates_of_slow_and_fast_paths_have_the_measured_ratio(name: str, scenario: str, cpu_s: float) -> None:
    reference, reference_s = seconds_of("trinh-2004", "isolated.version-sack.rate-100mbit."), 11.9
    assert seconds_of(name, scenario) / reference == pytest.approx(cpu_s / reference_s, rel=0.45)


@functools.cache
def seconds_of(name: str, scenario: str) -> float:
    """Return the estimate of a run without what every run costs."""
    experiment = scenario.partition(".")[0]
    runs = build_plan(study(name), profile="quick", only=(experiment,), pins={"backend": "virtual"}).runs
    return run_seconds(next(run.spec for run in runs if run.scenario.startswith(scenario))) - FIXED_SECONDS


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


def test_an_artifact_names_the_experiments_of_its_figures_and_claims() -> None:
    slac = StudyFolder(EXPERIMENTS / "slac-2003")
    assert slac.experiments_named(["slide-19-throughput"]) == ("single-short", "single-middle", "single-long")
    assert slac.experiments_named(["intra", "slide-18-txqueuelen"]) == ("intra", "txqueuelen")


def test_a_name_that_is_neither_artifact_nor_experiment_is_refused() -> None:
    names = ["tab-44", "one-irland", "tab-1"]
    found = refused(lambda: StudyFolder(EXPERIMENTS / "vista-2006").experiments_named(names))
    assert [[name for name in names if repr(name) in one.message] for one in found] == [[name] for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", IDENTIFIED)
def test_the_shipped_studies_have_the_runs_that_are_committed(name: str) -> None:
    """Where a change is meant, ``python tests/unit/study_identities.py`` renews them."""
    assert study_identities(name) == json.loads(COMMITTED.read_text(encoding="utf-8"))[name]


GALLERY = sorted(path.parent.name for path in EXPERIMENTS.glob("gallery/*/study.yaml"))
MOST_LINES = 40
MOST_SECONDS = 120  # of one core


@pytest.mark.parametrize("name", GALLERY)
def test_a_study_of_the_gallery_checks_and_plans_and_is_small(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGFAT_ROOT", str(EXPERIMENTS.parent))
    folder = find_study(f"gallery/{name}")
    folder.check()
    assert folder.study.name == name
    assert [figure.artifact for figure in folder.figures.figures] == [name]
    plan = build_plan(folder.study, profile="quick", pins={})
    assert estimate(plan, jobs=1).wall_seconds < MOST_SECONDS
    lines = [
        len((folder.path / file).read_text(encoding="utf-8").splitlines()) for file in ("study.yaml", "figures.yaml")
    ]
    assert sum(lines) <= MOST_LINES
