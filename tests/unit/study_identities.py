# SPDX-License-Identifier: Apache-2.0
"""The identity of every run of the shipped studies, as digests by experiment and profile, in ``study_identities.json``.

Run as a module to renew that file, where a change of runs is meant; the difference is what a review has to look at.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from longfat.plan import build_plan
from longfat.study.load import load_study
from longfat.study.profiles import PROFILES
from longfat.study.study import Study

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
COMMITTED = Path(__file__).with_suffix(".json")
STUDIES = (
    *("_canary", "_crosscheck", "_laws", "_smoke"),
    *("kelly-2003", "sandia-2003", "slac-2003", "trinh-2004", "vista-2006"),
    *("ware-2019", "cao-2019", "philip-2021"),
)


def study_identities(name: str) -> dict[str, str]:
    """For each experiment the digests of its run_ids under each profile, in the order of the points.

    The first repetition stands for all: the others differ in their seeds, which follow from its number. How many the
    manifest has stands before the digests.
    """
    study = load_study(EXPERIMENTS / name / "study.yaml")
    counts = {swept.id: swept.repetitions for swept in study.experiments}
    once = tuple(replace(swept, repetitions=1) for swept in study.experiments)
    profiles = {profile: identities(replace(study, experiments=once), profile) for profile in PROFILES}
    return {
        name: ", ".join([f"{count} times", *(f"{profile} {_digest(of[name])}" for profile, of in profiles.items())])
        for name, count in counts.items()
    }


def identities(study: Study, profile: str) -> dict[str, list[str]]:
    """Return the run_ids of each experiment, by repetition, then in the order of the points."""
    plan = build_plan(study, profile=profile, pins={})
    result: dict[str, list[str]] = {}
    for swept in study.experiments:
        order = {json.dumps(point.factors): number for number, point in enumerate(swept.points)}
        runs = [run for run in plan.runs if run.experiment == swept.id]
        runs.sort(key=lambda run: (run.repetition, order[json.dumps(run.factors)]))
        result[swept.id] = [run.run_id for run in runs]
    return result


def _digest(run_ids: list[str]) -> str:
    """The digest of these, "none" of none."""
    return hashlib.sha256(json.dumps(run_ids).encode()).hexdigest()[:12] if run_ids else "none"


if __name__ == "__main__":
    COMMITTED.write_text(json.dumps({name: study_identities(name) for name in STUDIES}, indent=1) + "\n")
