# SPDX-License-Identifier: Apache-2.0
"""A study over backends: the factor `backend`, and the plans of several under one lock."""

from __future__ import annotations

from pathlib import Path

from longfat.cli.reproduce import merge_plans
from longfat.plan import Plan, build_plan
from longfat.plan.lockfile import read_lock, write_lock
from longfat.study.load import load_study

FOLDER = Path(__file__).parents[2] / "experiments" / "_crosscheck"


def plan(backend: str) -> Plan:
    """The plan of the study for one backend."""
    pins = {"backend": backend, "kernel": f"kernel of {backend}"}
    return build_plan(load_study(FOLDER / "study.yaml"), profile="paper", only=["pair"], pins=pins)


def test_one_lock_has_the_runs_of_all_backends_with_the_pins_of_each(tmp_path: Path) -> None:
    write_lock(merge_plans([plan("virtual"), plan("mininet")]), tmp_path / "lock.json")
    both = read_lock(tmp_path / "lock.json")
    assert both.pins["backend"] == "virtual+mininet"
    assert {(run.factors["backend"], run.spec.pins["kernel"]) for run in both.runs} == {
        ("virtual", "kernel of virtual"),
        ("mininet", "kernel of mininet"),
    }
    assert len({run.run_id for run in both.runs}) == 48
