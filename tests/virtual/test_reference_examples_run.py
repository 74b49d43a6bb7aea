# SPDX-License-Identifier: Apache-2.0
"""Every example of the manifest reference is a run that is valid: what it declares was read back."""

from __future__ import annotations

from pathlib import Path

import pytest
from guests import virtual
from reference_examples import write_study
from studies import done

from longfat.manifest.load import load_study
from longfat.plan import build_plan

pytestmark = pytest.mark.virtual


OTHER = "linux-7.3"


def test_every_example_of_the_reference_is_a_valid_run(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path))
    runs = build_plan(study, profile="quick", pins=virtual().pins(), kernels={OTHER: "another"}).runs
    here = {run.experiment: run.spec for run in runs if run.spec.pins == virtual().pins()}
    assert len(here) >= 30
    assert {run.experiment for run in runs} - set(here) == {"topology-bottleneck-queue-dualpi2-0"}
    for name, spec in here.items():
        assert virtual().refuses(spec) == (), name
        done(spec, tmp_path / name)
