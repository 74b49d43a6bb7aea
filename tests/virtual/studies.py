# SPDX-License-Identifier: Apache-2.0
"""Runs of a small study in guests, for tests. Must not assert anything but that a run is valid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guests import run, virtual

from longfat.dataset.parse import ParsedRun, parse_run
from longfat.plan import build_plan
from longfat.spec.gates import Evidence
from longfat.spec.network import lay_out
from longfat.spec.runspec import RunSpec
from longfat.spec.units import Ratio
from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.study.traffic import misses


def planned(path: Path, text: str) -> dict[str, RunSpec]:
    """Return the runs of a study by experiment and factors (``queues codel``); text and head go into ``path``.

    Clocks are exact and phases fixed, as laws need them.
    """
    path.write_text(f"format: 2\nstudy: example\ntitle: Runs in guests\n{text}", encoding="utf-8")
    plan = build_plan(_exact(load_study(path)), pins=virtual().pins())
    return {" ".join([entry.experiment, *map(str, entry.factors.values())]): entry.spec for entry in plan.runs}


def specs_of(text: str) -> Any:
    """Return a fixture with the runs of a study as ``planned``."""

    @pytest.fixture(scope="module")
    def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunSpec]:
        return planned(tmp_path_factory.mktemp("study") / "study.yaml", text)

    return specs


def _exact(study: Study) -> Study:
    exact = {"clock_tolerance": Ratio(0), "phases": "fixed"}
    experiments = (
        replace(one, points=tuple(replace(at, experiment=at.experiment.model_copy(update=exact)) for at in one.points))
        for one in study.experiments
    )
    return replace(study, experiments=tuple(experiments))


def done(spec: RunSpec, folder: Path) -> ParsedRun:
    """A run that is valid by every gate: what was declared was read back."""
    parsed = parse_run(run(spec, folder), "id", spec)
    found = misses(Evidence(spec, parsed.achieved, parsed.reports, parsed.told, parsed.end_us))
    assert found == (), found  # pytest shows no more of an assertion outside of a test
    return parsed


def samples(parsed: ParsedRun, spec: RunSpec, node: str, since_us: int = 0) -> list[dict[str, Any]]:
    """The samples of the only queue of a node."""
    (port,) = (port for port in lay_out(spec).ports[node] if port.egress.rate_bps)
    rows = [
        row for row in parsed.tables["queues"].to_pylist() if row["interface"] == port.name and row["t_us"] >= since_us
    ]
    return sorted(rows, key=lambda row: row["t_us"])


def waits_ms(parsed: ParsedRun, spec: RunSpec, since_us: int) -> list[float]:
    """How long what is in the bottleneck's queue takes to leave it, at each sample."""
    return [row["backlog_bytes"] * 8e3 / row["rate_bps"] for row in samples(parsed, spec, "switch", since_us)]
