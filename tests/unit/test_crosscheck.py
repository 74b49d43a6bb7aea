# SPDX-License-Identifier: Apache-2.0
"""A study over backends: the factor `backend`, and the plans of several under one lock."""

from __future__ import annotations

from pathlib import Path

from longfat.cli.reproduce import merge_plans
from longfat.plan import build_plan
from longfat.plan.lockfile import read_lock, write_lock
from longfat.study.load import load_study


def test_one_lock_has_the_runs_of_all_backends_with_the_pins_of_each(tmp_path: Path) -> None:
    study = load_study(Path(__file__).parents[2] / "experiments/_crosscheck/study.yaml")
    kernels = {name: f"kernel of {name}" for name in ("virtual", "mininet")}
    pins = [{"backend": name, "kernel": kernel} for name, kernel in kernels.items()]
    plans = [build_plan(study, profile="paper", only=["pair"], pins=one) for one in pins]
    write_lock(merge_plans(plans), tmp_path / "lock.json")
    both = read_lock(tmp_path / "lock.json")
    assert both.pins["backend"] == "virtual+mininet"
    assert {(run.factors["backend"], run.spec.pins["kernel"]) for run in both.runs} == {*kernels.items()}
    assert len({run.run_id for run in both.runs}) == 48
